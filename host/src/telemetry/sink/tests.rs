//! Tests that queued events are written, lost ones are counted, and no request waits for a stalled stream.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::*;
use crate::model::error::{Limit, LimitKind};
use crate::model::waiting::EVENT_TIME;
use crate::model::{DecisionKind, DecisionLog, Digest, MountName, ReadError, Usage};
use crate::policy::{Caller, Evidence, authenticate};

#[derive(Clone, Default)]
struct Shared {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_stalled: Arc<AtomicBool>,
    is_broken: Arc<AtomicBool>,
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        while self.is_stalled.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(ErrorKind::StorageFull.into());
        }
        // Short writes, so that a batch is split within a line.
        let taken = bytes.len().min(1000);
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lines(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn record() -> Event {
    let mut decision_log = DecisionLog::default();
    decision_log.add("http", "GET https://x\n/", DecisionKind::Denied, || Some("cure".into()));
    decision_log.add("http", "GET https://x\n/", DecisionKind::Denied, || None);
    let caller = Caller { client: Some("c 1".into()), ..Caller::new(authenticate(Evidence::OwnUser), "stdio") };
    let error = ReadError::Exhausted(Limit { kind: LimitKind::Time, used: 7, cap: 5 });
    Event {
        ended_at: SystemTime::UNIX_EPOCH,
        mount: Some(MountName::new("m").unwrap()),
        digest: Some(Digest::of(b"x")),
        reference: Some("a\nb".into()),
        usage: Usage {
            fuel: 1,
            time: Duration::from_micros(2),
            cpu: Duration::from_micros(1),
            memory: 3,
            bytes: 4,
            ..Usage::default()
        },
        decision_log,
        ..Event::new(caller, "read", Err(error.into()))
    }
}

fn format() -> RecordFormat {
    RecordFormat::new(LineChain::new([0; 8]))
}

#[tokio::test]
async fn no_event_is_lost_while_the_writer_makes_progress() {
    let out = Shared::default();
    // A writer whose thread does not run for some time has not stalled.
    let sink = Sink::start(format(), out.clone(), EVENT_TIME).unwrap();
    for _ in 0..40_000 {
        sink.wait_for_room().await;
        sink.record(record());
    }
    sink.finish(EVENT_TIME);
    let lines = out.lines();
    assert_eq!(lines.len(), 40_000, "more than the queue holds");
    assert_eq!(lines[0]["outcome"], "limit");
    assert_eq!(lines[0]["limit"], serde_json::json!({"name": "time", "used": 7, "cap": 5}));
    assert_eq!(lines[0]["denials"][0]["times"], 2);
    assert_eq!(lines[0]["usage"]["micros"], 2);
    assert_eq!(lines[0]["usage"]["cpu_micros"], 1);
    assert_eq!(lines[0]["time"], "1970-01-01T00:00:00.000Z");
    assert!(lines[0]["calls"].is_null(), "one call is not counted");
}

#[tokio::test]
async fn a_stalled_or_failing_stream_blocks_no_request_and_each_loss_is_counted() {
    for is_stalled in [true, false] {
        let out = Shared::default();
        out.is_stalled.store(is_stalled, Ordering::SeqCst);
        out.is_broken.store(!is_stalled, Ordering::SeqCst);
        let sink = Sink::to_writer(format(), out.clone()).unwrap();
        let count = 3 * MAX_QUEUED;
        for _ in 0..count {
            // Returns although the stream takes no byte.
            sink.wait_for_room().await;
            sink.record(record());
        }
        out.is_stalled.store(false, Ordering::SeqCst);
        out.is_broken.store(false, Ordering::SeqCst);
        sink.finish(EVENT_TIME);
        let lines = out.lines();
        let lost: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
        let written = lines.iter().filter(|line| line["operation"] == "read").count();
        assert!(lost > 0 && written > WAIT_FROM, "{written} written, {lost} lost");
        assert_eq!(written as u64 + lost, count as u64, "each is written or counted");
    }
}

#[test]
fn finish_does_not_wait_for_a_stalled_stream() {
    let out = Shared::default();
    out.is_stalled.store(true, Ordering::SeqCst);
    let sink = Sink::to_writer(format(), out.clone()).unwrap();
    sink.record(record());
    sink.finish(Duration::from_millis(20));
    drop(sink);
    out.is_stalled.store(false, Ordering::SeqCst);
}

/// A line of the record, for a file: the chain of all lines is whole, with those that replace lost events.
#[test]
fn lines_and_losses_are_one_chain() {
    let out = Shared::default();
    out.is_broken.store(true, Ordering::SeqCst);
    let sink = Sink::to_writer(format(), out.clone()).unwrap();
    (0..2 * MAX_QUEUED + 10).for_each(|_| sink.record(record()));
    out.is_broken.store(false, Ordering::SeqCst);
    sink.finish(EVENT_TIME);
    let text = String::from_utf8(out.bytes.lock().unwrap().clone()).unwrap();
    assert!(text.contains("\"lost\""));
    let mut check = crate::telemetry::ChainCheck::default();
    text.lines().for_each(|line| check.check(line).unwrap());
    assert_eq!(check.chains().len(), 1);
}

#[test]
fn a_record_that_cannot_be_written_refuses_requests_if_the_operator_wants_that() {
    let out = Shared::default();
    let patient = Sink::to_writer(format(), out.clone()).unwrap();
    let strict = patient.clone().refusing();
    assert!(strict.check().is_ok());
    out.is_broken.store(true, Ordering::SeqCst);
    strict.record(record());
    while strict.check().is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(patient.check().is_ok(), "the default serves on");
    out.is_broken.store(false, Ordering::SeqCst);
    while strict.check().is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    out.is_stalled.store(true, Ordering::SeqCst);
    strict.record(record());
    while strict.check().is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    out.is_stalled.store(false, Ordering::SeqCst);
}

#[test]
fn observers_see_each_event_without_a_record() {
    #[derive(Default)]
    struct Counted(std::sync::atomic::AtomicUsize);
    impl EventObserver for Counted {
        fn observe(&self, _: &Event) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counted = Arc::new(Counted::default());
    let sink = Sink::off().with_observer(counted.clone());
    assert!(sink.is_on() && !Sink::off().is_on());
    (0..3).for_each(|_| sink.record(record()));
    assert_eq!(counted.0.load(Ordering::SeqCst), 3);
}

#[test]
fn another_file_begins_with_a_whole_line() {
    let (first, second) = (Shared::default(), Shared::default());
    let sink = Sink::to_writer(format(), first.clone()).unwrap();
    first.is_stalled.store(true, Ordering::SeqCst);
    (0..100).for_each(|_| sink.record(record()));
    sink.set_writer(second.clone());
    first.is_stalled.store(false, Ordering::SeqCst);
    (0..100).for_each(|_| sink.record(record()));
    sink.finish(EVENT_TIME);
    // Parses each line.
    let (first, second) = (first.lines(), second.lines());
    assert_eq!(first.len() + second.len(), 200);
    assert!(!second.is_empty(), "{} and {}", first.len(), second.len());
}
