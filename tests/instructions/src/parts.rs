//! A whole gateway in this process, with 1,003 mounts. 1,000 of them have only a name. The others mount `guest_sized`: the
//! paths read from them and list them.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use belljar::catalog::{Catalog, Mount, Snapshot};
use belljar::config::Watch;
use belljar::gateway::Gateway;
use belljar::gateway::consent::ConsentManager;
use belljar::gateway::request_states::RequestStates;
use belljar::gateway::subscriptions::Subscriptions;
use belljar::grants::{Ambient, GrantConfig, MountGrants};
use belljar::limits::memory_budget::MemoryBudget;
use belljar::limits::{Admission, Gate};
use belljar::mcp::Handler;
use belljar::mcp::cursor::Cursors;
use belljar::model::{Digest, Limits, MountName};
use belljar::policy::{Evidence, authenticate};
use belljar::sandbox::{
    Compiler, Executor, LoadedMount, MountId, NotCompiled, Place, Processors, Sandbox, SandboxOptions, WorkerSettings,
    WorkerStarter, compile,
};
use belljar::telemetry::{LineChain, RecordFormat, Sink};

/// The number of mounts without a component. No path reads from them.
pub(crate) const IDLE: usize = 1000;

/// The number of entries in the mount with a long list. They fill three pages.
const ENTRIES: u32 = 3000;

/// The most concurrent calls. Each call reserves address space, and valgrind does not have enough for two calls.
const CALLS: u32 = 1;

/// The parts of the gateway that the paths use.
pub(crate) struct Parts {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) handler: Handler,
    catalog: Arc<Catalog>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Admits the calls that a path makes without the gateway.
    pub(crate) admission: Admission,
    pub(crate) gate: Gate,
    /// The mount whose reads return the requested number of bytes.
    pub(crate) sized: MountId,
    /// The mount with the long list.
    pub(crate) long: MountName,
}

/// Compiles a component in this process.
pub(crate) fn compiled(wasm: &[u8]) -> Vec<u8> {
    compile(wasm, Processors::Own).expect("a component")
}

/// The compiled code of the only component.
struct Compiled(Vec<u8>);

impl Compiler for Compiled {
    fn compile(&self, _wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// Limits whose times no path reaches, although valgrind makes a call fifty times slower.
fn limits() -> Limits {
    let long = Duration::from_secs(3600);
    Limits { time: long, queue: long, cpu: 1_000_000, ..Limits::default() }
}

/// The grant of one environment variable.
fn variable(name: &str, value: String) -> MountGrants {
    let mut config = GrantConfig::default();
    let entries = toml::Table::from_iter([(name.to_owned(), value.into())]);
    config.set("env", toml::Value::Table(entries)).expect("a kind of grants").expect("variables");
    config.configure(&Ambient::default()).expect("a variable")
}

fn name(of: &str) -> MountName {
    MountName::new(of).expect("a name")
}

fn mount(of: &str, digest: Digest, loaded: LoadedMount) -> Arc<Mount> {
    Arc::new(Mount { digest, loaded, ..Mount::plain(name(of), &format!("belljar://{of}/"), limits()) })
}

fn budget() -> Arc<MemoryBudget> {
    MemoryBudget::new(512 << 20)
}

/// A record whose lines are made as in a server, and discarded.
pub(crate) fn record() -> Sink {
    Sink::to_writer(RecordFormat::new(LineChain::new([0; 8])), std::io::sink()).expect("a thread")
}

fn gateway(catalog: &Arc<Catalog>, sandbox: &Arc<Sandbox>, audit: Sink) -> Gateway {
    Gateway::new(
        Arc::clone(catalog),
        Executor::Local(Arc::clone(sandbox)),
        Admission::new(CALLS as usize, budget()),
        audit,
        ConsentManager::new(RequestStates::new(&[0; 32], None), None),
        Subscriptions::new(Watch::default(), None),
        Duration::from_secs(3600),
    )
}

impl Parts {
    /// Another gateway over the same mounts.
    pub(crate) fn gateway_with(&self, audit: Sink) -> Gateway {
        gateway(&self.catalog, &self.sandbox, audit)
    }

    /// Serves a gateway.
    pub(crate) fn handler_of(gateway: &Arc<Gateway>) -> Handler {
        let cursors = Arc::new(Cursors::new(&[0; 32]));
        Handler::new(Arc::clone(gateway), cursors, "stdio", authenticate(Evidence::OwnUser))
    }
}

/// The worker of the mount `apart`.
pub(crate) struct ApartWorker {
    pub(crate) starter: Arc<dyn WorkerStarter>,
    /// The length of an environment variable of the mount, which each call carries to the worker, in bytes. 0 is none.
    pub(crate) variable: usize,
}

/// Builds the gateway around the component `guest_sized` and its compiled code.
pub(crate) async fn parts(wasm: &[u8], code: Vec<u8>, worker: ApartWorker) -> Parts {
    let workers = WorkerSettings { starter: worker.starter, total_memory: 512 << 20, needs_wall: false };
    let options = SandboxOptions {
        calls: CALLS,
        cache: None,
        descriptors: 1024,
        compiler: Arc::new(Compiled(code)),
        workers: Some(workers),
    };
    let sandbox = Arc::new(Sandbox::new(options).expect("a sandbox"));
    let digest = Digest::of(wasm);
    let plain = GrantConfig::default().configure(&Ambient::default()).expect("no grants");
    let counting = variable("SIZED_COUNT", ENTRIES.to_string());
    let loaded = sandbox.load(&name("sized"), wasm.into(), &digest, plain).await.expect("the component is loaded");
    let again = sandbox
        .load_again(&name("long"), &loaded, counting, Place::Here)
        .expect("the component is loaded a second time");
    let grants = match worker.variable {
        0 => GrantConfig::default().configure(&Ambient::default()).expect("no grants"),
        length => variable("LONG", "x".repeat(length)),
    };
    let apart = sandbox
        .load_again(&name("apart"), &loaded, grants, Place::SharedWorker(&limits()))
        .expect("the component is loaded a third time");
    let sized = loaded.id();
    let idle = |n| mount(&format!("idle-{n:04}"), Digest::of(b""), LoadedMount::none());
    let mut mounts: Vec<_> = (0..IDLE).map(idle).collect();
    mounts.extend([mount("sized", digest, loaded), mount("long", digest, again), mount("apart", digest, apart)]);

    let catalog = Arc::new(Catalog::new(budget()));
    catalog.publish(Snapshot::new(mounts, Vec::new()));
    catalog.mark_loaded();
    let snapshot = catalog.snapshot();
    let gateway = Arc::new(gateway(&catalog, &sandbox, record()));
    Parts {
        handler: Parts::handler_of(&gateway),
        sandbox,
        gateway,
        catalog,
        snapshot,
        admission: Admission::new(CALLS as usize, budget()),
        gate: Gate::new(name("sized"), limits()),
        sized,
        long: name("long"),
    }
}
