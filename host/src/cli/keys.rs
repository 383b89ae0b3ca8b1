//! Keys that are made from the secret of this user's installation, before the second wall stands: behind it nobody can read
//! that secret, or make another configuration's keys of it.

use std::io::{Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::open::{place, private_dir};
use super::{Failure, Where};
use crate::config::Config;
use crate::sandbox::{CodeStore, Signatures};

/// The keys of one configuration.
pub(super) struct Keys {
    /// What cursors are sealed with.
    pub(super) cursors: [u8; 32],
    /// What authenticates code that this configuration compiled for itself.
    code: [u8; 32],
    /// Where that lies, below the cache.
    below: String,
    signatures: Signatures,
}

/// What a process does with compiled code that all configurations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// It runs components: it uses what was signed.
    Used,
    /// It runs none, and adds to it.
    Made,
}

impl Keys {
    /// Reads the installation's secret, and makes keys of it for the configuration that the command line names.
    ///
    /// # Errors
    /// When it cannot be said where the configuration is.
    pub(super) fn read(at: &Where, config: &Config, shared: Shared) -> Result<Self, Failure> {
        let secret = kept_key(&config.state).unwrap_or_else(|why| {
            tracing::warn!("no lasting key: {why}; list cursors and compiled code are valid for this run only");
            fresh_key()
        });
        let (path, _) = place(at)?;
        let identity = identity(&path, &config.plugins);
        let derive = |purpose: &str| {
            let mut material = Zeroizing::new(Vec::from(*secret));
            material.extend_from_slice(identity.as_bytes());
            blake3::derive_key(purpose, &material)
        };
        let seed =
            Zeroizing::new(blake3::derive_key("belljar 2026-11 signatures of shared code v1", secret.as_slice()));
        Ok(Self {
            cursors: derive("belljar 2026-11 cursors of a configuration v1"),
            code: derive("belljar 2026-11 compiled code of a configuration v1"),
            below: identity.to_hex().chars().take(32).collect(),
            signatures: Signatures::new(&seed, shared == Shared::Made)?,
        })
    }

    /// The directory of this configuration's own compiled code.
    pub(super) fn own_code(&self, config: &Config) -> PathBuf {
        config.cache.join(&self.below)
    }

    /// Whether what is compiled is for every configuration.
    pub(super) fn may_share(&self) -> bool {
        self.signatures.may_sign()
    }

    /// Opens the cache; none, where it cannot be used, which the log says. Gives back what seals cursors.
    pub(super) fn open(self, config: &Config) -> (Option<CodeStore>, [u8; 32]) {
        let own = private_dir(&config.cache).and_then(|shared| Ok((shared, private_dir(&self.own_code(config))?)));
        let opened = own.map_err(|why| tracing::warn!("compiled code is not kept: {why}")).ok();
        let kept = opened.map(|(shared, own)| CodeStore {
            own,
            key: self.code,
            shared: Some(shared),
            signatures: self.signatures,
        });
        (kept, self.cursors)
    }
}

/// What tells one configuration from all others: the place of its file, whether that is there or not, and of its components.
fn identity(file: &Path, plugins: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for path in [file, plugins] {
        let real = real(path);
        let bytes = real.as_os_str().as_bytes();
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    hasher.finalize()
}

/// The path without links, as far as it is there.
pub(super) fn real(path: &Path) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the operator's own files, behind links of the operator's")]
    let found = std::fs::canonicalize(path);
    found.unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    })
}

/// Thirty-two random bytes, wiped when they are dropped.
pub(super) fn fresh_key() -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    // Without randomness from the kernel nothing that follows is safe; there is no sensible way on.
    #[expect(clippy::expect_used, reason = "no randomness, no key")]
    getrandom::fill(key.as_mut_slice()).expect("the kernel gives random numbers");
    key
}

/// The secret of this user's installation, made on the first start.
fn kept_key(state: &Path) -> Result<Zeroizing<[u8; 32]>, String> {
    const NAME: &str = "key";
    let dir = private_dir(state)?;
    let fail = |error: std::io::Error| format!("\"{}\": {error}", state.join(NAME).display());
    let read = || -> Result<Option<Zeroizing<[u8; 32]>>, String> {
        let mut file = match dir.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let mut key = Zeroizing::new(Vec::new());
        Read::by_ref(&mut file).take(64).read_to_end(&mut key).map_err(fail)?;
        <[u8; 32]>::try_from(key.as_slice())
            .map(|key| Some(Zeroizing::new(key)))
            .map_err(|_| format!("\"{}\" is damaged; remove it, and a new one is made", state.join(NAME).display()))
    };
    if let Some(key) = read()? {
        return Ok(key);
    }
    // Written whole under another name, then linked: of two first starts, both use the one that came first.
    let temporary = format!("{NAME}.{}.tmp", std::process::id());
    let key = fresh_key();
    let mut options = cap_std::fs::OpenOptions::new();
    cap_std::fs::OpenOptionsExt::mode(options.write(true).create(true).truncate(true), 0o600);
    let mut file = dir.open_with(&temporary, &options).map_err(fail)?;
    file.write_all(key.as_slice()).and_then(|()| file.sync_all()).map_err(fail)?;
    let linked = dir.hard_link(&temporary, &dir, NAME);
    let _ = dir.remove_file(&temporary);
    match linked {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            read()?.ok_or_else(|| "the key vanished".to_owned())
        }
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    use super::*;

    #[test]
    fn the_key_is_made_once_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("a/state");
        let key = kept_key(&state).unwrap();
        assert_eq!(kept_key(&state).unwrap(), key);
        assert_ne!(*key, [0; 32]);
        assert_eq!(std::fs::metadata(state.join("key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        std::fs::write(state.join("key"), b"short").unwrap();
        assert!(kept_key(&state).unwrap_err().contains("is damaged"));
        let wide = temp.path().join("wide");
        DirBuilder::new().mode(0o777).create(&wide).unwrap();
        std::fs::set_permissions(&wide, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(kept_key(&wide).unwrap_err().contains("chmod 700"));
    }

    #[test]
    fn each_configuration_has_keys_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        let keys = |file: &str, plugins: &str| {
            let at = Where { config: Some(root.join(file)), ..Where::default() };
            let mut config =
                Config::read(crate::config::Given { state: root.join("state"), ..Default::default() }).unwrap();
            config.plugins = root.join(plugins);
            let keys = Keys::read(&at, &config, Shared::Used).ok().unwrap();
            (keys.cursors, keys.code, keys.below)
        };
        let one = keys("a/belljar.toml", "p");
        assert_eq!(keys("a/belljar.toml", "p"), one, "after a restart");
        assert_eq!(keys("a/../a/belljar.toml", "p"), one, "by another way to the same place");
        for (file, plugins) in [("b/belljar.toml", "p"), ("a/other.toml", "p"), ("a/belljar.toml", "q")] {
            let other = keys(file, plugins);
            assert!(other.0 != one.0 && other.1 != one.1 && other.2 != one.2, "{file} {plugins}");
        }
        assert_ne!(one.0, one.1);
    }
}
