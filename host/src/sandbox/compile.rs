//! Compiled code of components: compiled in another process, kept in a private cache, authenticated before it is
//! loaded.
//!
//! Loading compiled code means running it as native code. Therefore it comes from three sources only. One is the compiler
//! process that belljar started. Another is directories that only belljar's user can write; there each file is
//! authenticated over its bytes, the component's digest and the engine's fingerprint. The third is belljar's own package;
//! see [`installed`].
//!
//! An attacker who escapes from a sandbox has the rights of the process. The attacker must not be able to store code
//! that another belljar process, with other grants, would load. Therefore each configuration has its own directory and
//! key. A second directory is shared by all configurations; its files are signed. Only processes that run no component
//! sign (`belljar check`). The others can read the directory, and have no signing key.

mod installed;
mod load;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustix::fs::{Mode, OFlags, openat};
use wasmtime::Engine;

use installed::InstalledCode;
pub(super) use load::{CompiledCode, copied, sealed};

use super::engine::{self, Processors};
use super::error::{CompileError, KeyError};
use crate::model::{Digest, Guard, text};

/// The reason why a component has no compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompiled {
    /// The fault of the component, or the compiler limit that was reached.
    pub reason: String,
    /// True if the same bytes will fail again in the same way.
    pub is_permanent: bool,
}

impl NotCompiled {
    /// A failure of the machine, which may not happen again.
    pub fn transient(reason: String) -> Self {
        Self { reason, is_permanent: false }
    }

    /// A failure caused by the component.
    pub fn permanent(reason: String) -> Self {
        Self { reason, is_permanent: true }
    }
}

/// Compiles components in another process with its own limits.
pub trait Compiler: Send + Sync {
    /// Compiles `wasm` with [`compile`].
    ///
    /// # Errors
    /// The reason why it cannot be compiled, or the compiler limit that was reached.
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>>;
}

/// Validates and compiles `wasm`. Runs in the compiler process. Untrusted bytes determine the time and the memory that this
/// takes.
///
/// # Errors
/// The reason why the component is not valid.
pub fn compile(wasm: &[u8], processors: Processors) -> Result<Vec<u8>, CompileError> {
    let engine = engine::compiler(processors).map_err(|error| CompileError::Start(format!("{error:#}")))?;
    engine.precompile_component(wasm).map_err(|error| CompileError::Invalid(text::excerpt(&format!("{error:#}"), 600)))
}

/// The time after which an unused cache entry is removed.
const MAX_UNUSED_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// The interval at which the use of an entry is recorded, so that a start with a thousand components does not write a
/// thousand files.
const USE_RECORD_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The time after which a temporary file counts as abandoned.
const MAX_TEMPORARY_TIME: Duration = Duration::from_secs(3600);

/// The size of the cache in bytes. Above it, the least recently used entries are removed.
const MAX_CACHE: u64 = 4 << 30;

/// The directories of the code cache and the keys that authenticate it.
pub struct CodeCacheConfig {
    /// The private directory of this configuration.
    pub private: Dir,
    /// The key of the private directory.
    pub key: [u8; 32],
    /// The directory shared by all configurations, if there is one.
    pub shared: Option<Dir>,
    /// The keys of the shared directory.
    pub signatures: Signatures,
    /// The directory of code that is installed with belljar, if there is one. Nobody but root and this user can write it.
    pub installed: Option<Dir>,
}

/// The keys of the shared directory: verify, and possibly sign, compiled code.
pub struct Signatures {
    public: Vec<u8>,
    pair: Option<Ed25519KeyPair>,
}

impl Signatures {
    /// Derives the keys from a secret. The signing key is kept only if `may_sign`.
    ///
    /// # Errors
    /// If the secret is not a valid key.
    pub fn new(secret: &[u8; 32], may_sign: bool) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret).map_err(|error| KeyError(error.to_string()))?;
        Ok(Self { public: pair.public_key().as_ref().to_vec(), pair: may_sign.then_some(pair) })
    }

    /// True if the signing key is there.
    pub fn may_sign(&self) -> bool {
        self.pair.is_some()
    }
}

/// The cache of compiled code on disk.
pub(super) struct CodeCache {
    private: Dir,
    key: [u8; 32],
    shared: Option<Dir>,
    signatures: Signatures,
    installed: Option<InstalledCode>,
    fingerprint: String,
}

/// True if code from the cache may run: it was authenticated, or the guard is off.
fn is_usable(is_authentic: bool) -> bool {
    is_authentic || !Guard::Cache.is_on()
}

impl CodeCache {
    pub(super) fn new(config: CodeCacheConfig, engine: &Engine) -> Self {
        let CodeCacheConfig { private, key, shared, signatures, installed } = config;
        let installed = installed.map(InstalledCode::new);
        Self { private, key, shared, signatures, installed, fingerprint: engine::fingerprint(engine) }
    }

    /// Handles of its directories, for worker processes that map code from it. Without those for which this process has no
    /// descriptor left.
    pub(super) fn handles(&self) -> Vec<Arc<OwnedFd>> {
        let installed = self.installed.as_ref().map(InstalledCode::directory);
        // A worker takes only what is open for reading.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |directory: &Dir| openat(directory, ".", flags, Mode::empty()).ok();
        self.directories().chain(installed).filter_map(open).map(Arc::new).collect()
    }

    fn stem(&self, digest: &Digest) -> String {
        format!("{}-{}", digest.hex(), self.fingerprint)
    }

    fn names(&self, digest: &Digest) -> (String, String) {
        let stem = self.stem(digest);
        (format!("{stem}.cwasm"), format!("{stem}.mac"))
    }

    fn signature_name(&self, digest: &Digest) -> String {
        format!("{}.sig", self.stem(digest))
    }

    fn failure_name(&self, digest: &Digest) -> String {
        format!("{}.refused", self.stem(digest))
    }

    /// Both directories, the shared one first.
    fn directories(&self) -> impl Iterator<Item = &Dir> {
        self.shared.iter().chain([&self.private])
    }

    /// True if the cache has an entry for the component. Does not authenticate it.
    pub(super) fn has_entry(&self, digest: &Digest) -> bool {
        let (code, _) = self.names(digest);
        self.directories().any(|dir| dir.exists(&code))
            || self.installed_len(digest).is_some()
            || self.private.exists(self.failure_name(digest))
    }

    /// The size of the component's code in bytes, if it is there.
    pub(super) fn len(&self, digest: &Digest) -> Option<u64> {
        let (code, _) = self.names(digest);
        let stored = self.directories().find_map(|dir| Some(dir.metadata(&code).ok()?.len()));
        stored.or_else(|| self.installed_len(digest))
    }

    fn installed_len(&self, digest: &Digest) -> Option<u64> {
        self.installed.as_ref()?.len(digest)
    }

    /// The reason why this version of belljar could not compile or link the component before.
    pub(super) fn stored_failure(&self, digest: &Digest) -> Option<String> {
        let file = self.private.open(self.failure_name(digest)).ok()?;
        record_use(&self.private, &self.stem(digest), &file);
        let bytes = read_capped(file, 1 << 10, 4 << 10).ok()?;
        let (mac, reason) = bytes.split_at_checked(32)?;
        let mac: [u8; 32] = mac.try_into().ok()?;
        (self.failure_mac(digest, reason) == blake3::Hash::from_bytes(mac))
            .then(|| String::from_utf8(reason.to_vec()).ok())?
    }

    /// Records why the component cannot be compiled or linked.
    pub(super) fn store_failure(&self, digest: &Digest, reason: &str) -> std::io::Result<()> {
        let mac = self.failure_mac(digest, reason.as_bytes());
        replace(&self.private, &self.failure_name(digest), &[mac.as_bytes(), reason.as_bytes()].concat())
    }

    fn failure_mac(&self, digest: &Digest, reason: &[u8]) -> blake3::Hash {
        let mut hasher = self.hasher(digest);
        hasher.update(b"refused: ").update(reason);
        hasher.finalize()
    }

    /// Removes unused entries and abandoned temporary files. In the shared directory only if this process may sign.
    pub(super) fn remove_unused(&self) -> std::io::Result<()> {
        if let Some(shared) = self.shared.as_ref().filter(|_| self.signatures.pair.is_some()) {
            remove_unused_in(shared)?;
        }
        remove_unused_in(&self.private)
    }

    fn hasher(&self, digest: &Digest) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&digest.0).update(self.fingerprint.as_bytes());
        hasher
    }

    /// The component's code, if it is in the cache and authentic.
    pub(super) fn find(&self, digest: &Digest) -> Option<OwnedFd> {
        let file = self.find_shared(digest).or_else(|| self.find_private(digest))?;
        Some(file.into_std().into())
    }

    /// The component's code, if it was installed with belljar and this engine loads it.
    pub(super) fn load_installed(&self, engine: &Engine, digest: &Digest) -> Option<CompiledCode> {
        self.installed.as_ref()?.load(engine, digest)
    }

    /// The component's code from the shared directory, if its signature is valid.
    fn find_shared(&self, digest: &Digest) -> Option<File> {
        let dir = self.shared.as_ref()?;
        let (signature, mut file) = (dir.open(self.signature_name(digest)).ok()?, dir.open(self.names(digest).0).ok()?);
        let signature = read_capped(signature, 64, 64).ok()?;
        let mut hasher = self.signature_hasher(digest);
        hasher.update_reader(&mut file).ok()?;
        let public = UnparsedPublicKey::new(&ED25519, &self.signatures.public);
        if !is_usable(public.verify(hasher.finalize().as_bytes(), &signature).is_ok()) {
            tracing::warn!(%digest, "compiled code in the shared cache is damaged or was not made by this belljar; it is not used");
            // If the file cannot be removed, it is rejected again at the next load.
            if self.signatures.pair.is_some() {
                let _ = dir.remove_file(self.names(digest).0);
            }
            return None;
        }
        if self.signatures.pair.is_some() {
            record_use(dir, &self.stem(digest), &file);
        }
        Some(file)
    }

    /// The component's code from the private directory, if its MAC is valid.
    fn find_private(&self, digest: &Digest) -> Option<File> {
        let (code, mac) = self.names(digest);
        let (mac, mut file) = (self.private.open(&mac).ok()?, self.private.open(&code).ok()?);
        record_use(&self.private, &self.stem(digest), &file);
        let stored: [u8; 32] = read_capped(mac, 32, 32).ok()?.try_into().ok()?;
        let mut hasher = self.hasher(digest);
        hasher.update_reader(&mut file).ok()?;
        // blake3 compares in constant time.
        if !is_usable(hasher.finalize() == blake3::Hash::from_bytes(stored)) {
            tracing::warn!(%digest, "compiled code in the cache is damaged or was not made by this belljar; compiling again");
            self.remove(digest);
            return None;
        }
        Some(file)
    }

    /// A hasher for signatures, bound to this component and this engine.
    fn signature_hasher(&self, digest: &Digest) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key("belljar 2026-11 signed code v1");
        hasher.update(&digest.0).update(self.fingerprint.as_bytes());
        hasher
    }

    /// Removes the component's code, so that it is not checked again.
    pub(super) fn remove(&self, digest: &Digest) {
        // If the file cannot be removed, it is rejected again at the next load.
        let _ = self.private.remove_file(self.names(digest).0);
    }

    /// Stores `code`, which was linked. Atomically: in the shared directory if this process may sign, otherwise in the
    /// private one.
    pub(super) fn store(&self, digest: &Digest, code: &[u8]) -> std::io::Result<()> {
        let (code_name, mac_name) = self.names(digest);
        if let (Some(dir), Some(pair)) = (&self.shared, &self.signatures.pair) {
            let mut hasher = self.signature_hasher(digest);
            hasher.update(code);
            let signature = pair.sign(hasher.finalize().as_bytes());
            replace(dir, &code_name, code)?;
            return replace(dir, &self.signature_name(digest), signature.as_ref());
        }
        let mut hasher = self.hasher(digest);
        hasher.update(code);
        replace(&self.private, &code_name, code)?;
        replace(&self.private, &mac_name, hasher.finalize().as_bytes())
    }
}

/// Replaces a file atomically.
fn replace(dir: &Dir, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    // The temporary name is unique: another belljar may write the same entry.
    let mut unique = [0; 8];
    getrandom::fill(&mut unique).map_err(|error| std::io::Error::other(error.to_string()))?;
    let temporary = format!("{name}.{:016x}.tmp", u64::from_ne_bytes(unique));
    let mut file = dir.open_with(&temporary, OpenOptions::new().write(true).create(true).truncate(true).mode(0o600))?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_data()).and_then(|()| dir.rename(&temporary, dir, name));
    if written.is_err() {
        let _ = dir.remove_file(&temporary);
    }
    written
}

/// Removes unused entries and abandoned temporary files. The files of one component have the age of the newest of them.
fn remove_unused_in(dir: &Dir) -> std::io::Result<()> {
    let now = SystemTime::now();
    let mut parts: HashMap<String, (Duration, u64, Vec<String>)> = HashMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let (Ok(name), meta) = (entry.file_name().into_string(), entry.metadata()?) else { continue };
        let age = meta.modified().ok().and_then(|at| now.duration_since(at.into_std()).ok()).unwrap_or_default();
        let Some((stem, end)) = name.rsplit_once('.') else { continue };
        match end {
            "tmp" if age > MAX_TEMPORARY_TIME => dir.remove_file(&name)?,
            "cwasm" | "mac" | "sig" | "refused" | "used" => {
                let (youngest, bytes, names) = parts.entry(stem.to_owned()).or_insert((age, 0, Vec::new()));
                *youngest = age.min(*youngest);
                *bytes += meta.len();
                names.push(name);
            }
            // A temporary file in use, or a file of another program.
            _ => {}
        }
    }
    let mut all: Vec<_> = parts.into_values().collect();
    all.sort_unstable();
    let mut bytes = 0;
    for (age, len, names) in all {
        bytes += len;
        if age > MAX_UNUSED_TIME || bytes > MAX_CACHE {
            names.iter().try_for_each(|name| dir.remove_file(name))?;
        }
    }
    Ok(())
}

/// Reads at most `cap` bytes. `expected` is the probable size, so that memory is allocated once.
///
/// # Errors
/// If there are more bytes, or reading fails.
pub fn read_capped(source: impl Read, expected: u64, cap: u64) -> std::io::Result<Vec<u8>> {
    // One byte more, so that `read_to_end` finds the end of the file without growing the buffer.
    let room = usize::try_from(expected.min(cap).saturating_add(1)).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(room)?;
    source.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        return Err(std::io::Error::other(format!("larger than {}", crate::model::error::show_bytes(cap))));
    }
    Ok(bytes)
}

/// Records that a cache entry is in use, unless that was recorded recently. The record is a file beside the entry,
/// because the seccomp filter forbids changing file times.
fn record_use(dir: &Dir, stem: &str, file: &File) {
    let name = format!("{stem}.used");
    let last_use = dir.metadata(&name).or_else(|_| file.metadata()).and_then(|meta| meta.modified());
    // A time in the future comes from a wrong clock and does not count.
    if last_use.is_ok_and(|at| at.into_std().elapsed().is_ok_and(|age| age < USE_RECORD_INTERVAL)) {
        return;
    }
    // If it cannot be recorded, the entry is removed one day and compiled again.
    let _ = dir.write(&name, b"1");
}

#[cfg(test)]
mod tests;
