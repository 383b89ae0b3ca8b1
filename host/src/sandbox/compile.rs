//! From a component's bytes to code: compiled elsewhere, kept in a private cache, authenticated before it is loaded.
//!
//! Loading compiled code is running it as native code. So it comes from two places only: from the compiler process that
//! belljar itself started, and from directories that only belljar's user can write, where each file is authenticated over
//! its bytes, the component's digest and the engine's fingerprint.
//!
//! Whoever breaks out of a sandbox has what its process has: the process must not be able to make code that another belljar,
//! with other grants, would load. So each configuration has a directory and a key of its own. Beside it is one that all
//! share: what lies there is signed, by belljars that run no component (`belljar check`); others can read it, and hold
//! nothing to sign with.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::engine;
use crate::model::{Digest, Guard, text};

/// Why there is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompiled {
    /// What is wrong with the component, or which limit of the compiler was reached.
    pub why: String,
    /// Whether the same bytes will fail again in the same way.
    pub lasting: bool,
}

impl NotCompiled {
    /// Something that may not come again: the machine's doing.
    pub fn once(why: String) -> Self {
        Self { why, lasting: false }
    }

    /// The component's own doing.
    pub fn always(why: String) -> Self {
        Self { why, lasting: true }
    }
}

/// Compiles components somewhere else, in a process of its own with limits of its own.
pub trait Compile: Send + Sync {
    /// Compiles `wasm` with [`compile`].
    ///
    /// # Errors
    /// Says why it cannot be compiled, or which limit of the compiler was reached.
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>>;
}

/// Validates and compiles `wasm`: what the compiler process runs. Takes as long and as much memory as `wasm` makes it.
///
/// # Errors
/// Says why the component is not valid.
pub fn compile(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let engine = engine::compiler().map_err(|error| format!("cannot start the compiler: {error:#}"))?;
    engine.precompile_component(wasm).map_err(|error| text::excerpt(&format!("{error:#}"), 600))
}

/// For how long an entry is kept that no start asks for.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often it is noted that an entry is in use: a start that asks for a thousand should not write as often.
const NOTED: Duration = Duration::from_secs(24 * 3600);

/// For how long a file may be on its way into the cache.
const ARRIVING: Duration = Duration::from_secs(3600);

/// Bytes of the cache; of more, the entries are removed that were asked for longest ago.
const MOST: u64 = 4 << 30;

/// Where compiled code is kept, and what authenticates it.
pub struct CodeStore {
    /// The directory of this configuration.
    pub own: Dir,
    /// Its key.
    pub key: [u8; 32],
    /// The directory that all configurations share, where there is one.
    pub shared: Option<Dir>,
    /// What tells what was signed in there.
    pub signatures: Signatures,
}

/// What signs compiled code for all configurations, or only tells what was signed.
pub struct Signatures {
    public: Vec<u8>,
    pair: Option<Ed25519KeyPair>,
}

impl Signatures {
    /// From a secret: one that signs, if it `may_sign`; otherwise nothing that could is kept.
    ///
    /// # Errors
    /// When the secret is no key.
    pub fn new(secret: &[u8; 32], may_sign: bool) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret).map_err(|error| error.to_string())?;
        Ok(Self { public: pair.public_key().as_ref().to_vec(), pair: may_sign.then_some(pair) })
    }

    /// Whether it signs.
    pub fn may_sign(&self) -> bool {
        self.pair.is_some()
    }
}

/// Compiled code on disk.
pub(super) struct Cache {
    dir: Dir,
    key: [u8; 32],
    shared: Option<Dir>,
    signatures: Signatures,
    fingerprint: String,
}

impl Cache {
    pub(super) fn new(kept: CodeStore, engine: &Engine) -> Self {
        let CodeStore { own, key, shared, signatures } = kept;
        Self { dir: own, key, shared, signatures, fingerprint: engine::fingerprint(engine) }
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

    fn refusal_name(&self, digest: &Digest) -> String {
        format!("{}.refused", self.stem(digest))
    }

    /// Both directories, the shared one first.
    fn places(&self) -> impl Iterator<Item = &Dir> {
        self.shared.iter().chain([&self.dir])
    }

    /// Whether the cache has an answer for the component, without looking whether it is a good one.
    pub(super) fn knows(&self, digest: &Digest) -> bool {
        let (code, _) = self.names(digest);
        self.places().any(|dir| dir.exists(&code)) || self.dir.exists(self.refusal_name(digest))
    }

    /// Bytes of the component's code, if it is there.
    pub(super) fn len(&self, digest: &Digest) -> Option<u64> {
        let (code, _) = self.names(digest);
        self.places().find_map(|dir| Some(dir.metadata(&code).ok()?.len()))
    }

    /// Why the component did not compile before, by the same compiler.
    pub(super) fn refusal(&self, digest: &Digest) -> Option<String> {
        let file = self.dir.open(self.refusal_name(digest)).ok()?;
        note_use(&self.dir, &self.stem(digest), &file);
        let bytes = read_capped(file, 1 << 10, 4 << 10).ok()?;
        let (mac, why) = bytes.split_at_checked(32)?;
        let mac: [u8; 32] = mac.try_into().ok()?;
        (self.refusal_mac(digest, why) == blake3::Hash::from_bytes(mac))
            .then(|| String::from_utf8(why.to_vec()).ok())?
    }

    /// Remembers why the component does not compile.
    pub(super) fn refuse(&self, digest: &Digest, why: &str) -> std::io::Result<()> {
        let mac = self.refusal_mac(digest, why.as_bytes());
        replace(&self.dir, &self.refusal_name(digest), &[mac.as_bytes(), why.as_bytes()].concat())
    }

    fn refusal_mac(&self, digest: &Digest, why: &[u8]) -> blake3::Hash {
        let mut hasher = self.hasher(digest);
        // The compiler's limits may be others in another version.
        hasher.update(b"refused by ").update(env!("CARGO_PKG_VERSION").as_bytes()).update(&[0]).update(why);
        hasher.finalize()
    }

    /// Removes what nobody has asked for in a long time, and what was left half written. Of what is shared, only where it may
    /// be added to as well.
    pub(super) fn tidy(&self) -> std::io::Result<()> {
        if let Some(shared) = self.shared.as_ref().filter(|_| self.signatures.pair.is_some()) {
            tidy(shared)?;
        }
        tidy(&self.dir)
    }

    fn hasher(&self, digest: &Digest) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&digest.0).update(self.fingerprint.as_bytes());
        hasher
    }

    /// The component's code, if it is there and is what was stored.
    ///
    /// # Errors
    /// When it is what was stored, and this engine cannot use it.
    pub(super) fn load(&self, engine: &Engine, digest: &Digest) -> wasmtime::Result<Option<Component>> {
        self.authenticated(digest).map(|file| map(engine, &file)).transpose()
    }

    fn authenticated(&self, digest: &Digest) -> Option<File> {
        self.signed(digest).or_else(|| self.own(digest))
    }

    /// The code that lies where all configurations share it, if it is what was signed.
    fn signed(&self, digest: &Digest) -> Option<File> {
        let dir = self.shared.as_ref()?;
        let (signature, mut file) = (dir.open(self.signature_name(digest)).ok()?, dir.open(self.names(digest).0).ok()?);
        let signature = read_capped(signature, 64, 64).ok()?;
        let mut hasher = self.unkeyed(digest);
        hasher.update_reader(&mut file).ok()?;
        let public = UnparsedPublicKey::new(&ED25519, &self.signatures.public);
        if public.verify(hasher.finalize().as_bytes(), &signature).is_err() && Guard::Cache.is_on() {
            tracing::warn!(%digest, "compiled code in the shared cache is damaged or was not made by this belljar; it is not used");
            // Where it cannot be removed, it is looked at once more.
            if self.signatures.pair.is_some() {
                let _ = dir.remove_file(self.names(digest).0);
            }
            return None;
        }
        if self.signatures.pair.is_some() {
            note_use(dir, &self.stem(digest), &file);
        }
        Some(file)
    }

    /// The code that lies in this configuration's directory, if it is what was stored.
    fn own(&self, digest: &Digest) -> Option<File> {
        let (code, mac) = self.names(digest);
        let (mac, mut file) = (self.dir.open(&mac).ok()?, self.dir.open(&code).ok()?);
        note_use(&self.dir, &self.stem(digest), &file);
        let stored: [u8; 32] = read_capped(mac, 32, 32).ok()?.try_into().ok()?;
        let mut hasher = self.hasher(digest);
        hasher.update_reader(&mut file).ok()?;
        // Constant-time, by blake3's own comparison.
        if hasher.finalize() != blake3::Hash::from_bytes(stored) && Guard::Cache.is_on() {
            tracing::warn!(%digest, "compiled code in the cache is damaged or was not made by this belljar; compiling again");
            self.forget(digest);
            return None;
        }
        Some(file)
    }

    /// What is signed of code: it is for this component, and for this engine.
    fn unkeyed(&self, digest: &Digest) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key("belljar 2026-11 signed code v1");
        hasher.update(&digest.0).update(self.fingerprint.as_bytes());
        hasher
    }

    /// Removes the component's code, so that nobody looks at it once more.
    pub(super) fn forget(&self, digest: &Digest) {
        // Where it cannot be removed, it is looked at once more.
        let _ = self.dir.remove_file(self.names(digest).0);
    }

    /// Keeps `code`, atomically: for all, where it can be signed.
    pub(super) fn store(&self, digest: &Digest, code: &[u8]) -> std::io::Result<()> {
        let (code_name, mac_name) = self.names(digest);
        if let (Some(dir), Some(pair)) = (&self.shared, &self.signatures.pair) {
            let mut hasher = self.unkeyed(digest);
            hasher.update(code);
            let signature = pair.sign(hasher.finalize().as_bytes());
            replace(dir, &code_name, code)?;
            return replace(dir, &self.signature_name(digest), signature.as_ref());
        }
        let mut hasher = self.hasher(digest);
        hasher.update(code);
        replace(&self.dir, &code_name, code)?;
        replace(&self.dir, &mac_name, hasher.finalize().as_bytes())
    }
}

/// Puts a file in the place of what has its name, whole.
fn replace(dir: &Dir, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    // Another belljar may be writing the same name.
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

/// Removes what nobody has asked for in a long time, and what was left half written. What belongs to one component is of
/// the age of whatever of it was written last.
fn tidy(dir: &Dir) -> std::io::Result<()> {
    let now = SystemTime::now();
    let mut parts: HashMap<String, (Duration, u64, Vec<String>)> = HashMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let (Ok(name), meta) = (entry.file_name().into_string(), entry.metadata()?) else { continue };
        let age = meta.modified().ok().and_then(|at| now.duration_since(at.into_std()).ok()).unwrap_or_default();
        let Some((stem, end)) = name.rsplit_once('.') else { continue };
        match end {
            "tmp" if age > ARRIVING => dir.remove_file(&name)?,
            "cwasm" | "mac" | "sig" | "refused" | "used" => {
                let (youngest, bytes, names) = parts.entry(stem.to_owned()).or_insert((age, 0, Vec::new()));
                *youngest = age.min(*youngest);
                *bytes += meta.len();
                names.push(name);
            }
            // On its way, or not ours to remove.
            _ => {}
        }
    }
    let mut all: Vec<_> = parts.into_values().collect();
    all.sort_unstable();
    let mut bytes = 0;
    for (age, len, names) in all {
        bytes += len;
        if age > UNUSED || bytes > MOST {
            names.iter().try_for_each(|name| dir.remove_file(name))?;
        }
    }
    Ok(())
}

/// Loads code from a file that was authenticated: this very one, whatever lies under its name by now.
fn map(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[expect(unsafe_code, reason = "our own compiled code, authenticated, in a directory that only we write")]
    // SAFETY: `deserialize_file` wants bytes that `precompile_component` made, and that nobody changes while they are
    // mapped. The keyed hash says the first; the second holds because files in the cache are written under a
    // temporary name and only ever renamed or removed, and the directory is private to this user.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

/// Loads code that the compiler process made just now, without a cache.
pub(super) fn load_fresh(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(unsafe_code, reason = "our own compiled code, from the compiler process that we started")]
    // SAFETY: `deserialize` wants bytes that `precompile_component` made; our own compiler process made these.
    unsafe {
        Component::deserialize(engine, code)
    }
}

/// Reads at most `cap` bytes. `expected`: about how many there will be, so that room is made once.
///
/// # Errors
/// When there are more, or reading fails.
pub fn read_capped(source: impl Read, expected: u64, cap: u64) -> std::io::Result<Vec<u8>> {
    // One byte more than is expected, so that the end is seen in the same room.
    let room = usize::try_from(expected.min(cap).saturating_add(1)).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(room)?;
    source.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        return Err(std::io::Error::other(format!("larger than {}", crate::model::error::show_bytes(cap))));
    }
    Ok(bytes)
}

/// Notes that an entry of the cache is in use, unless that was noted lately: by a file beside it, because times of files
/// cannot be changed inside the second wall.
fn note_use(dir: &Dir, stem: &str, file: &File) {
    let name = format!("{stem}.used");
    let noted = dir.metadata(&name).or_else(|_| file.metadata()).and_then(|meta| meta.modified());
    // A time in the future is no time at which it was noted.
    if noted.is_ok_and(|at| at.into_std().elapsed().is_ok_and(|age| age < NOTED)) {
        return;
    }
    // Where it cannot be noted, the entry is removed one day, and made again.
    let _ = dir.write(&name, b"1");
}

#[cfg(test)]
mod tests;
