//! Files in memory for a call in a worker process: the front opens the file, records the decision, and sends the file.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::call_record::CallRecord;
use super::frames::{BytePiece, FrameError, FrameReader, FrameWriter, SharedStream};
use super::front::Opening;
use super::memory_directory::{MemoryDirectory, MemoryFile, MemoryFileError};
use crate::model::{DecisionKind, MountName};

/// The most bytes of a file. The largest file lists some thousand processes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The longest name of a file that the front looks for.
const MAX_NAME_BYTES: usize = 255;

/// The first frame of the front. After `Opened`, the contents follow, in pieces.
#[derive(Debug, Serialize, Deserialize)]
enum FileAnswer {
    /// The time at which belljar made the file, and its length.
    Opened(SystemTime, u64),
    Absent,
    NotGranted,
    /// The record in the front has the reason.
    Unavailable,
}

/// Asks the front for a file, on the stream that `opening` gives. The front has recorded the result.
///
/// # Errors
/// [`MemoryFileError`].
pub(super) async fn fetch(opening: Opening) -> Result<Arc<MemoryFile>, MemoryFileError> {
    let fetched = async {
        let mut reader = FrameReader::new(&SharedStream::new(opening.await?));
        let (modified, length) = match reader.expect::<FileAnswer>().await? {
            FileAnswer::Opened(modified, length) if length <= MAX_FILE_BYTES => (modified, length),
            FileAnswer::Opened(..) => return Err(FrameError::Malformed),
            FileAnswer::Absent => return Ok(Err(MemoryFileError::Absent)),
            FileAnswer::NotGranted => return Ok(Err(MemoryFileError::NotGranted)),
            FileAnswer::Unavailable => return Ok(Err(MemoryFileError::Unavailable(String::new()))),
        };
        let mut bytes = BytesMut::new();
        while (bytes.len() as u64) < length {
            let BytePiece(piece) = reader.expect().await?;
            bytes.extend_from_slice(&piece);
        }
        Ok(Ok(Arc::new(MemoryFile { bytes: bytes.freeze(), modified })))
    };
    fetched.await.unwrap_or_else(|error: FrameError| Err(MemoryFileError::Unavailable(error.to_string())))
}

/// In the front: opens the file `name`, and sends it. `dir`: the directory of the mount, if it has one of the asked kind.
pub(super) async fn serve(
    dir: Option<Arc<dyn MemoryDirectory>>,
    name: String,
    mount: MountName,
    record: CallRecord,
    stream: UnixStream,
) -> Result<(), FrameError> {
    let mut writer = FrameWriter::new(&SharedStream::new(stream));
    let opened = match dir.filter(|_| name.len() <= MAX_NAME_BYTES) {
        None => Err(MemoryFileError::Absent),
        Some(dir) => {
            let opened = open(Arc::clone(&dir), name.clone()).await;
            record_result(&*dir, &name, &mount, &record, &opened);
            opened
        }
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            return writer
                .send(&match error {
                    MemoryFileError::Absent => FileAnswer::Absent,
                    MemoryFileError::NotGranted => FileAnswer::NotGranted,
                    MemoryFileError::Unavailable(_) | MemoryFileError::NeedsThread => FileAnswer::Unavailable,
                })
                .await;
        }
    };
    writer.send(&FileAnswer::Opened(file.modified, file.bytes.len() as u64)).await?;
    let mut rest: Bytes = file.bytes.clone();
    while let Some(piece) = BytePiece::take(&mut rest) {
        writer.send(&piece).await?;
    }
    Ok(())
}

/// Opens the file on a thread that may block.
async fn open(dir: Arc<dyn MemoryDirectory>, name: String) -> Result<Arc<MemoryFile>, MemoryFileError> {
    match dir.open(&name, false) {
        Err(MemoryFileError::NeedsThread) => {}
        done => return done,
    }
    let opened = tokio::task::spawn_blocking(move || dir.open(&name, true)).await;
    opened.unwrap_or_else(|error| Err(MemoryFileError::Unavailable(error.to_string())))
}

fn record_result(
    dir: &dyn MemoryDirectory,
    name: &str,
    mount: &MountName,
    record: &CallRecord,
    opened: &Result<Arc<MemoryFile>, MemoryFileError>,
) {
    let path = format!("{}/{name}", dir.guest());
    let add = |target: &str, verdict, cure| record.add_decision(dir.kind(), target, verdict, || cure);
    match opened {
        Ok(_) => add(&path, DecisionKind::Allowed, None),
        Err(MemoryFileError::NotGranted) => {
            add(&format!("open {path}"), DecisionKind::Denied, dir.cure(mount.as_str(), name));
        }
        Err(MemoryFileError::Unavailable(why)) => add(&path, DecisionKind::Unavailable, Some(why.clone())),
        Err(MemoryFileError::Absent | MemoryFileError::NeedsThread) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A directory whose file `big` has to be made on a thread that may block.
    struct Made;

    impl MemoryDirectory for Made {
        fn guest(&self) -> &str {
            "/made"
        }

        fn kind(&self) -> &'static str {
            "system"
        }

        fn names(&self) -> Vec<&'static str> {
            vec!["big"]
        }

        fn open(&self, name: &str, may_block: bool) -> Result<Arc<MemoryFile>, MemoryFileError> {
            match name {
                "big" if !may_block => Err(MemoryFileError::NeedsThread),
                "big" => Ok(Arc::new(MemoryFile { bytes: vec![7; 200_000].into(), modified: time() })),
                "empty" => Ok(Arc::new(MemoryFile { bytes: Bytes::new(), modified: time() })),
                "broken" => Err(MemoryFileError::Unavailable("the reason".to_owned())),
                "other" => Err(MemoryFileError::NotGranted),
                _ => Err(MemoryFileError::Absent),
            }
        }

        fn cure(&self, mount: &str, name: &str) -> Option<String> {
            Some(format!("grant {name} to {mount}"))
        }
    }

    fn time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5)
    }

    async fn ask(
        dir: Option<Arc<dyn MemoryDirectory>>,
        name: &str,
        record: &CallRecord,
    ) -> Result<Arc<MemoryFile>, MemoryFileError> {
        let (worker, front) = UnixStream::pair().unwrap();
        let mount = MountName::new("m").unwrap();
        tokio::spawn(serve(dir, name.to_owned(), mount, record.clone(), front));
        fetch(Box::pin(std::future::ready(Ok(worker)))).await
    }

    #[tokio::test]
    async fn a_file_of_the_front_arrives_whole_and_its_decision_is_recorded_there() {
        let record = CallRecord::default();
        let dir = || Some(Arc::new(Made) as Arc<dyn MemoryDirectory>);
        let big = ask(dir(), "big", &record).await.unwrap();
        assert_eq!((&*big.bytes, big.modified), (&[7; 200_000][..], time()));
        assert!(ask(dir(), "empty", &record).await.unwrap().bytes.is_empty());
        assert_eq!(ask(dir(), "other", &record).await.unwrap_err(), MemoryFileError::NotGranted);
        assert_eq!(ask(dir(), "none", &record).await.unwrap_err(), MemoryFileError::Absent);
        assert_eq!(ask(dir(), &"x".repeat(300), &record).await.unwrap_err(), MemoryFileError::Absent);
        assert_eq!(ask(None, "big", &record).await.unwrap_err(), MemoryFileError::Absent);
        let broken = ask(dir(), "broken", &record).await.unwrap_err();
        assert_eq!(broken, MemoryFileError::Unavailable(String::new()), "the reason stays in the front");
        let decisions: Vec<_> = record
            .take_decisions()
            .decisions()
            .iter()
            .map(|decision| (decision.target.clone(), decision.verdict, decision.cure.clone().unwrap_or_default()))
            .collect();
        let expected = [
            ("/made/big", DecisionKind::Allowed, ""),
            ("/made/empty", DecisionKind::Allowed, ""),
            ("open /made/other", DecisionKind::Denied, "grant other to m"),
            ("/made/broken", DecisionKind::Unavailable, "the reason"),
        ];
        assert_eq!(decisions, expected.map(|(target, verdict, cure)| (target.to_owned(), verdict, cure.to_owned())));
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_gives_no_file() {
        let (worker, front) = UnixStream::pair().unwrap();
        let mut writer = FrameWriter::new(&SharedStream::new(front));
        writer.send(&FileAnswer::Opened(time(), 9)).await.unwrap();
        writer.send(&BytePiece(Bytes::from_static(b"short"))).await.unwrap();
        drop(writer);
        let fetched = fetch(Box::pin(std::future::ready(Ok(worker)))).await;
        assert!(matches!(fetched, Err(MemoryFileError::Unavailable(_))));
    }
}
