//! Where records go: a thread of its own, so that a slow disk delays nobody until the queue is full.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Record;

/// Records that may wait to be written. When it is full, callers wait: a record is never dropped.
const QUEUE: usize = 8192;

/// How long the writer waits for further records after the first: waking it for each would cost as much as a small
/// call. This is how much of the record a power failure or `kill -9` can take.
const GATHER: Duration = Duration::from_millis(10);

/// A queue of records with a thread that writes them.
pub struct Sink {
    queue: Option<Arc<Queue>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Something was put into an empty queue, or the queue was closed.
    filled: Condvar,
    /// The queue was emptied.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    records: Vec<Record>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    /// Keeps no record.
    pub fn off() -> Self {
        Self { queue: None, writer: Mutex::new(None) }
    }

    /// Writes each record to `out` as one line.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn to_writer(out: impl Write + Send + 'static) -> std::io::Result<Self> {
        Self::written_as(Record::to_line, out)
    }

    /// Writes each record to `out` as `form` says, and a line break.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn written_as(
        form: impl Fn(&Record) -> String + Send + 'static,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let own = Arc::clone(&queue);
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn(move || write_all(&own, form, out))?;
        Ok(Self { queue: Some(queue), writer: Mutex::new(Some(writer)) })
    }

    /// Whether records are kept at all, so that a caller can spare making one.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Queues a record.
    pub fn record(&self, record: Record) {
        let Some(queue) = &self.queue else { return };
        let mut state = queue.lock();
        while state.records.len() >= QUEUE && !state.closed {
            state = queue.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let was_empty = state.records.is_empty();
        state.records.push(record);
        drop(state);
        if was_empty {
            queue.filled.notify_one();
        }
    }
}

impl Drop for Sink {
    /// Waits until everything queued is written.
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.lock().closed = true;
            queue.filled.notify_one();
        }
        if let Ok(mut writer) = self.writer.lock()
            && let Some(writer) = writer.take()
        {
            let _ = writer.join();
        }
    }
}

/// Waits for records and takes all that came within [`GATHER`]; empty: the queue was closed, and there are no more.
fn gather(queue: &Queue) -> Vec<Record> {
    let mut state = queue.lock();
    while state.records.is_empty() && !state.closed {
        state = queue.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    if !state.closed && state.records.len() < QUEUE {
        drop(state);
        std::thread::sleep(GATHER);
        state = queue.lock();
    }
    let records = std::mem::take(&mut state.records);
    drop(state);
    queue.emptied.notify_all();
    records
}

fn write_all(queue: &Queue, form: impl Fn(&Record) -> String, mut out: impl Write) {
    let mut failed = false;
    loop {
        let records = gather(queue);
        if records.is_empty() {
            return;
        }
        let mut lines = String::with_capacity(records.len() * 512);
        for record in records {
            lines.push_str(&form(&record));
            lines.push('\n');
        }
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => failed = false,
            Err(error) if !failed => {
                failed = true;
                tracing::error!(
                    "cannot write the audit record: {error}; calls go on, records are lost until it works again"
                );
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, SystemTime};

    use super::super::Consented;
    use super::*;
    use crate::model::error::{Bound, Limit};
    use crate::model::{Caller, Digest, MountName, ReadError, Trail, Usage, Verdict};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_line_a_record_nothing_lost() {
        let out = Shared::default();
        let sink = Sink::to_writer(out.clone()).unwrap();
        let mut trail = Trail::default();
        trail.add("http", "GET https://x\n/", Verdict::Denied, || Some("cure".into()));
        trail.add("http", "GET https://x\n/", Verdict::Denied, || None);
        for _ in 0..20_000 {
            sink.record(Record {
                at: SystemTime::UNIX_EPOCH,
                caller: Caller { transport: "stdio", client: Some("c 1".into()), peer: 0 },
                mount: Some(MountName::new("m").unwrap()),
                digest: Some(Digest::of(b"x")),
                operation: "read",
                reference: Some("a\nb".into()),
                served_from: None,
                outcome: Err(ReadError::Exhausted(Limit { bound: Bound::Time, used: 7, cap: 5 })),
                usage: Usage {
                    fuel: 1,
                    time: Duration::from_micros(2),
                    cpu: Duration::from_micros(1),
                    memory: 3,
                    bytes: 4,
                },
                trail: trail.clone(),
                consent: Consented::default(),
            });
        }
        drop(sink);
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 20_000, "more than the queue holds");
        assert_eq!(lines[0]["outcome"], "limit");
        assert_eq!(lines[0]["limit"], serde_json::json!({"name": "time", "used": 7, "cap": 5}));
        assert_eq!(lines[0]["denials"][0]["times"], 2);
        assert_eq!(lines[0]["usage"]["micros"], 2);
        assert_eq!(lines[0]["usage"]["cpu_micros"], 1);
        assert_eq!(lines[0]["time"], "1970-01-01T00:00:00.000Z");
    }
}
