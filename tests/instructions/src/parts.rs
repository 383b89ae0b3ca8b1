//! A whole gateway in this process: 1,000 mounts that only have names, and two that are read from and listed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use belljar::admission::budget::Budget;
use belljar::admission::{Admission, Gate};
use belljar::audit::Sink;
use belljar::catalog::{Catalog, Mount, Snapshot};
use belljar::config::Watch;
use belljar::gateway::Gateway;
use belljar::gateway::consent::Consents;
use belljar::gateway::watching::Watching;
use belljar::grants::{Ambient, Requested};
use belljar::mcp::Handler;
use belljar::mcp::cursor::Cursors;
use belljar::model::{Digest, Limits, MountName};
use belljar::sandbox::{Compile, Loaded, MountId, NotCompiled, Options, Sandbox, compile};

/// Mounts that are there to be passed over.
pub(crate) const IDLE: usize = 1000;

/// Entries of the mount with a long list: three pages.
const ENTRIES: u32 = 3000;

/// Calls at once: no more, because the address space that each sets aside is more than valgrind has for two.
const CALLS: u32 = 1;

pub(crate) struct Parts {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) handler: Handler,
    pub(crate) snapshot: Arc<Snapshot>,
    /// For calls that no gateway makes.
    pub(crate) admission: Admission,
    pub(crate) gate: Gate,
    /// The mount that gives as many bytes as it is asked for.
    pub(crate) sized: MountId,
    /// The one with the long list.
    pub(crate) long: MountName,
}

struct Here;

impl Compile for Here {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async move { compile(&wasm).map_err(NotCompiled::always) })
    }
}

/// Valgrind makes everything fifty times slower: what is bounded by time must not end for that.
fn limits() -> Limits {
    let long = Duration::from_secs(3600);
    Limits { time: long, queue: long, cpu: 1_000_000, ..Limits::default() }
}

fn name(of: &str) -> MountName {
    MountName::new(of).expect("a name")
}

fn mount(of: &str, digest: Digest, loaded: Loaded) -> Arc<Mount> {
    Arc::new(Mount { digest, loaded, ..Mount::plain(name(of), &format!("belljar://{of}/"), limits()) })
}

/// Puts everything together around a component, `guest_sized`.
pub(crate) async fn parts(wasm: &[u8]) -> Parts {
    let options = Options { calls: CALLS, cache: None, descriptors: 1024, compiler: Arc::new(Here) };
    let sandbox = Arc::new(Sandbox::new(options).expect("a sandbox"));
    let digest = Digest::of(wasm);
    let plain = Requested::default().configure(&Ambient::default()).expect("no grants");
    let mut counting = Requested::default();
    let entries = toml::Table::from_iter([("SIZED_COUNT".to_owned(), ENTRIES.to_string().into())]);
    let set = counting.set("env", entries.into());
    set.expect("a kind of grants").expect("variables");
    let counting = counting.configure(&Ambient::default()).expect("a variable");
    let loaded = sandbox.load(&name("sized"), wasm.into(), &digest, plain).await.expect("it loads");
    let again = sandbox.load_again(&name("long"), &loaded, counting).expect("it is loaded");
    let sized = loaded.id();
    let idle = |n| mount(&format!("idle-{n:04}"), Digest::of(b""), Loaded::none());
    let mut mounts: Vec<_> = (0..IDLE).map(idle).collect();
    mounts.extend([mount("sized", digest, loaded), mount("long", digest, again)]);

    let budget = || Budget::new(512 << 20);
    let catalog = Arc::new(Catalog::new(budget()));
    catalog.publish(Snapshot::new(mounts, Vec::new()));
    catalog.settle();
    let snapshot = catalog.snapshot();
    // Records are written, as they would be, to where writing costs nothing.
    let audit = Sink::to_writer(std::io::sink()).expect("a thread");
    let gateway = Arc::new(Gateway::new(
        catalog,
        Arc::clone(&sandbox),
        Admission::new(CALLS as usize, budget()),
        audit,
        Consents::new(&[0; 32], None),
        Watching::new(Watch::default(), None),
        Duration::from_secs(3600),
    ));
    Parts {
        sandbox,
        handler: Handler::new(Arc::clone(&gateway), Arc::new(Cursors::new(&[0; 32])), "stdio"),
        gateway,
        snapshot,
        admission: Admission::new(CALLS as usize, budget()),
        gate: Gate::new(name("sized"), limits()),
        sized,
        long: name("long"),
    }
}
