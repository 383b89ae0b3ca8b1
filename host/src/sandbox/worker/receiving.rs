//! Tasks that receive the messages of the front in turn.
//!
//! A call starts on the task that received it. Most calls end there, without a task of their own and without waking
//! another thread. A call that fills memory by one instruction keeps its task for long. Then another task takes over, on
//! another thread.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use tokio::sync::Notify;

/// The tasks that receive, of which one has the turn.
pub(super) struct ReceivingTasks {
    tasks: Vec<ReceivingTask>,
    /// The one that has the turn.
    turn: AtomicUsize,
    /// The number of starts and ends that [`ReceivingTasks::watch`] saw last.
    seen: AtomicU64,
}

#[derive(Default)]
struct ReceivingTask {
    /// Starts and ends of calls on it. Odd while a call keeps it.
    calls: AtomicU64,
    /// Signals that it has the turn.
    has_turn: Notify,
}

impl ReceivingTasks {
    /// So many tasks, at least one. The first has the turn.
    pub(super) fn new(tasks: usize) -> Self {
        let tasks = (0..tasks.max(1)).map(|_| ReceivingTask::default()).collect();
        Self { tasks, turn: AtomicUsize::new(0), seen: AtomicU64::new(0) }
    }

    /// The number of tasks.
    pub(super) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until `task` has the turn.
    pub(super) async fn turn(&self, task: usize) {
        while self.turn.load(Ordering::SeqCst) != task {
            let Some(own) = self.tasks.get(task) else { return };
            own.has_turn.notified().await;
        }
    }

    /// Runs a call on `task` until it first waits. True if it has ended.
    pub(super) async fn start<F: Future>(&self, task: usize, mut call: Pin<&mut F>) -> bool {
        let Some(own) = self.tasks.get(task) else { return false };
        poll_fn(|context| {
            own.calls.fetch_add(1, Ordering::SeqCst);
            let polled = call.as_mut().poll(context);
            own.calls.fetch_add(1, Ordering::SeqCst);
            Poll::Ready(polled.is_ready())
        })
        .await
    }

    /// Gives the turn to another task if the same call keeps the task in turn since the last look.
    pub(super) fn watch(&self) {
        let turn = self.turn.load(Ordering::SeqCst);
        let Some(calls) = self.tasks.get(turn).map(|task| task.calls.load(Ordering::SeqCst)) else { return };
        let is_kept = |calls: u64| !calls.is_multiple_of(2);
        if self.seen.swap(calls, Ordering::SeqCst) != calls || !is_kept(calls) {
            return;
        }
        let free = self.tasks.iter().position(|task| !is_kept(task.calls.load(Ordering::SeqCst)));
        if let Some((next, task)) = free.and_then(|next| Some((next, self.tasks.get(next)?))) {
            self.turn.store(next, Ordering::SeqCst);
            task.has_turn.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_task_takes_over_while_a_call_keeps_the_first() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let tasks = Arc::new(ReceivingTasks::new(2));
        let ((begun, has_begun), (release, is_released), (done, is_done)) = (channel(), channel(), channel());
        for (task, call) in [
            (
                0,
                Box::new(move || is_released.recv_timeout(Duration::from_secs(60)).unwrap())
                    as Box<dyn FnOnce() + Send>,
            ),
            (1, Box::new(move || release.send(()).unwrap())),
        ] {
            let (tasks, begun, done) = (Arc::clone(&tasks), begun.clone(), done.clone());
            runtime.spawn(async move {
                tasks.turn(task).await;
                let call = async {
                    begun.send(task).unwrap();
                    call();
                };
                assert!(tasks.start(task, std::pin::pin!(call)).await);
                done.send(task).unwrap();
            });
        }
        assert_eq!(has_begun.recv().unwrap(), 0);
        tasks.watch();
        tasks.watch();
        assert_eq!(has_begun.recv_timeout(Duration::from_secs(60)).unwrap(), 1);
        let mut ended = [is_done.recv().unwrap(), is_done.recv().unwrap()];
        ended.sort_unstable();
        assert_eq!(ended, [0, 1]);
    }

    #[tokio::test]
    async fn a_task_keeps_its_turn_while_its_calls_end() {
        let tasks = ReceivingTasks::new(2);
        for _ in 0..3 {
            assert!(tasks.start(0, std::pin::pin!(async {})).await);
            tasks.watch();
            tasks.watch();
            assert!(!tasks.start(0, std::pin::pin!(std::future::pending::<()>())).await);
            tasks.watch();
        }
        tasks.turn(0).await;
    }

    #[tokio::test]
    async fn one_task_alone_keeps_its_turn() {
        let tasks = ReceivingTasks::new(1);
        let call = async {
            tasks.watch();
            tasks.watch();
        };
        assert!(tasks.start(0, std::pin::pin!(call)).await);
        tasks.turn(0).await;
    }
}
