//! Tests of spare instances, with components that are written by hand.

use std::pin::Pin;
use std::time::SystemTime;

use tokio::time::timeout;

use super::*;
use crate::interfaces::resources::Read;
use crate::interfaces::{Reply, Request};
use crate::limits::progress::channel;
use crate::limits::{Admission, CallOrigin, Gate};
use crate::model::error::{Limit, LimitKind};
use crate::model::waiting::{EVENT_TIME, wait_until};
use crate::model::{Body, Digest, MountName, ReadError};
use crate::policy::{Action, Evidence, Policy, Target, authenticate};
use crate::sandbox::loaded_mount::LoadedMount;
use crate::sandbox::local::{Sandbox, SandboxOptions};
use crate::sandbox::spec::{CallSpec, Outcome};
use crate::sandbox::{Compiler, NotCompiled, Processors, compile};

/// A component with belljar's interface around a core module; see there.
const SHELL: &str = include_str!("../../../../tests/integration/support/shell.wat");

/// Room for this many calls.
const CALLS: u32 = 4;

/// More memory than a read needs, in bytes.
const PLENTY: u64 = 64 << 20;

struct InProcess;

impl Compiler for InProcess {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async move { compile(&wasm, Processors::Own).map_err(|why| NotCompiled::permanent(why.to_string())) })
    }
}

/// A provider with 1 MiB of memory. Each read adds one to the first letter of its text, `fine`. `before` and `fields`: more
/// definitions in the component and in its core module, which gets `$now` of the component.
fn component(before: &str, fields: &str) -> Vec<u8> {
    let with = if before.is_empty() { "" } else { r#"(with "c" (instance (export "now" (func $now))))"# };
    let (imports, fields) = match before.is_empty() {
        true => ("", fields),
        false => fields.split_at(fields.find("(func $s").unwrap()),
    };
    let parts = format!(
        r#"{before}
        (core module $hand
          {imports}
          (memory (export "memory") 16)
          (data (i32.const 128) "\00\00\00\00\a0\00\00\00\01\00\00\00")
          (data (i32.const 180) "\00\00\00\00\e0\00\00\00\04\00\00\00")
          (data (i32.const 224) "fine")
          {fields}
          (func (export "describe") (result i32) (i32.const 0))
          (func (export "list-resources") (param i32 i32 i32) (result i32) (i32.const 0))
          (func (export "list-templates") (result i32) (i32.const 0))
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
          (func (export "read") (param i32 i32) (result i32)
            (i32.store (i32.const 160) (local.get 0))
            (i32.store (i32.const 164) (local.get 1))
            (i32.store8 (i32.const 224) (i32.add (i32.load8_u (i32.const 224)) (i32.const 1)))
            (i32.const 128)))
        (core instance $main (instantiate $hand {with}))"#
    );
    wat::parse_str(SHELL.replace("{{parts}}", &parts).replace("{{lift}}", "")).unwrap()
}

/// A sandbox with one mount.
struct Called {
    sandbox: Sandbox,
    loaded: LoadedMount,
}

impl Called {
    async fn new(fields: &str) -> Self {
        Self::with("", fields).await
    }

    async fn with(before: &str, fields: &str) -> Self {
        Self::granted(component(before, fields), GrantConfig::default()).await
    }

    async fn granted(wasm: Vec<u8>, grants: GrantConfig) -> Self {
        let compiler = Arc::new(InProcess);
        let options = SandboxOptions { calls: CALLS, cache: None, descriptors: 8, compiler, workers: None };
        let sandbox = Sandbox::new(options).unwrap();
        let grants = grants.configure(&Ambient::default()).unwrap();
        let loaded = sandbox.load(&name(), wasm.as_slice().into(), &Digest::of(&wasm), grants).await.unwrap();
        Self { sandbox, loaded }
    }

    /// True if `is_so` of the slot.
    fn slot(&self, is_so: fn(&SlotState) -> bool) -> bool {
        is_so(&self.sandbox.mapped(&self.loaded).0.spare.lock())
    }

    /// Makes a spare instance for a slot. False if none was made.
    fn make(&self, slot: &Arc<SpareSlot>) -> bool {
        let spares = &self.sandbox.spares;
        let (mount, exports) = self.sandbox.mapped(&self.loaded);
        let now = Instant::now();
        drop(slot.take(now));
        assert!(slot.take(now).is_none(), "the second call is one of often");
        spares.make(&mount.name, slot, &exports);
        slot.take(now).is_some()
    }

    /// A slow machine needs several reads: they are often only if they follow each other closely.
    async fn read_until_there_is_a_spare_instance(&self) {
        let began = Instant::now();
        while self.slot(|slot| slot.spare.is_none()) {
            assert!(began.elapsed() < EVENT_TIME, "there is no spare instance");
            self.read(PLENTY).await;
        }
    }

    /// The outcome of a read with `memory` bytes of memory. Its instance is removed.
    async fn read(&self, memory: u64) -> Outcome {
        let outcome = self.answer(memory, &CallRecord::default()).await;
        yield_now().await;
        // A read that took long ended in the slow pool.
        let is_removed = || self.sandbox.spares.waiting.load(Ordering::Relaxed) == 0;
        wait_until("the instance is removed", is_removed).await;
        outcome
    }

    /// The outcome of a read as soon as it is known.
    async fn answer(&self, memory: u64, record: &CallRecord) -> Outcome {
        let request = Request::from(Read { reference: "x".to_owned() });
        let target = Target { mount: &name(), base: "belljar://m/", reference: request.reference() };
        let principal = authenticate(Evidence::OwnUser);
        let access = Policy::default().authorize(&principal, Action::Read, target, SystemTime::now()).unwrap();
        let gate = Gate::new(name(), Limits { memory, time: EVENT_TIME, ..Limits::default() });
        let admission = Admission::new(1, MemoryBudget::new(1 << 30));
        let permit = admission.admit(access, &gate, CallOrigin::default(), &request, None).await.unwrap();
        let spec = CallSpec::new(&permit, self.loaded.id(), request);
        self.sandbox.call(spec, permit, record).await
    }
}

fn name() -> MountName {
    MountName::new("m").unwrap()
}

fn text(outcome: &Outcome) -> &str {
    match outcome.result.as_ref().unwrap() {
        Reply::Read(reading) => match &reading.contents[0].body {
            Body::Text(text) => text,
            Body::Blob(_) => panic!("bytes"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_mount_that_is_called_often_has_a_spare_instance_and_each_serves_one_call() {
    let called = Called::new("").await;
    let first = called.read(PLENTY).await;
    assert_eq!(text(&first), "gine");
    assert!(called.slot(|slot| slot.spare.is_none()), "one call is not often");
    for _ in 0..5 {
        called.read_until_there_is_a_spare_instance().await;
        let next = called.read(PLENTY).await;
        assert_eq!(text(&next), "gine");
        let used = |outcome: &Outcome| (outcome.usage.fuel, outcome.usage.memory, outcome.usage.bytes);
        assert_eq!(used(&next), used(&first));
    }
    called.read_until_there_is_a_spare_instance().await;
    let slot = Arc::downgrade(&called.sandbox.mapped(&called.loaded).0.spare);
    drop(called.loaded);
    let is_removed = || slot.strong_count() == 0 && called.sandbox.spare_instances() == 0;
    wait_until("it is removed with its mount", is_removed).await;
}

#[tokio::test]
async fn the_memory_of_a_spare_instance_counts_for_its_call() {
    let called = Called::new("").await;
    let expected = Limit { kind: LimitKind::Memory, used: 1 << 20, cap: 1 << 19 };
    for is_spare in [false, true, true] {
        if is_spare {
            called.read_until_there_is_a_spare_instance().await;
        }
        let refused = called.read(1 << 19).await.result;
        assert!(matches!(refused, Err(ReadError::Exhausted(limit)) if limit == expected), "{is_spare}: {refused:?}");
    }
}

#[tokio::test]
async fn code_that_runs_at_the_start_is_paid_by_the_call() {
    let plain = Called::new("").await.read(PLENTY).await.usage.fuel;
    let called =
        Called::new("(func $s (memory.fill (i32.const 8192) (i32.const 1) (i32.const 1000))) (start $s)").await;
    let first = called.read(PLENTY).await.usage.fuel;
    assert!(first > plain + 1000, "{plain} {first}");
    called.read_until_there_is_a_spare_instance().await;
    assert_eq!(called.read(PLENTY).await.usage.fuel, first);
}

/// Code that has no end, that traps, and that needs the host, which would answer it as its call's grants say.
#[tokio::test]
async fn a_component_that_needs_more_at_its_start_has_no_spare_instance() {
    let clock = r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
        (core func $now (canon lower (func $clock "now")))"#;
    let endless =
        "(func $s (local $i i32) (loop (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 100000))))) (start $s)";
    for (before, fields, is_served) in [
        ("", endless, true),
        ("", "(func $s unreachable) (start $s)", false),
        (clock, "(import \"c\" \"now\" (func $now (result i64))) (func $s (drop (call $now))) (start $s)", true),
    ] {
        let called = Called::with(before, fields).await;
        for _ in 0..4 {
            assert_eq!(called.read(PLENTY).await.result.is_ok(), is_served, "{fields}");
            assert!(called.slot(|slot| slot.spare.is_none()), "{fields}");
        }
    }
}

/// Writes to each page of 16 MiB: little fuel, but much time.
#[tokio::test]
async fn a_component_that_takes_long_at_its_start_has_no_spare_instance() {
    let writes: String =
        (0..8).map(|page| format!("(i32.store8 offset={} (local.get $i) (i32.const 1))", page * 4096)).collect();
    let called = Called::new(&format!(
        "(func $s (local $i i32) (drop (memory.grow (i32.const 240))) (local.set $i (i32.const 65536))
        (loop {writes}
        (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 32768))) (i32.const 16777216)))))
        (start $s)"
    ))
    .await;
    let slot = Arc::<SpareSlot>::default();
    for slow in 1..=MAX_SLOW {
        called.make(&slot);
        assert_eq!(slot.lock().slow, slow);
    }
    assert!(!called.make(&slot));
    assert_eq!(text(&called.read(PLENTY).await), "gine");
}

#[tokio::test]
async fn no_spare_instance_is_made_while_another_call_runs() {
    let called = Called::new("").await;
    let other = called.sandbox.ticker.start_call();
    for _ in 0..5 {
        called.read(PLENTY).await;
        assert!(called.slot(|slot| slot.spare.is_none()));
    }
    drop(other);
    called.read_until_there_is_a_spare_instance().await;
}

#[tokio::test]
async fn a_process_has_only_so_many_spare_instances() {
    let called = Called::new("").await;
    let spares = &called.sandbox.spares;
    let is_made = || called.make(&Arc::default());
    let others: Vec<_> = (0..spares.most).map(|_| Counted::new(&spares.count, spares.most).unwrap()).collect();
    assert!(!others.is_empty() && !is_made());
    drop(others);
    // On a slow machine, it may be removed before it is taken.
    wait_until("there is room", is_made).await;
}

#[tokio::test]
async fn a_call_gives_back_its_grants_before_its_answer() {
    let granted = GrantConfig { env: toml::from_str("A = 'b'").unwrap(), ..GrantConfig::default() };
    let granted = Called::granted(component("", ""), granted).await;
    let plain = Called::new("").await;
    let mut later = 0;
    let began = Instant::now();
    // A call that took long ended in the slow pool. What it holds may then be given back at any time.
    while later < 3 {
        assert!(began.elapsed() < EVENT_TIME, "no call without grants keeps its instance until after its answer");
        assert!(gives_back_before_its_answer(&granted).await);
        later += u32::from(!gives_back_before_its_answer(&plain).await);
    }
}

async fn gives_back_before_its_answer(called: &Called) -> bool {
    // What a call holds has its record, and the record has the only sender.
    let (record, (sender, mut progress)) = (CallRecord::default(), channel());
    record.set_progress(sender);
    assert_eq!(text(&called.answer(PLENTY, &record).await), "gine");
    drop(record);
    let is_closed = progress.is_closed();
    assert!(timeout(EVENT_TIME, progress.recv()).await.is_ok_and(|report| report.is_none()), "it is never given back");
    is_closed
}

#[tokio::test]
async fn an_unused_spare_instance_is_removed() {
    let called = Called::new("").await;
    called.read_until_there_is_a_spare_instance().await;
    wait_until("it is removed", || called.sandbox.spare_instances() == 0).await;
    assert_eq!(text(&called.read(PLENTY).await), "gine");
}

#[tokio::test]
async fn a_spare_instance_gives_its_slot_to_a_call() {
    let called = Called::new("").await;
    called.read_until_there_is_a_spare_instance().await;
    let spares = &called.sandbox.spares;
    let (mount, exports) = called.sandbox.mapped(&called.loaded);
    let mut stores = Vec::new();
    for place in 0..=CALLS {
        let account = MemoryAccount::new(MEMORY, Allowance::of(&spares.budget));
        let mut store = spares.store(spares.unused_data(&mount.name, account));
        let made = spares.instance(None, &exports, &mut store).await;
        assert_eq!(made.is_ok(), place < CALLS, "{place} of {CALLS} slots are in use: {:?}", made.err());
        stores.push(store);
    }
    assert!(called.slot(|slot| slot.spare.is_none()));
}
