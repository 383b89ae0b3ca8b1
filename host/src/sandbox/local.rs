//! The sandbox of this process: loaded mounts, and calls of them, each in a fresh store.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use wasmtime::Engine;
use wasmtime::component::Linker;

use super::compile::{self, CodeCacheConfig, CompiledCode, Compiler, NotCompiled};
use super::component_code::ComponentCode;
use super::error::{LoadError, SandboxError};
use super::huge_pages::PoolMemory;
use super::loaded_mount::{LoadedMount, MountRecord, MountRecords};
use super::mount_id::MountId;
use super::principal_cache::PrincipalCache;
use super::spare::Spares;
use super::spec::{CallSpec, Outcome};
use super::worker::message::CallExtras;
use super::worker::mount::{MountParts, WorkerMount};
use super::worker::slot::WorkerSlot;
use super::worker::starter::WorkerSettings;
use super::{
    call, call_runner, compile_progress, component_code, descriptors, engine, link, principal_mounts, store_data,
};
use crate::grants::{CallRecord, MountGrants};
use crate::interfaces;
use crate::limits::Permit;
use crate::model::{Digest, Limits, MountName, ReadError};

/// The settings of a sandbox.
pub struct SandboxOptions {
    /// Calls at once, over all mounts. Includes calls that were answered but whose threads hang.
    pub calls: u32,
    /// The cache of compiled code, in directories that only this user can read and write. `None`: components are
    /// compiled at every start.
    pub cache: Option<CodeCacheConfig>,
    /// File descriptors of all calls together. The rest of the process needs some too.
    pub descriptors: usize,
    /// The compiler.
    pub compiler: Arc<dyn Compiler>,
    /// How mounts get worker processes. `None`: all calls run in this process.
    pub workers: Option<WorkerSettings>,
}

/// Where the calls of a mount run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In this process.
    Here,
    /// In a worker process of its own. Holds the limits of the mount.
    Worker(&'a Limits),
    /// In the worker process that mounts without grants share. Holds the limits of the mount.
    SharedWorker(&'a Limits),
    /// In a worker process for each call. Holds the limits of the mount.
    WorkerForCall(&'a Limits),
}

/// The sandbox of a process.
pub struct Sandbox {
    engine: Engine,
    pool: PoolMemory,
    linker: Linker<store_data::StoreData>,
    runner: call_runner::CallRunner,
    pub(super) ticker: engine::Ticker,
    cache: Option<compile::CodeCache>,
    descriptors: Arc<descriptors::DescriptorPool>,
    compiler: Arc<dyn Compiler>,
    workers: Option<Workers>,
    mounts: Arc<MountRecords>,
    pub(super) spares: Arc<Spares>,
    next: AtomicU64,
}

/// The worker processes of a sandbox.
struct Workers {
    settings: WorkerSettings,
    /// The one that mounts without grants share.
    shared: Arc<WorkerSlot>,
}

impl Workers {
    fn new(settings: WorkerSettings, calls: u32, cache: Option<&compile::CodeCache>) -> Self {
        let code = cache.map(compile::CodeCache::handles).unwrap_or_default();
        let owner = "the mounts without grants".to_owned();
        let shared = Arc::new(WorkerSlot::new(settings.clone(), owner, calls, code, None));
        Self { settings, shared }
    }
}

/// The compiler of a worker process, which never compiles.
struct NoCompiler;

impl Compiler for NoCompiler {
    fn compile(
        &self,
        _: Arc<[u8]>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async { Err(NotCompiled::transient("a worker process compiles nothing".to_owned())) })
    }
}

impl Sandbox {
    /// Creates the engine and links every host function.
    ///
    /// # Errors
    /// If the machine lacks a resource that the engine needs (address space, a thread).
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let engine = engine::host(options.calls).map_err(SandboxError::Engine)?;
        let pool = PoolMemory::find(engine::pool_size(options.calls));
        let linker = link::linker(&engine).map_err(SandboxError::Linker)?;
        let spares = Arc::new(Spares::new(&engine, options.calls).map_err(SandboxError::Grants)?);
        let weak = Arc::downgrade(&spares);
        let remove_unused = move || weak.upgrade().iter().for_each(|spares: &Arc<Spares>| spares.remove_unused());
        let ticker = engine::Ticker::start(&engine, remove_unused).map_err(SandboxError::Epoch)?;
        let runner = call_runner::CallRunner::start().map_err(SandboxError::SlowPool)?;
        let cache = options.cache.map(|config| compile::CodeCache::new(config, &engine));
        let workers = options.workers.map(|settings| Workers::new(settings, options.calls, cache.as_ref()));
        Ok(Self {
            engine,
            pool,
            linker,
            runner,
            ticker,
            cache,
            descriptors: descriptors::DescriptorPool::new(options.descriptors, options.calls),
            compiler: options.compiler,
            workers,
            mounts: Arc::default(),
            spares,
            next: AtomicU64::new(1),
        })
    }

    /// The sandbox of a worker process, with room for `calls` calls and the file `descriptors` of all of them.
    ///
    /// # Errors
    /// As [`Sandbox::new`].
    pub(super) fn for_worker(calls: u32, descriptors: usize) -> Result<Self, SandboxError> {
        Self::new(SandboxOptions { calls, cache: None, descriptors, compiler: Arc::new(NoCompiler), workers: None })
    }

    /// Loads the compiled code in `file`, in a worker process.
    ///
    /// # Errors
    /// As [`Sandbox::load`].
    pub(super) fn load_file(
        &self,
        name: &MountName,
        file: OwnedFd,
        grants: MountGrants,
    ) -> Result<LoadedMount, LoadError> {
        let code = CompiledCode::map(&self.engine, file).map_err(|error| LoadError::code(&error))?;
        Ok(self.insert(name, self.link(code)?, grants, Place::Here))
    }

    /// Loads a component for a mount: compiles it or finds it in the cache, and links it. No code of it runs.
    ///
    /// # Errors
    /// The reason why it cannot be mounted, sanitised.
    pub async fn load(
        &self,
        name: &MountName,
        wasm: Arc<[u8]>,
        digest: &Digest,
        grants: MountGrants,
    ) -> Result<LoadedMount, LoadError> {
        let code = match self.stored(digest)? {
            Some(code) => code,
            None => self.compile(name, wasm, digest).await?,
        };
        Ok(self.insert(name, code, grants, Place::Here))
    }

    /// Loads a component whose compiled code is in the cache. `None` if it must be compiled. Blocks while it reads.
    ///
    /// # Errors
    /// As [`Sandbox::load`].
    pub fn load_cached(
        &self,
        name: &MountName,
        digest: &Digest,
        grants: MountGrants,
    ) -> Result<Option<LoadedMount>, LoadError> {
        Ok(self.stored(digest)?.map(|code| self.insert(name, code, grants, Place::Here)))
    }

    /// Links code. Keeps it mapped only if all calls run here.
    fn link(&self, code: CompiledCode) -> Result<Arc<ComponentCode>, LoadError> {
        let exports = component_code::link(&self.linker, &code.component)?;
        Ok(Arc::new(match self.workers {
            Some(_) => ComponentCode::in_file(code.file),
            None => ComponentCode::Mapped(exports),
        }))
    }

    /// Loads an already loaded component again, with other grants or under another name. Nothing is compiled.
    ///
    /// # Errors
    /// If `loaded` is no longer loaded, or its code cannot be mapped for calls in this process.
    pub fn load_again(
        &self,
        name: &MountName,
        loaded: &LoadedMount,
        grants: MountGrants,
        place: Place<'_>,
    ) -> Result<LoadedMount, LoadError> {
        let record = self.record_of(loaded.id).ok_or(LoadError::Unloaded)?;
        if place == Place::Here {
            record.code.exports(&self.engine, &self.linker)?;
        }
        Ok(self.insert(name, Arc::clone(&record.code), grants, place))
    }

    fn insert(&self, name: &MountName, code: Arc<ComponentCode>, grants: MountGrants, place: Place<'_>) -> LoadedMount {
        let id = MountId(self.next.fetch_add(1, Ordering::Relaxed));
        let descriptors = grants.opens_files().then(|| Arc::clone(&self.descriptors));
        let (grants, log_rate) = (Arc::new(grants), Arc::default());
        let limits = match place {
            Place::Here => None,
            Place::Worker(limits) | Place::SharedWorker(limits) | Place::WorkerForCall(limits) => Some(limits),
        };
        let worker = match (limits, &self.workers, code.file()) {
            (Some(limits), Some(workers), Some(file)) => {
                let (limits, code) = (limits.clone(), Arc::clone(file));
                let (grants, log_rate) = (Arc::clone(&grants), Arc::clone(&log_rate));
                let parts = MountParts { id, name: name.clone(), limits, code, grants, log_rate };
                Some(match place {
                    Place::SharedWorker(_) => WorkerMount::sharing(parts, Arc::clone(&workers.shared)),
                    Place::WorkerForCall(_) => WorkerMount::for_one_call(parts, &workers.settings),
                    _ => WorkerMount::alone(parts, &workers.settings),
                })
            }
            _ => None,
        };
        let mounted = Arc::new(MountRecord {
            name: name.clone(),
            code,
            grants,
            descriptors,
            log_rate,
            principals: PrincipalCache::default(),
            spare: Arc::default(),
            worker,
        });
        self.mounts.write().unwrap_or_else(PoisonError::into_inner).insert(id, mounted);
        LoadedMount { id, mounts: Arc::downgrade(&self.mounts) }
    }

    fn record_of(&self, id: MountId) -> Option<Arc<MountRecord>> {
        self.mounts.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// A mount and its exports, for tests.
    #[cfg(test)]
    pub(super) fn mapped(
        &self,
        loaded: &LoadedMount,
    ) -> (Arc<MountRecord>, Arc<interfaces::Exports<store_data::StoreData>>) {
        let record = self.record_of(loaded.id).unwrap();
        let exports = record.code.exports(&self.engine, &self.linker).unwrap();
        (record, exports)
    }

    /// Compiles a component and links it. Stores code that fits the interface; of other code, only the reason.
    async fn compile(
        &self,
        name: &MountName,
        wasm: Arc<[u8]>,
        digest: &Digest,
    ) -> Result<Arc<ComponentCode>, LoadError> {
        let started = std::time::Instant::now();
        let size = wasm.len() as u64;
        let compiled = compile_progress::log_progress(name, size, self.compiler.compile(wasm)).await;
        let code = compiled.map_err(|NotCompiled { reason, is_permanent }| {
            if let Some(cache) = self.cache.as_ref().filter(|_| is_permanent)
                && let Err(error) = cache.store_failure(digest, &reason)
            {
                tracing::warn!(
                    "cannot record that the component does not compile: {error}; it will be compiled again at the next start"
                );
            }
            LoadError::NotCompiled(reason)
        })?;
        compile_progress::log_end(name, started.elapsed(), code.len() as u64);
        let component = compile::copied(&self.engine, &code).map_err(|error| LoadError::code(&error))?;
        let linked = component_code::link(&self.linker, &component);
        if let Some(cache) = &self.cache {
            let stored = match &linked {
                Ok(_) => cache.store(digest, &code),
                Err(why) => cache.store_failure(digest, &why.to_string()),
            };
            if let Err(error) = stored {
                tracing::warn!(
                    "cannot store compiled code: {error}; the component will be compiled again at the next start"
                );
            }
        }
        let exports = linked?;
        // Code from the cache is memory-mapped and shares the page cache.
        if let Some(stored) = self.stored(digest)? {
            return Ok(stored);
        }
        Ok(Arc::new(match self.workers {
            Some(_) => ComponentCode::in_file(compile::sealed(&code).map_err(|error| LoadError::code(&error.into()))?),
            None => ComponentCode::Mapped(exports),
        }))
    }

    /// True if the cache knows that a component compiles, or that it does not.
    pub fn has_cached(&self, digest: &Digest) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.has_entry(digest))
    }

    /// The size of a component's compiled code in the cache, in bytes.
    pub fn code_len(&self, digest: &Digest) -> Option<u64> {
        self.cache.as_ref()?.len(digest)
    }

    /// Removes unused code from the cache. Call it after all components are loaded.
    pub fn remove_unused_code(&self) {
        if let Some(Err(error)) = self.cache.as_ref().map(compile::CodeCache::remove_unused) {
            tracing::warn!("cannot remove unused compiled code from the cache: {error}");
        }
    }

    /// The compiled code of a component in the cache. `None` if it must be compiled.
    ///
    /// # Errors
    /// If it is known that the component cannot be loaded.
    fn stored(&self, digest: &Digest) -> Result<Option<Arc<ComponentCode>>, LoadError> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let code = match cache.find(digest) {
            // Linked before it was stored, so nothing is left to check here.
            Some(file) if self.workers.is_some() => return Ok(Some(Arc::new(ComponentCode::in_file(file)))),
            Some(file) => CompiledCode::map(&self.engine, file)
                .inspect_err(|error| {
                    tracing::warn!(%digest, "compiled code in the cache does not load: {error:#}; compiling again");
                    cache.remove(digest);
                })
                .ok(),
            None => cache.load_installed(&self.engine, digest),
        };
        match code {
            Some(code) => self.link(code).map(Some),
            None => cache.stored_failure(digest).map_or(Ok(None), |why| Err(LoadError::NotCompiled(why))),
        }
    }

    /// Runs one call in a fresh instance. Dropping the future stops the guest and frees its resources. Decisions and
    /// usage are written to `record` while the call runs, so they survive a call that is cancelled or hangs.
    pub async fn call(&self, spec: CallSpec, permit: Permit, record: &CallRecord) -> Outcome {
        self.call_with(spec, CallExtras::default(), permit, record).await
    }

    /// [`Sandbox::call`] with what the front adds to a call of a worker process.
    pub(super) async fn call_with(
        &self,
        mut spec: CallSpec,
        extras: CallExtras,
        permit: Permit,
        record: &CallRecord,
    ) -> Outcome {
        let Some(base) = self.record_of(spec.mount) else {
            return Outcome::failed(ReadError::Unavailable("the mount is not loaded".to_owned()));
        };
        let own = principal_mounts::for_principal(Arc::clone(&base), &spec.principal);
        let mount = match tokio::time::timeout_at(permit.deadline(), own).await {
            Ok(Ok(mount)) => mount,
            Ok(Err(error)) => return Outcome::failed(error),
            Err(_) => return Outcome::failed(ReadError::Exhausted(permit.time_limit())),
        };
        if let Some(worker) = &base.worker {
            return worker.call(&mount.grants, spec, &permit, record).await;
        }
        let exports = match mount.code.exports(&self.engine, &self.linker) {
            Ok(exports) => exports,
            Err(error) => return Outcome::failed(ReadError::Unavailable(error.to_string())),
        };
        let running = self.ticker.start_call();
        let called =
            call::CalledMount { spares: Arc::clone(&self.spares), mount: Arc::clone(&mount), base, exports, running };
        let progress = Arc::<call_runner::CallProgress>::default();
        let permit = Arc::new(permit);
        let end =
            call_runner::CallEnd { deadline: permit.deadline(), limit: permit.time_limit(), record: record.clone() };
        let (call_progress, call_record) = (Arc::clone(&progress), record.clone());
        if mount.grants.may_stall() && !call_progress.thread.may_block() {
            // Released when the caller is answered, even if the thread still hangs.
            let _turn = match permit.detach() {
                Ok(turn) => turn,
                Err(error) => return Outcome::failed(error),
            };
            let name = mount.name.clone();
            call_progress.thread.assign();
            let call =
                async move || call::run(called, (&mut spec, &extras), &permit, &call_progress, &call_record).await;
            let mut outcome = call_runner::dedicated_thread::run(&name, end, call).await;
            outcome.result.iter_mut().for_each(|reply| self.pool.note_answer(reply));
            return outcome;
        }
        let is_quick = permit.is_quick();
        let call_permit = Arc::clone(&permit);
        let dedicated = || {
            // The turn is released when this value is dropped, even if the thread still hangs.
            let turn = call_permit.detach()?;
            Ok(call_runner::DedicatedCall { mount: mount.name.clone(), turn })
        };
        // Dropped last, when the call has written its usage.
        let running = record.running();
        let call: call_runner::CallFuture = Box::pin(async move {
            let _running = running;
            call::run(called, (&mut spec, &extras), &permit, &call_progress, &call_record).await
        });
        let mut outcome = self.runner.run(call, is_quick, progress, end, dedicated).await;
        outcome.result.iter_mut().for_each(|reply| self.pool.note_answer(reply));
        if let Err(error @ ReadError::Internal(_)) = &mut outcome.result {
            // The call was stopped from outside. The runner knows neither its usage nor which text may be shown.
            interfaces::redact_error(error, mount.grants.redactor());
            (outcome.usage, outcome.decisions) = (record.usage(), record.take_decisions());
        }
        outcome
    }

    /// Stops all calls outside the serving runtime. Must be called before that runtime ends, and from outside of every
    /// runtime. Waits for at most `within`.
    pub fn end_calls(&self, within: Duration) {
        self.runner.shut_down(within);
    }

    /// Number of loaded mounts, including those that only a running call still uses.
    pub fn mounts(&self) -> usize {
        self.mounts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Number of spare instances, each for the next call of a mount that is called often.
    pub fn spare_instances(&self) -> usize {
        self.spares.count()
    }

    /// Number of running calls.
    pub fn calls(&self) -> usize {
        self.ticker.running_calls()
    }
}
