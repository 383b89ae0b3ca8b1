//! What an answer costs until it is on its way: the host's work for it after its call has ended is charged to its mount,
//! and stands in its record, which is written when the bill goes out of scope.

use std::sync::Arc;
use std::time::Duration;

use super::walk::Walk;
use crate::admission::effort::measured;
use crate::audit::{Record, Sink};
use crate::catalog::Mount;

/// See the module.
pub struct Bill {
    audit: Sink,
    /// The walk that the call was a part of.
    walk: Option<Walk>,
    mount: Arc<Mount>,
    /// None where none is kept.
    record: Option<Box<Record>>,
}

impl Bill {
    /// For an answer of `mount`.
    pub(super) fn new(audit: &Sink, mount: &Arc<Mount>, record: Option<Record>) -> Self {
        Self { audit: audit.clone(), walk: None, mount: Arc::clone(mount), record: record.map(Box::new) }
    }

    /// The same in a walk, whose record has it in it.
    pub(super) fn in_walk(walk: &Walk, mount: &Arc<Mount>, record: Option<Record>) -> Self {
        let mut bill = Self::new(walk.audit(), mount, record);
        bill.walk = Some(walk.clone());
        bill
    }

    /// Does work on so many bytes of the answer, on this thread, and charges it.
    pub fn charge<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let (done, cost) = measured(bytes, work);
        self.add(cost);
        done
    }

    /// Charges work that was done.
    pub fn add(&mut self, cost: Duration) {
        self.mount.gate.charge(cost);
        if let Some(record) = &mut self.record {
            record.usage.cpu += cost;
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        match (self.record.take(), &self.walk) {
            (Some(record), Some(walk)) => walk.add(*record),
            (Some(record), None) => self.audit.record(*record),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;
    use std::time::SystemTime;

    use super::*;
    use crate::admission::effort::thread_time;
    use crate::admission::{Admission, budget::Budget};
    use crate::model::{Caller, Limits, MountName, Operation, Trail, Usage};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn work_for_an_answer_is_on_record_and_owed_by_its_mount() {
        let written = Written::default();
        let audit = Sink::to_writer(written.clone()).unwrap();
        let limits = Limits { cpu: 1, queue: Duration::from_millis(1), ..Limits::default() };
        let mount = Arc::new(Mount::plain(MountName::new("m").unwrap(), "belljar://m/", limits));
        let usage = Usage { cpu: Duration::from_micros(5), ..Usage::default() };
        let record = Record {
            at: SystemTime::now(),
            caller: Caller::default(),
            mount: None,
            digest: None,
            operation: "read",
            reference: None,
            served_from: None,
            calls: 1,
            outcome: Ok(()),
            usage,
            trail: Trail::default(),
            consent: <_>::default(),
        };
        let mut bill = Bill::new(&audit, &mount, Some(record));
        // More than a hundredth of a processor over ten seconds.
        let work = Duration::from_millis(120);
        bill.charge(1 << 20, || {
            let before = thread_time();
            while thread_time() - before < work {}
        });
        let admission = Admission::new(1, Budget::new(1 << 30));
        assert!(admission.admit(&mount.gate, &Operation::Describe, None).await.is_err(), "the mount does not owe it");
        assert!(written.0.lock().unwrap().is_empty(), "it is not over");
        drop((bill, audit));
        let line: serde_json::Value = serde_json::from_slice(&written.0.lock().unwrap()).unwrap();
        assert!(line["usage"]["cpu_micros"].as_u64().unwrap() >= 120_005, "{line}");
    }
}
