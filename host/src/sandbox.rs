//! Where a guest runs: a fresh store for every call, bounded by a permit, dropped when the call ends.
//!
//! What passes in and out is plain data: bytes, names, a permit, an operation, an outcome. No handle, closure or type of
//! wasmtime crosses this line, so that the sandbox can move into a process of its own.
//!
//! Must not know: MCP, catalogs, URIs. A call cannot be made without a [`Permit`], which only admission gives.

mod bindings;
mod call;
mod compile;
mod component;
mod crossing;
mod descriptors;
mod engine;
mod host_memory;
mod lane;
mod meter;
mod output;
mod progress;
mod state;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::admission::Permit;
use crate::grants::{self, Held, SharedTrail};
use crate::model::{Digest, Guard, MountName, Operation, Outcome, ReadError, text};

pub use compile::{CodeStore, Compile, NotCompiled, Signatures, compile, read_capped};
pub use component::{NotAProvider, Profile};
pub use progress::COMPILING;

/// What a sandbox is made of.
pub struct Options {
    /// Calls at once, over all mounts, those included whose callers were answered and whose threads hang.
    pub calls: u32,
    /// Where compiled code is kept; directories that only this user can read and write. None: it is compiled anew each time.
    pub cache: Option<CodeStore>,
    /// File descriptors that all calls together may hold: the process needs some to serve with.
    pub descriptors: usize,
    /// Compiles components.
    pub compiler: Arc<dyn Compile>,
}

/// A loaded mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MountId(u64);

impl MountId {
    /// One that names no mount: a call to it is refused.
    pub fn none() -> Self {
        Self(0)
    }

    /// As a number: no other mount of this process has it, before or after.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What was loaded for a mount, until this is dropped: whoever has it can call, whatever is served in its place by then.
/// Calls that run go on.
pub struct Loaded {
    id: MountId,
    all: Weak<Mounts>,
}

impl Loaded {
    /// Nothing: a call to it is refused.
    pub fn none() -> Self {
        Self { id: MountId::none(), all: Weak::new() }
    }

    /// What a call names.
    pub fn id(&self) -> MountId {
        self.id
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            let gone = all.write().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
            // Closed outside of the lock: it may have files.
            drop(gone);
        }
    }
}

/// All that is loaded.
type Mounts = RwLock<HashMap<MountId, Arc<Mounted>>>;

/// What the sandbox keeps of a mount.
struct Mounted {
    name: MountName,
    ready: Arc<bindings::Ready>,
    held: Held,
    /// What its handles are drawn from, where descriptors are behind them.
    descriptors: Option<Arc<descriptors::Descriptors>>,
    /// What it put into the log lately.
    said: output::Rate,
}

/// The sandbox. One for a process.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<state::State>,
    lanes: lane::Lanes,
    ticker: engine::Ticker,
    cache: Option<compile::Cache>,
    descriptors: Arc<descriptors::Descriptors>,
    compiler: Arc<dyn Compile>,
    mounts: Arc<Mounts>,
    next: AtomicU64,
}

impl Sandbox {
    /// Makes the engine and links every host function.
    ///
    /// # Errors
    /// When the machine cannot give what the engine needs (address space, a thread).
    pub fn new(options: Options) -> Result<Self, String> {
        let failed = |error: wasmtime::Error| format!("cannot start the WebAssembly engine: {error:#}");
        let engine = engine::host(options.calls).map_err(|error| {
            let why = failed(error);
            format!(
                "{why}; it sets address space aside for each call: lower \"calls\", or lift a limit on it (ulimit -v)"
            )
        })?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(failed)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker).map_err(failed)?;
        // What the host keeps is charged to the call, and grants are stricter than what they replace.
        linker.allow_shadowing(true);
        host_memory::link(&mut linker).map_err(failed)?;
        grants::link(&mut linker).map_err(failed)?;
        linker.allow_shadowing(false);
        let ticker =
            engine::Ticker::start(&engine).map_err(|error| format!("cannot start the epoch thread: {error}"))?;
        let lanes = lane::Lanes::start().map_err(|error| format!("cannot start threads for long calls: {error}"))?;
        let cache = options.cache.map(|kept| compile::Cache::new(kept, &engine));
        Ok(Self {
            engine,
            linker,
            lanes,
            ticker,
            cache,
            descriptors: descriptors::Descriptors::new(options.descriptors, options.calls),
            compiler: options.compiler,
            mounts: Arc::default(),
            next: AtomicU64::new(1),
        })
    }

    /// Compiles (or finds in the cache) and links a component for a mount. No code of it runs.
    ///
    /// # Errors
    /// Says why it cannot be mounted; sanitised.
    pub async fn load(&self, name: &MountName, wasm: Arc<[u8]>, digest: &Digest, held: Held) -> Result<Loaded, String> {
        let component = match self.cached(digest) {
            Some(component) => component,
            None => self.compile(name, wasm, digest).await?,
        };
        self.link(name, &component, held)
    }

    /// The same for a component whose compiled code is in the cache; nothing, where it has to be compiled. Blocks for as
    /// long as reading takes.
    ///
    /// # Errors
    /// As [`Sandbox::load`].
    pub fn load_cached(&self, name: &MountName, digest: &Digest, held: Held) -> Result<Option<Loaded>, String> {
        match self.cached(digest) {
            Some(component) => self.link(name, &component, held).map(Some),
            None => self.cache.as_ref().and_then(|cache| cache.refusal(digest)).map_or(Ok(None), Err),
        }
    }

    fn link(&self, name: &MountName, component: &Component, held: Held) -> Result<Loaded, String> {
        let refused = |error: wasmtime::Error| {
            format!("it does not fit the interface: {}", text::excerpt(&format!("{error:#}"), 400))
        };
        let pre = self.linker.instantiate_pre(component).map_err(refused)?;
        let ready = bindings::Ready::new(pre).map_err(refused)?;
        Ok(self.put(name, Arc::new(ready), held))
    }

    /// Loads for a mount what was loaded already, with other grants or under another name: nothing is compiled.
    pub fn load_again(&self, name: &MountName, loaded: &Loaded, held: Held) -> Option<Loaded> {
        let ready = Arc::clone(&self.mounted(loaded.id)?.ready);
        Some(self.put(name, ready, held))
    }

    fn put(&self, name: &MountName, ready: Arc<bindings::Ready>, held: Held) -> Loaded {
        let id = MountId(self.next.fetch_add(1, Ordering::Relaxed));
        let descriptors = held.has_files().then(|| Arc::clone(&self.descriptors));
        let mounted = Arc::new(Mounted { name: name.clone(), ready, held, descriptors, said: output::Rate::default() });
        self.mounts.write().unwrap_or_else(PoisonError::into_inner).insert(id, mounted);
        Loaded { id, all: Arc::downgrade(&self.mounts) }
    }

    fn mounted(&self, id: MountId) -> Option<Arc<Mounted>> {
        self.mounts.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    async fn compile(&self, name: &MountName, wasm: Arc<[u8]>, digest: &Digest) -> Result<Component, String> {
        if let Some(why) = self.cache.as_ref().and_then(|cache| cache.refusal(digest)) {
            return Err(why);
        }
        let started = std::time::Instant::now();
        let size = wasm.len() as u64;
        let compiled = progress::told(name, size, self.compiler.compile(wasm)).await;
        let code = compiled.map_err(|NotCompiled { why, lasting }| {
            if let Some(cache) = self.cache.as_ref().filter(|_| lasting)
                && let Err(error) = cache.refuse(digest, &why)
            {
                tracing::warn!(
                    "cannot remember what does not compile: {error}; it will be tried again at the next start"
                );
            }
            why
        })?;
        progress::ended(name, started.elapsed(), code.len() as u64);
        if let Some(cache) = &self.cache
            && let Err(error) = cache.store(digest, &code)
        {
            tracing::warn!("cannot keep compiled code: {error}; it will be compiled again at the next start");
        }
        // From the cache it is mapped, and shared with the kernel's; without one it is copied.
        let loaded = self.cached(digest).map_or_else(|| compile::load_fresh(&self.engine, &code), Ok);
        loaded
            .map_err(|error| format!("its compiled code does not load: {}", text::excerpt(&format!("{error:#}"), 300)))
    }

    /// Whether a component can be loaded, or refused, without compiling it.
    pub fn knows(&self, digest: &Digest) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.knows(digest))
    }

    /// Bytes of a component's compiled code in the cache.
    pub fn code_len(&self, digest: &Digest) -> Option<u64> {
        self.cache.as_ref()?.len(digest)
    }

    /// Removes compiled code that nobody has asked for in a long time. For when everything is loaded.
    pub fn tidy(&self) {
        if let Some(Err(error)) = self.cache.as_ref().map(compile::Cache::tidy) {
            tracing::warn!("cannot tidy up compiled code: {error}");
        }
    }

    fn cached(&self, digest: &Digest) -> Option<Component> {
        let cache = self.cache.as_ref()?;
        cache.load(&self.engine, digest).unwrap_or_else(|error| {
            tracing::warn!(%digest, "compiled code in the cache does not load: {error:#}; compiling again");
            cache.forget(digest);
            None
        })
    }

    /// Runs one operation in a fresh instance. Dropping the future stops the guest and frees everything it had.
    pub async fn call(&self, id: MountId, permit: Permit, operation: Operation) -> Outcome {
        self.call_noting(id, permit, operation, &SharedTrail::default()).await
    }

    /// The same, noting on `trail` what the call decides and uses while it runs: whoever holds it knows that also of a call
    /// that was withdrawn, or does not come back.
    pub async fn call_noting(&self, id: MountId, permit: Permit, operation: Operation, trail: &SharedTrail) -> Outcome {
        let Some(mounted) = self.mounted(id) else {
            return Outcome::failed(ReadError::Unavailable("the mount is not loaded".to_owned()));
        };
        let running = self.ticker.run();
        let engine = self.engine.clone();
        let progress = Arc::<lane::Progress>::default();
        let permit = Arc::new(permit);
        let (own, noted) = (Arc::clone(&progress), trail.clone());
        if mounted.held.may_stall() && Guard::Apart.is_on() {
            // Given back when the caller is answered, also when the thread hangs on.
            let _turn = match permit.detach() {
                Ok(turn) => turn,
                Err(error) => return Outcome::failed(error),
            };
            let (name, deadline, late) = (mounted.name.clone(), permit.deadline(), permit.out_of_time());
            own.thread.give();
            let call = async move || {
                let _running = running;
                call::run(&engine, &mounted, &permit, &operation, &own, &noted).await
            };
            return lane::apart::run(&name, deadline, late, trail, call).await;
        }
        let is_quick = permit.is_quick();
        let (own_mount, own_permit) = (Arc::clone(&mounted), Arc::clone(&permit));
        let late = || {
            let (deadline, limit, trail) = (own_permit.deadline(), own_permit.out_of_time(), trail.clone());
            // The turn goes back with what is returned here, whatever the thread does.
            let turn = own_permit.detach()?;
            Ok(lane::Late { mount: own_mount.name.clone(), deadline, limit, trail, turn })
        };
        let call: lane::Call = Box::pin(async move {
            let _running = running;
            call::run(&engine, &mounted, &permit, &operation, &own, &noted).await
        });
        let mut outcome = self.lanes.run(call, is_quick, progress, late).await;
        if let Err(error @ ReadError::Internal(_)) = &mut outcome.result {
            // It ended outside of itself: a lane knows neither what the call used nor what it may tell.
            crossing::error(error, own_mount.held.redactor());
            (outcome.usage, outcome.trail) = (trail.usage(), trail.take());
        }
        outcome
    }

    /// Ends all calls that go on beside the runtime that serves, before that one is ended; waits for at most `within`. To be
    /// called from outside of every runtime.
    pub fn end_calls(&self, within: Duration) {
        self.lanes.shut(within);
    }

    /// How many mounts are loaded, those included that only a call still uses.
    pub fn mounts(&self) -> usize {
        self.mounts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many calls run now.
    pub fn calls(&self) -> usize {
        self.ticker.calls()
    }
}
