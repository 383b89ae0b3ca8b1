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
pub struct Kept {
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
    pub(super) fn new(kept: Kept, engine: &Engine) -> Self {
        let Kept { own, key, shared, signatures } = kept;
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
        let (signature, mut file) =
            (dir.open(self.signature_name(digest)).ok()?, dir.open(self.names(digest).0).ok()?);
        let signature = read_capped(signature, 64, 64).ok()?;
        let mut hasher = self.unkeyed(digest);
        hasher.update_reader(&mut file).ok()?;
        let public = UnparsedPublicKey::new(&ED25519, &self.signatures.public);
        if public.verify(hasher.finalize().as_bytes(), &signature).is_err() && Guard::Cache.is_on() {
            tracing::warn!(%digest, "shared compiled code is damaged or was not made by this user's belljar; it is not used");
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
mod tests {
    use super::*;

    /// A directory of its own with this key, and nothing shared.
    fn kept(own: Dir, key: u8) -> Kept {
        Kept { own, key: [key; 32], shared: None, signatures: Signatures::new(&[9; 32], false).unwrap() }
    }

    #[test]
    fn what_is_shared_is_signed_and_only_who_runs_nothing_signs() {
        let temp = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            std::fs::create_dir_all(temp.path().join(name)).unwrap();
            Dir::open_ambient_dir(temp.path().join(name), cap_std::ambient_authority()).unwrap()
        };
        let engine = engine::host(1).unwrap();
        let cache = |own: &str, secret: u8, may_sign| {
            let signatures = Signatures::new(&[secret; 32], may_sign).unwrap();
            Cache::new(Kept { own: dir(own), key: [7; 32], shared: Some(dir("shared")), signatures }, &engine)
        };
        let wasm = wat::parse_str("(component)").unwrap();
        let (digest, code) = (Digest::of(&wasm), compile(&wasm).unwrap());
        let (one, two) = (cache("one", 1, false), cache("two", 1, false));
        // What serves keeps for itself, also where its key is another's.
        one.store(&digest, &code).unwrap();
        assert!(one.load(&engine, &digest).unwrap().is_some() && two.load(&engine, &digest).unwrap().is_none());
        assert!(std::fs::read_dir(temp.path().join("shared")).unwrap().next().is_none());
        // What was compiled by one that runs nothing is everybody's who has the same secret.
        cache("check", 1, true).store(&digest, &code).unwrap();
        assert!(two.load(&engine, &digest).unwrap().is_some());
        assert!(cache("three", 2, false).load(&engine, &digest).unwrap().is_none(), "another user's");
        // What lies there without a signature of theirs is nobody's.
        let other = Digest::of(b"other");
        let place = |name: String| temp.path().join("shared").join(name);
        std::fs::copy(place(two.names(&digest).0), place(two.names(&other).0)).unwrap();
        std::fs::copy(place(two.signature_name(&digest)), place(two.signature_name(&other))).unwrap();
        assert!(two.load(&engine, &other).unwrap().is_none(), "another component's");
        std::fs::write(place(two.signature_name(&digest)), [0; 64]).unwrap();
        assert!(two.load(&engine, &digest).unwrap().is_none());
    }

    #[test]
    fn the_cache_gives_back_what_it_was_given_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        let engine = engine::host(1).unwrap();
        let wasm = wat::parse_str("(component)").unwrap();
        let digest = Digest::of(&wasm);
        let code = compile(&wasm).unwrap();
        let cache = Cache::new(kept(dir(), 7), &engine);
        assert!(cache.load(&engine, &digest).unwrap().is_none());
        cache.store(&digest, &code).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_some());
        assert!(cache.load(&engine, &Digest::of(b"other")).unwrap().is_none());
        assert!(Cache::new(kept(dir(), 8), &engine).load(&engine, &digest).unwrap().is_none(), "another key");

        let path = temp.path().join(cache.names(&digest).0);
        for at in [0, code.len() / 2, code.len() - 1] {
            let mut bad = code.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(cache.load(&engine, &digest).unwrap().is_none(), "byte {at}");
        }
        std::fs::write(&path, &code[..code.len() - 1]).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_none());
        cache.store(&digest, &code).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_some());
        let other = Digest::of(b"other");
        std::fs::rename(&path, temp.path().join(cache.names(&other).0)).unwrap();
        std::fs::copy(temp.path().join(cache.names(&digest).1), temp.path().join(cache.names(&other).1)).unwrap();
        assert!(cache.load(&engine, &other).unwrap().is_none(), "another component's code under this name");
    }

    #[test]
    fn what_is_damaged_is_looked_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        let engine = engine::host(1).unwrap();
        let wasm = wat::parse_str("(component)").unwrap();
        let (digest, mut code) = (Digest::of(&wasm), compile(&wasm).unwrap());
        let cache = Cache::new(kept(dir, 7), &engine);
        cache.store(&digest, &code).unwrap();
        code[100] ^= 1;
        std::fs::write(temp.path().join(cache.names(&digest).0), &code).unwrap();
        assert!(cache.knows(&digest));
        assert!(cache.load(&engine, &digest).unwrap().is_none());
        assert!(!cache.knows(&digest), "it has to be compiled");
        code[100] ^= 1;
        cache.store(&digest, &code).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_some());
    }

    #[test]
    fn that_an_entry_is_used_is_noted_once_a_day() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        let file = std::fs::File::create(temp.path().join("a.cwasm")).unwrap();
        let noted = |at| {
            file.set_modified(at).unwrap();
            std::fs::remove_file(temp.path().join("a.used")).ok();
            note_use(&dir, "a", &File::from_std(file.try_clone().unwrap()));
            dir.exists("a.used")
        };
        assert!(!noted(now - hour));
        assert!(noted(now - 25 * hour));
        assert!(noted(now + 25 * hour), "a clock that was wrong");
    }

    #[test]
    fn refusals_are_remembered_for_the_very_bytes() {
        let temp = tempfile::tempdir().unwrap();
        let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        let engine = engine::compiler().unwrap();
        let cache = Cache::new(kept(dir(), 7), &engine);
        let digest = Digest::of(b"bad");
        assert!(cache.refusal(&digest).is_none() && !cache.knows(&digest));
        cache.refuse(&digest, "it is bad").unwrap();
        assert_eq!(cache.refusal(&digest).as_deref(), Some("it is bad"));
        assert!(cache.knows(&digest) && cache.refusal(&Digest::of(b"other")).is_none());
        assert!(Cache::new(kept(dir(), 8), &engine).refusal(&digest).is_none(), "another key");
        let path = temp.path().join(cache.refusal_name(&digest));
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(cache.refusal(&digest).is_none(), "altered");
    }

    #[test]
    fn what_nobody_asks_for_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        let cache = Cache::new(kept(dir, 7), &engine::compiler().unwrap());
        let old = SystemTime::now() - UNUSED - Duration::from_secs(1);
        for (name, is_old) in [
            ("a.cwasm", true),
            ("a.mac", true),
            ("b.cwasm", false),
            ("c.x.tmp", true),
            ("d.x.tmp", false),
            ("key", true),
        ] {
            let file = std::fs::File::create(temp.path().join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        cache.refuse(&Digest::of(b"bad"), "it is bad").unwrap();
        let refused = temp.path().join(cache.refusal_name(&Digest::of(b"bad")));
        std::fs::File::open(&refused).unwrap().set_modified(old).unwrap();
        assert!(cache.refusal(&Digest::of(b"bad")).is_some(), "asked for, so in use");
        cache.tidy().unwrap();
        let left = |name: &str| temp.path().join(name).exists();
        assert_eq!(
            ["a.cwasm", "a.mac", "b.cwasm", "c.x.tmp", "d.x.tmp", "key"].map(left),
            [false, false, true, false, true, true]
        );
        assert!(refused.exists());
    }

    #[test]
    fn invalid_components_do_not_compile() {
        assert!(compile(b"\0asm\x0d\0\x01\0\xff").is_err());
        assert!(compile(b"(component)").is_err(), "text is not accepted");
    }
}
