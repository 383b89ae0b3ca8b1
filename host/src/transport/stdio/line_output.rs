//! Writes lines to a stream. Lines that are ready at the same time are written together: each write wakes the client, and
//! costs as much as half a read.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Bytes that are copied into one write. A longer line is written as it is.
const MAX_JOINED: usize = 64 << 10;

/// The output of a connection.
#[derive(Debug)]
pub(super) struct LineOutput<W> {
    lines: Mutex<Lines>,
    stream: tokio::sync::Mutex<W>,
}

/// The lines that nobody writes yet.
#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<Vec<u8>>,
    /// How many lines were ever added.
    added: u64,
    /// How many of them were written.
    done: u64,
    /// True if the stream failed.
    is_broken: bool,
}

impl<W: AsyncWrite + Unpin> LineOutput<W> {
    /// Writes to `stream`.
    pub(super) fn new(stream: W) -> Self {
        Self { lines: Mutex::default(), stream: tokio::sync::Mutex::new(stream) }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `line`, which ends with its line break, after the lines that were added before it.
    ///
    /// # Errors
    /// The stream fails, or failed before.
    pub(super) async fn write(&self, line: Vec<u8>) -> Result<()> {
        let number = self.add(line);
        self.write_up_to(number).await
    }

    /// The same for one of several answers that are made at the same time. The others that are ready are written with it.
    ///
    /// # Errors
    /// As [`LineOutput::write`].
    pub(super) async fn write_with_others(&self, line: Vec<u8>) -> Result<()> {
        let number = self.add(line);
        // The other tasks that are ready run first, and add their lines.
        tokio::task::yield_now().await;
        self.write_up_to(number).await
    }

    /// Adds a line. Returns its number.
    fn add(&self, line: Vec<u8>) -> u64 {
        let mut lines = self.lines();
        lines.waiting.push_back(line);
        lines.added += 1;
        lines.added
    }

    /// The result for line `number`, if it is written or lost.
    fn result(&self, number: u64) -> Option<Result<()>> {
        let lines = self.lines();
        match (lines.done >= number, lines.is_broken) {
            (true, _) => Some(Ok(())),
            (false, true) => Some(Err(Error::from(ErrorKind::BrokenPipe))),
            (false, false) => None,
        }
    }

    /// Writes the waiting lines up to line `number`, unless another task has done it.
    async fn write_up_to(&self, number: u64) -> Result<()> {
        if let Some(done) = self.result(number) {
            return done;
        }
        let mut stream = self.stream.lock().await;
        loop {
            if let Some(done) = self.result(number) {
                return done;
            }
            let (bytes, last) = self.lines().take_some();
            let written = async {
                stream.write_all(&bytes).await?;
                stream.flush().await
            };
            let written = written.await;
            let mut lines = self.lines();
            if written.is_err() {
                lines.is_broken = true;
                lines.waiting = VecDeque::new();
                return written;
            }
            lines.done = last;
        }
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// The stream fails.
    pub(super) async fn shutdown(&self) -> Result<()> {
        self.stream.lock().await.shutdown().await
    }

    /// The stream.
    #[cfg(test)]
    pub(super) async fn stream(&self) -> tokio::sync::MutexGuard<'_, W> {
        self.stream.lock().await
    }
}

impl Lines {
    /// Takes the bytes of the next write, and the number of its last line.
    fn take_some(&mut self) -> (Vec<u8>, u64) {
        let mut bytes = self.waiting.pop_front().unwrap_or_default();
        while let Some(next) = self.waiting.front()
            && bytes.len() + next.len() <= MAX_JOINED
        {
            bytes.extend_from_slice(next);
            self.waiting.pop_front();
        }
        (bytes, self.added - self.waiting.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use super::*;

    /// Keeps the bytes of each write. Fails once it has `left` writes.
    struct Writes {
        all: Vec<Vec<u8>>,
        left: usize,
    }

    impl AsyncWrite for Writes {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
            if self.left == 0 {
                return Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset)));
            }
            self.left -= 1;
            self.all.push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Writes `lines`, each by a task of its own. Returns the results, and the bytes of each write.
    async fn written(lines: Vec<Vec<u8>>, left: usize) -> (Vec<Result<()>>, Vec<Vec<u8>>) {
        let output = Arc::new(LineOutput::new(Writes { all: Vec::new(), left }));
        let tasks: Vec<_> = lines
            .into_iter()
            .map(|line| {
                let output = Arc::clone(&output);
                tokio::spawn(async move { output.write_with_others(line).await })
            })
            .collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        let all = std::mem::take(&mut output.stream().await.all);
        (results, all)
    }

    #[tokio::test]
    async fn lines_that_are_ready_together_are_written_together_and_in_order() {
        let lines: Vec<_> = (0..16).map(|number| format!("{number}\n").into_bytes()).collect();
        let (results, writes) = written(lines.clone(), usize::MAX).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(writes, [lines.concat()], "one write");
    }

    #[tokio::test]
    async fn a_long_line_is_written_without_a_copy_and_keeps_its_place() {
        let long = [vec![b'x'; MAX_JOINED], b"\n".to_vec()].concat();
        let lines = vec![b"1\n".to_vec(), b"2\n".to_vec(), long.clone(), b"4\n".to_vec()];
        let (results, writes) = written(lines, usize::MAX).await;
        assert!(results.iter().all(Result::is_ok));
        assert!(writes == [b"1\n2\n".to_vec(), long, b"4\n".to_vec()], "{}", writes.len());
    }

    #[tokio::test]
    async fn a_stream_that_fails_fails_every_line_that_is_not_written() {
        let long = vec![b'x'; MAX_JOINED];
        let (results, writes) = written(vec![long.clone(), long.clone(), long], 1).await;
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 3 - writes.len());
        let output = LineOutput::new(Writes { all: Vec::new(), left: 0 });
        assert!(output.write(b"1\n".to_vec()).await.is_err());
        assert!(output.write(b"2\n".to_vec()).await.is_err());
    }
}
