//! The cost of an answer until it is sent.
//!
//! The host works on an answer after its call has ended. That work is charged to the mount and added to the call's
//! record. The record is written when the [`ResponseCost`] is dropped.

use std::sync::Arc;
use std::time::Duration;

use super::call_group::CallGroup;
use crate::catalog::Mount;
use crate::limits::cpu_timer::measure;
use crate::model::ReadError;
use crate::telemetry::{Event, Sink};

/// Charges the host's work on one answer. See the module.
pub struct ResponseCost {
    audit: Sink,
    /// The group that the call belongs to.
    group: Option<CallGroup>,
    mount: Arc<Mount>,
    /// `None` if audit is off.
    record: Option<Box<Event>>,
}

impl ResponseCost {
    /// The cost of an answer of `mount`.
    pub(super) fn new(audit: &Sink, mount: &Arc<Mount>, record: Option<Event>) -> Self {
        Self { audit: audit.clone(), group: None, mount: Arc::clone(mount), record: record.map(Box::new) }
    }

    /// The same for a call of a group. The group's record then includes `record`.
    pub(super) fn in_group(group: &CallGroup, mount: &Arc<Mount>, record: Option<Event>) -> Self {
        let mut cost = Self::new(group.audit(), mount, record);
        cost.group = Some(group.clone());
        cost
    }

    /// Does work on `bytes` bytes of the answer on this thread, and charges it.
    pub fn charge<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let (done, time) = measure(bytes, work);
        self.add(time);
        done
    }

    /// Records that the answer was refused after its call.
    pub(super) fn fail(&mut self, error: &ReadError) {
        if let Some(record) = &mut self.record {
            record.outcome = Err(error.clone().into());
        }
    }

    /// Charges work that is already done.
    pub fn add(&mut self, time: Duration) {
        self.mount.gate.charge_cpu(time);
        if let Some(record) = &mut self.record {
            record.usage.cpu += time;
        }
    }
}

impl Drop for ResponseCost {
    fn drop(&mut self) {
        match (self.record.take(), &self.group) {
            (Some(record), Some(group)) => group.add(*record),
            (Some(record), None) => self.audit.record(*record),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use super::*;
    use crate::interfaces::Request;
    use crate::interfaces::resources::Describe;
    use crate::limits::cpu_timer::thread_time;
    use crate::limits::{Admission, CallOrigin, memory_budget::MemoryBudget};
    use crate::model::{Limits, MountName, Usage};
    use crate::policy::{Action, Caller, Evidence, Policy, Target, authenticate};
    use crate::telemetry::{LineChain, RecordFormat};

    #[derive(Clone, Default)]
    struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for WrittenBytes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_for_an_answer_is_recorded_and_charged_to_its_mount() {
        let written = WrittenBytes::default();
        let audit = Sink::to_writer(RecordFormat::new(LineChain::new([0; 8])), written.clone()).unwrap();
        let limits = Limits { cpu: 1, queue: Duration::from_millis(1), ..Limits::default() };
        let mount = Arc::new(Mount::plain(MountName::new("m").unwrap(), "belljar://m/", limits));
        let usage = Usage { cpu: Duration::from_micros(5), ..Usage::default() };
        let caller = Caller::new(authenticate(Evidence::OwnUser), "cli");
        let record = Event { usage, ..Event::new(caller.clone(), "read", Ok(())) };
        let mut cost = ResponseCost::new(&audit, &mount, Some(record));
        // More than 1 % of a processor over ten seconds.
        let work = Duration::from_millis(120);
        cost.charge(1 << 20, || {
            let before = thread_time();
            while thread_time() - before < work {}
        });
        let admission = Admission::new(1, MemoryBudget::new(1 << 30));
        let target = Target { mount: &mount.name, base: &mount.base, reference: None };
        let now = std::time::SystemTime::now();
        let access = Policy::default().authorize(&caller.principal, Action::Describe, target, now).unwrap();
        let call = Request::from(Describe);
        let admitted = admission.admit(access, &mount.gate, CallOrigin::default(), &call, None).await;
        assert!(admitted.is_err(), "the mount is not charged");
        assert!(written.0.lock().unwrap().is_empty(), "written before the cost was dropped");
        drop((cost, audit));
        let line: serde_json::Value = serde_json::from_slice(&written.0.lock().unwrap()).unwrap();
        assert!(line["usage"]["cpu_micros"].as_u64().unwrap() >= 120_005, "{line}");
    }
}
