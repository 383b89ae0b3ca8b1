//! Tests of frames over real socket pairs: sizes, descriptors, and what is no frame.

use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::*;

const MOST: usize = 8 << 20;

fn pair() -> (OwnedFd, OwnedFd) {
    let (one, other) = UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    other.set_nonblocking(true).unwrap();
    (one.into(), other.into())
}

#[tokio::test]
async fn messages_of_any_size_come_in_order_with_their_descriptors() {
    let (one, other) = pair();
    let sender = Arc::new(MessageSender::new(one));
    let mut reader = MessageReader::new(other, FrameLimit::new(MOST)).unwrap().with_files();
    let own = Arc::clone(&sender);
    let running = tokio::spawn(async move { own.run().await });
    let file = |text: &str| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        OwnedFd::from(file)
    };
    sender.send(&"small".to_owned(), vec![file("a"), file("b")]).unwrap();
    sender.send(&"x".repeat(3 << 20), Vec::new()).unwrap();
    sender.send(&String::new(), vec![file("c")]).unwrap();
    for (size, expected) in [(5, vec!["a", "b"]), (3 << 20, vec![]), (0, vec!["c"])] {
        let (text, files): (String, _) = reader.next().await.unwrap().unwrap();
        let read = |file| {
            let mut text = String::new();
            std::fs::File::from(file).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(
            (text.len(), files.into_iter().map(read).collect::<Vec<_>>()),
            (size, expected.iter().map(ToString::to_string).collect())
        );
    }
    running.abort();
    let _ = running.await;
    drop(sender);
    assert!(reader.next::<String>().await.unwrap().is_none());
}

#[tokio::test]
async fn a_frame_behind_one_with_descriptors_is_received_although_nothing_follows() {
    let (one, other) = pair();
    let sender = MessageSender::new(one);
    for _ in 0..3 {
        sender.send(&1_u8, Vec::new()).unwrap();
        sender.send(&2_u8, vec![tempfile::tempfile().unwrap().into()]).unwrap();
    }
    let mut reader = MessageReader::new(other, FrameLimit::new(MOST)).unwrap().with_files();
    for expected in [1, 2, 1, 2, 1, 2] {
        let next = tokio::time::timeout(std::time::Duration::from_secs(60), reader.next::<u8>());
        let (number, files) = next.await.expect("the frame has come").unwrap().unwrap();
        assert_eq!((number, files.len()), (expected, usize::from(expected == 2)));
    }
}

#[tokio::test]
async fn long_truncated_and_malformed_frames_are_errors() {
    for (bytes, expected) in [
        (&[0xff, 0xff, 0xff, 0x7f, 0][..], "at most"),
        (&[9, 0, 0, 0, 0, 1][..], "ended within"),
        (&[9, 0][..], "ended within"),
        (&[1, 0, 0, 0, 0, 200][..], "not a message"),
        (&[1, 0, 0, 0, 1, 0][..], "lacks its descriptors"),
    ] {
        let (one, other) = pair();
        UnixStream::from(one).write_all(bytes).unwrap();
        let error = MessageReader::new(other, FrameLimit::new(MOST)).unwrap().next::<String>().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{bytes:?}: {error}");
    }
}

#[tokio::test]
async fn a_side_without_room_for_descriptors_gets_none() {
    let (one, other) = pair();
    let (mut held, lent) = UnixStream::pair().unwrap();
    MessageSender::new(one).send(&1_u8, vec![lent.into()]).unwrap();
    assert!(matches!(
        MessageReader::new(other, FrameLimit::new(MOST)).unwrap().next::<u8>().await,
        Err(MessageError::NoFiles)
    ));
    // The kernel has closed the descriptor.
    assert_eq!(held.read(&mut [0]).unwrap(), 0);
}
