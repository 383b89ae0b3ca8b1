//! Derives the keys of one configuration from the secret of this user's installation. Runs before the second wall is
//! raised: behind the wall, no code can read the secret or derive the keys of another configuration.

use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::directories::{PrivateDirError, installed_code, private_dir, real};
use super::location::{LocationArgs, NoWorkingDirectory, config_path};
use crate::config::Config;
use crate::sandbox::{CodeCacheConfig, Signatures};

/// The keys of one configuration.
pub(crate) struct Keys {
    /// Seals list cursors.
    pub(crate) cursors: [u8; 32],
    /// Authenticates code that this configuration compiled for itself.
    code: [u8; 32],
    /// The name of the directory of that code, below the cache.
    own_code_dir: String,
    signatures: Signatures,
}

/// The access of a process to the compiled code that all configurations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedCode {
    /// Uses signed code and adds none: the process runs components.
    Use,
    /// Signs and adds code: the process runs no component.
    Sign,
}

/// Why the keys cannot be derived.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    /// The path of the configuration is unknown.
    #[error(transparent)]
    Location(#[from] NoWorkingDirectory),
    /// The signing key pair cannot be derived. Holds the message of the library.
    #[error("{0}")]
    Pair(String),
}

/// Why the secret of this user's installation cannot be used.
#[derive(Debug, thiserror::Error)]
enum InstallationKeyError {
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// Its file can be neither read nor written.
    #[error("\"{}\": {error}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file does not have 32 bytes.
    #[error("\"{}\" is damaged; remove it, and the next start creates a new one", .0.display())]
    Damaged(PathBuf),
    /// Another process created the file, and then it was removed.
    #[error("the key file was removed while it was read")]
    Vanished,
}

impl Keys {
    /// Reads the installation's secret, and derives the keys of the configuration that the command line names. If the
    /// secret cannot be used, takes a random one and logs a warning.
    ///
    /// # Errors
    /// If the path of the configuration is unknown.
    pub(crate) fn read(at: &LocationArgs, config: &Config, shared: SharedCode) -> Result<Self, KeysError> {
        let secret = installation_key(&config.state).unwrap_or_else(|why| {
            tracing::warn!("no permanent key: {why}; list cursors and compiled code are valid for this run only");
            fresh_key()
        });
        let (path, _) = config_path(at)?;
        let identity = identity(&path, &config.plugins);
        let derive = |purpose: &str| {
            let mut material = Zeroizing::new(Vec::from(*secret));
            material.extend_from_slice(identity.as_bytes());
            blake3::derive_key(purpose, &material)
        };
        let seed =
            Zeroizing::new(blake3::derive_key("belljar 2026-11 signatures of shared code v1", secret.as_slice()));
        // What one replica makes is valid at the others: a cursor, and compiled code in a cache that they share.
        let of_replicas = |purpose| config.replica_key.as_ref().map(|key| blake3::derive_key(purpose, key.as_slice()));
        let name =
            of_replicas("belljar 2026-11 name of the compiled code of replicas v1").map(blake3::Hash::from_bytes);
        let cursors = of_replicas("belljar 2026-11 cursors of replicas v1");
        let code = of_replicas("belljar 2026-11 compiled code of replicas v1");
        Ok(Self {
            cursors: cursors.unwrap_or_else(|| derive("belljar 2026-11 cursors of a configuration v1")),
            code: code.unwrap_or_else(|| derive("belljar 2026-11 compiled code of a configuration v1")),
            own_code_dir: name.unwrap_or(identity).to_hex().chars().take(32).collect(),
            signatures: Signatures::new(&seed, shared == SharedCode::Sign)
                .map_err(|error| KeysError::Pair(error.to_string()))?,
        })
    }

    /// The directory of this configuration's own compiled code.
    pub(crate) fn own_code(&self, config: &Config) -> PathBuf {
        config.cache.join(&self.own_code_dir)
    }

    /// True if this process adds compiled code for all configurations.
    pub(crate) fn may_share(&self) -> bool {
        self.signatures.may_sign()
    }

    /// Opens the cache of compiled code, and returns it with the key of cursors. `None` if the cache cannot be used;
    /// the log has the reason.
    pub(crate) fn open(self, config: &Config) -> (Option<CodeCacheConfig>, [u8; 32]) {
        let own = private_dir(&config.cache).and_then(|shared| Ok((shared, private_dir(&self.own_code(config))?)));
        let opened = own.map_err(|why| tracing::warn!("compiled code is not cached: {why}")).ok();
        let kept = opened.map(|(shared, own)| CodeCacheConfig {
            private: own,
            key: self.code,
            shared: Some(shared),
            signatures: self.signatures,
            installed: installed_code(),
        });
        (kept, self.cursors)
    }
}

/// The identity of a configuration: a hash of the canonical paths of its file, which may not exist, and of its
/// components.
fn identity(file: &Path, plugins: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for path in [file, plugins] {
        let real = real(path);
        let bytes = real.as_os_str().as_bytes();
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    hasher.finalize()
}

/// Thirty-two random bytes, wiped when they are dropped.
pub(crate) fn fresh_key() -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    // Without random numbers from the kernel, no later operation is safe.
    #[expect(clippy::expect_used, reason = "without randomness there can be no key")]
    getrandom::fill(key.as_mut_slice()).expect("the kernel gives random numbers");
    key
}

/// The secret of this user's installation. The first start creates it.
fn installation_key(state: &Path) -> Result<Zeroizing<[u8; 32]>, InstallationKeyError> {
    const NAME: &str = "key";
    let dir = private_dir(state)?;
    let path = || state.join(NAME);
    let fail = |error| InstallationKeyError::Unusable { path: path(), error };
    let read = || -> Result<Option<Zeroizing<[u8; 32]>>, InstallationKeyError> {
        let mut file = match dir.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let mut key = Zeroizing::new(Vec::new());
        Read::by_ref(&mut file).take(64).read_to_end(&mut key).map_err(fail)?;
        <[u8; 32]>::try_from(key.as_slice())
            .map(|key| Some(Zeroizing::new(key)))
            .map_err(|_| InstallationKeyError::Damaged(path()))
    };
    if let Some(key) = read()? {
        return Ok(key);
    }
    // Written under a temporary name and then linked. If two processes start for the first time, both use the first
    // key.
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
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read()?.ok_or(InstallationKeyError::Vanished),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    use super::*;

    #[test]
    fn the_installation_key_is_created_once_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("a/state");
        let key = installation_key(&state).unwrap();
        assert_eq!(installation_key(&state).unwrap(), key);
        assert_ne!(*key, [0; 32]);
        assert_eq!(std::fs::metadata(state.join("key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        std::fs::write(state.join("key"), b"short").unwrap();
        assert!(installation_key(&state).unwrap_err().to_string().contains("is damaged"));
        let wide = temp.path().join("wide");
        DirBuilder::new().mode(0o777).create(&wide).unwrap();
        std::fs::set_permissions(&wide, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(installation_key(&wide).unwrap_err().to_string().contains("chmod 700"));
    }

    #[test]
    fn each_configuration_has_keys_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        let keys = |file: &str, plugins: &str| {
            let at = LocationArgs { config: Some(root.join(file)), ..LocationArgs::default() };
            let mut config =
                Config::read(crate::config::ConfigInput { state: root.join("state"), ..Default::default() }).unwrap();
            config.plugins = root.join(plugins);
            let keys = Keys::read(&at, &config, SharedCode::Use).ok().unwrap();
            (keys.cursors, keys.code, keys.own_code_dir)
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

    #[test]
    fn replicas_with_one_key_have_the_same_keys_wherever_they_are() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let keys = |place: &str, replica_key: [u8; 32]| {
            let at = LocationArgs { config: Some(root.join(place).join("belljar.toml")), ..LocationArgs::default() };
            let input = crate::config::ConfigInput { state: root.join(place).join("state"), ..Default::default() };
            let mut config = Config::read(input).unwrap();
            config.replica_key = Some(Zeroizing::new(replica_key));
            let keys = Keys::read(&at, &config, SharedCode::Use).ok().unwrap();
            (keys.cursors, keys.code, keys.own_code_dir)
        };
        ["a", "b"].iter().for_each(|place| std::fs::create_dir(root.join(place)).unwrap());
        let one = keys("a", [1; 32]);
        assert_eq!(keys("b", [1; 32]), one);
        let other = keys("a", [2; 32]);
        assert!(other.0 != one.0 && other.1 != one.1 && other.2 != one.2);
    }
}
