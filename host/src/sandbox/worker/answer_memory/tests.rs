//! Tests of both sides of the memory in one process: bodies that go through it, ranges that are used again, and lies.

use rustix::fs::SeekFrom;
use rustix::io::pwrite;

use super::*;
use crate::model::{Contents, Reading};

fn both() -> (Arc<AnswerMemory>, Arc<AnswerRoom>) {
    let front = Arc::new(AnswerMemory::new().unwrap());
    let worker = AnswerRoom::map(&front.file().unwrap()).unwrap();
    (front, Arc::new(worker))
}

fn reply(bodies: Vec<Body>) -> Reply {
    let contents = |body| Contents { reference: "a".to_owned(), mime_type: None, body, meta: Vec::new() };
    Reply::Read(Reading { contents: bodies.into_iter().map(contents).collect(), ..Reading::default() })
}

fn text(character: &str, len: usize) -> Body {
    Body::Text(character.repeat(len / character.len()))
}

/// Sends a reply through the memory. Returns where its bodies lay.
fn pass(front: &Arc<AnswerMemory>, worker: &AnswerRoom, reply: &Reply) -> BodyRange {
    let mut sent = reply.clone();
    let range = worker.put(&mut sent).expect("room");
    assert!(sent.bodies_mut().iter().all(|body| body.len() < MIN_BODY), "large bodies are not in the message");
    front.hold(range.clone()).unwrap().copy_into(&mut sent).unwrap();
    assert!(sent == *reply, "the reply is the same");
    range
}

/// Bytes that the memory takes.
fn resident(front: &AnswerMemory) -> u64 {
    u64::try_from(fstat(&front.file).unwrap().st_blocks).unwrap() * 512
}

#[test]
fn large_bodies_of_a_reply_go_through_the_memory_and_small_ones_do_not() {
    let (front, worker) = both();
    let blob = Body::Blob((0..=255).cycle().take(MIN_BODY + 1).collect());
    let mixed = vec![text("a", 10), text("é", MIN_BODY), blob, text("b", 0), text("c", 3 << 20)];
    let range = pass(&front, &worker, &reply(mixed));
    assert_eq!(range.bodies.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(worker.put(&mut reply(vec![text("a", MIN_BODY - 1)])), None);
    assert_eq!(worker.put(&mut reply(Vec::new())), None);
}

#[test]
fn a_range_is_used_again_after_the_front_has_freed_it() {
    let (front, worker) = both();
    let large = reply(vec![text("a", 20 << 20)]);
    let first = pass(&front, &worker, &large);
    let second = pass(&front, &worker, &large);
    let third = pass(&front, &worker, &large);
    assert_eq!([first.start, second.start, third.start], [0, 20 << 20, 40 << 20]);
    let mut fourth = large.clone();
    assert_eq!(worker.put(&mut fourth), None, "no room");
    assert!(fourth == large, "a reply without room stays as it is");
    worker.free(&front.take_freed());
    assert!(front.take_freed().is_empty(), "each range is freed once");
    worker.free(&[0, 4096, u64::MAX]);
    assert_eq!(pass(&front, &worker, &large).start, 0);
    assert_eq!(pass(&front, &worker, &reply(vec![text("b", MIN_BODY)])).start, 20 << 20);
}

#[tokio::test(start_paused = true)]
async fn memory_beyond_the_first_part_is_given_back_after_a_time() {
    let (front, worker) = both();
    assert_eq!(resident(&front), 0);
    let (small, large) = (reply(vec![text("a", 1 << 20)]), reply(vec![text("b", 30 << 20)]));
    pass(&front, &worker, &small);
    tokio::time::sleep(KEPT_FOR * 2).await;
    assert_eq!(resident(&front), 1 << 20);
    worker.free(&front.take_freed());
    pass(&front, &worker, &large);
    assert_eq!(resident(&front), 30 << 20);
    worker.free(&front.take_freed());
    pass(&front, &worker, &large);
    tokio::time::sleep(KEPT_FOR * 2).await;
    assert_eq!(resident(&front), KEPT as u64, "the front gives back what the worker does not know to be free");
    worker.free(&front.take_freed());
    pass(&front, &worker, &large);
    worker.free(&front.take_freed());
    assert_eq!(resident(&front), 30 << 20);
    tokio::time::sleep(KEPT_FOR * 2).await;
    assert_eq!(resident(&front), KEPT as u64, "the worker gives back the rest");
    // A range that the worker may write into is left alone.
    pass(&front, &worker, &small);
    worker.free(&front.take_freed());
    let mut sent = large.clone();
    let range = worker.put(&mut sent).unwrap();
    worker.free(&[]);
    tokio::time::sleep(KEPT_FOR * 2).await;
    front.hold(range).unwrap().copy_into(&mut sent).unwrap();
    assert!(sent == large);
}

#[test]
fn a_range_that_no_honest_worker_names_is_refused() {
    let (front, _worker) = both();
    let hold = |start, bodies: &[(u32, u64)]| front.hold(BodyRange { start, bodies: bodies.to_vec() });
    for (start, bodies) in [
        (SIZE as u64, [(0, 1)].as_slice()),
        (SIZE as u64 - 1, &[(0, 1), (1, 1)]),
        (0, &[(0, SIZE as u64 + 1)]),
        (0, &[(0, u64::MAX), (1, u64::MAX)]),
        (u64::MAX, &[(0, 1)]),
        (u64::MAX, &[]),
    ] {
        assert!(matches!(hold(start, bodies), Err(BodyError::Beyond)), "{start} {bodies:?}");
    }
    let copy = |bodies: &[(u32, u64)], mut reply: Reply| hold(0, bodies).unwrap().copy_into(&mut reply);
    for bodies in [[(1, 5)].as_slice(), &[(u32::MAX, 5)], &[(0, 5), (0, 5)]] {
        assert!(matches!(copy(bodies, reply(vec![text("a", 0)])), Err(BodyError::NoBody)), "{bodies:?}");
    }
    assert!(matches!(copy(&[(0, 5)], reply(vec![text("a", 7)])), Err(BodyError::NoBody)), "it has a body already");
    assert!(matches!(copy(&[(0, 5)], Reply::ListTools(Vec::new())), Err(BodyError::NoBody)));
    pwrite(&front.file, b"\xff\xfe", 0).unwrap();
    assert!(matches!(copy(&[(0, 2)], reply(vec![text("a", 0)])), Err(BodyError::NotText)));
    assert!(copy(&[(0, 2)], reply(vec![Body::Blob(Vec::new())])).is_ok(), "any bytes are a blob");
    assert_eq!(front.take_freed().len(), 7, "a range is free again, whatever was wrong with it");
}

#[test]
fn a_worker_cannot_change_the_size_of_the_memory() {
    let (front, _worker) = both();
    let lent = front.file().unwrap();
    assert_eq!(ftruncate(&lent, 0), Err(Errno::PERM));
    assert_eq!(ftruncate(&lent, SIZE as u64 + 1), Err(Errno::PERM));
    assert_eq!(fcntl_add_seals(&lent, SealFlags::WRITE), Err(Errno::PERM));
    assert_eq!(rustix::fs::seek(&lent, SeekFrom::End(0)), Ok(SIZE as u64));
}

#[test]
fn a_worker_takes_no_other_file_for_the_memory() {
    let file = tempfile::tempfile().unwrap();
    assert!(AnswerRoom::map(&file.into()).is_err());
}
