//! Follows the file of API keys while belljar serves, so that a new or revoked key takes effect at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::{JoinError, spawn_blocking};

use super::api_keys::{self, ApiKeysError};
use super::file_follower::{FileFollower, FileOutcome, FileReader};
use super::privileged_helper::HelperError;
use super::server_status::{self, StatusFile};
use crate::auth::key_store::{CurrentKeys, KeyStore};
use crate::catalog::watch::Watcher;
use crate::config::Config;

/// Reads the text of the file, in the helper process: the second wall hides the file from this one.
type ReadText = dyn Fn() -> Result<Option<String>, HelperError> + Send + Sync;

/// Follows the file of API keys.
pub(crate) struct KeyFollower {
    follower: FileFollower,
    reader: KeyReader,
}

/// Reads the file, and puts its keys in force.
struct KeyReader {
    path: PathBuf,
    keys: CurrentKeys,
    read_text: Arc<ReadText>,
    status: Option<Arc<StatusFile>>,
    /// The last reported problem. It is not reported again while it lasts.
    problem: Option<String>,
}

/// Why the new keys are not applied.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    /// The task that reads them was stopped.
    #[error(transparent)]
    Stopped(#[from] JoinError),
    /// The helper failed to read them.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The file is wrong.
    #[error(transparent)]
    Wrong(#[from] ApiKeysError),
}

impl KeyFollower {
    /// Loads the keys of the configuration. Called before the second wall is raised. `None` without `[auth]`.
    ///
    /// # Errors
    /// If the keys file is wrong, or is missing although the configuration demands it.
    pub(crate) fn load(
        config: &Config,
        status: Option<Arc<StatusFile>>,
        read_text: impl Fn() -> Result<Option<String>, HelperError> + Send + Sync + 'static,
    ) -> Result<Option<Self>, ApiKeysError> {
        let path = config.api_keys.clone();
        // Followed before it is read, so that no change is missed.
        let follower = FileFollower::new(&[&path]);
        let Some((keys, text)) = api_keys::load(config)? else { return Ok(None) };
        tracing::info!("\"{}\" has {}", path.display(), keys.count(SystemTime::now()));
        if let Some(status) = &status {
            status.update(|status| status.api_keys = Some(server_status::digest(text.as_deref())));
        }
        let (keys, read_text) = (CurrentKeys::new(keys), Arc::new(read_text));
        Ok(Some(Self { follower, reader: KeyReader { path, keys, read_text, status, problem: None } }))
    }

    /// The keys in force. They change while [`KeyFollower::run`] runs.
    pub(crate) fn keys(&self) -> CurrentKeys {
        self.reader.keys.clone()
    }

    /// Applies changes of the file until the task is dropped.
    pub(crate) async fn run(self, watcher: Option<Watcher>) {
        self.follower.run(self.reader, watcher).await;
    }
}

impl KeyReader {
    /// The keys in the file, and the digest of its text, if it could be read.
    async fn load(&self) -> (Result<KeyStore, FollowError>, String) {
        let read_text = Arc::clone(&self.read_text);
        let text = spawn_blocking(move || read_text()).await.map_err(FollowError::from);
        let text = text.and_then(|text| Ok(text?));
        let digest = server_status::digest(text.as_ref().ok().and_then(|text| text.as_deref()));
        let keys = text.and_then(|text| {
            if text.is_none() {
                tracing::warn!("\"{}\" is gone, and with it every API key; put it back", self.path.display());
            }
            Ok(api_keys::parse(&self.path, text.as_deref())?)
        });
        (keys, digest)
    }

    /// Updates the status file, for the commands that change keys.
    fn update_status(&self, change: impl FnOnce(&mut server_status::ServerStatus)) {
        if let Some(file) = &self.status {
            file.update(change);
        }
    }
}

impl FileReader for KeyReader {
    /// Reads the file, and applies the keys in it. If they are wrong, the old ones stay in force. If nobody can read the
    /// file any more, a revocation could go unnoticed: then no key is in force.
    fn read(&mut self) -> BoxFuture<'_, FileOutcome> {
        async {
            let (keys, digest) = self.load().await;
            let error = match keys {
                Ok(keys) => {
                    tracing::info!("\"{}\" has {}", self.path.display(), keys.count(SystemTime::now()));
                    self.keys.replace(keys);
                    self.problem = None;
                    self.update_status(|status| {
                        (status.api_keys, status.refused_api_keys) = (Some(digest), None);
                    });
                    return FileOutcome::Read;
                }
                Err(error) => error,
            };
            let text = error.to_string();
            let is_gone = matches!(error, FollowError::Helper(HelperError::Gone(_)));
            if self.problem.replace(text.clone()).as_ref() != Some(&text) {
                match is_gone {
                    true => tracing::error!("the API keys cannot be read, so every one is refused from now on: {text}"),
                    false => tracing::error!("the new API keys are refused, the old ones stay in force: {text}"),
                }
            }
            if is_gone {
                self.keys.replace(KeyStore::default());
            }
            self.update_status(|status| status.refused_api_keys = Some((digest, text)));
            match error {
                FollowError::Wrong(_) => FileOutcome::Read,
                FollowError::Helper(_) | FollowError::Stopped(_) => FileOutcome::Unread,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::auth::api_key::ApiKey;
    use crate::auth::key_store::ApiKeyError;
    use crate::config::ConfigInput;

    /// A configuration with `[auth]`, whose keys are in the file `keys.toml` in `directory`.
    fn config(directory: &Path) -> Config {
        let file = Some((directory.join("belljar.toml"), "[auth]".to_owned()));
        Config::read(ConfigInput { file, directory: directory.to_owned(), ..ConfigInput::default() }).unwrap()
    }

    fn table(name: &str, key: &ApiKey) -> String {
        format!("[[key]]\nname = \"{name}\"\nsha256 = \"{}\"\n", key.hash())
    }

    fn follower(directory: &Path) -> Result<KeyFollower, String> {
        let path = directory.join("keys.toml");
        let read = move || api_keys::read_text(&path).map_err(|error| HelperError::Refused(error.to_string()));
        let loaded = KeyFollower::load(&config(directory), None, read);
        loaded.map(Option::unwrap).map_err(|error| error.to_string())
    }

    /// Waits until the look-up of `key` gives `expected`.
    async fn becomes(keys: &CurrentKeys, key: &ApiKey, expected: Result<&str, ApiKeyError>) {
        let found = || keys.find(key.reveal(), SystemTime::now()).map(|principal| principal.subject().to_owned());
        for _ in 0..1000 {
            if found() == expected.map(str::to_owned) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?} did not become {expected:?}", found());
    }

    #[tokio::test]
    async fn changes_of_the_file_take_effect() {
        for has_watcher in [true, false] {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            let (path, next) = (root.join("keys.toml"), root.join("next"));
            let replace = |text: &str| {
                std::fs::write(&next, text).unwrap();
                std::fs::rename(&next, &path).unwrap();
            };
            let (one, two) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
            replace(&table("one", &one));
            let follower = follower(&root).unwrap();
            let keys = follower.keys();
            // A change between the first read and the start of the task.
            replace(&(table("one", &one) + &table("two", &two)));
            let task = tokio::spawn(follower.run(has_watcher.then(|| Watcher::start().unwrap())));
            becomes(&keys, &two, Ok("two")).await;
            assert_eq!(keys.find(one.reveal(), SystemTime::now()).unwrap().subject(), "one");
            replace(&table("two", &two));
            becomes(&keys, &one, Err(ApiKeyError::Revoked)).await;
            // Written in place, without a rename.
            std::fs::write(&path, table("one", &one)).unwrap();
            becomes(&keys, &one, Ok("one")).await;
            // Wrong keys change nothing. The next right ones are applied.
            replace("[[key]]\nname = 3");
            sleep(Duration::from_millis(if has_watcher { 500 } else { 1500 })).await;
            assert_eq!(keys.find(one.reveal(), SystemTime::now()).unwrap().subject(), "one");
            replace(&table("uno", &one));
            becomes(&keys, &one, Ok("uno")).await;
            // Without the file there are no keys.
            std::fs::remove_file(&path).unwrap();
            becomes(&keys, &one, Err(ApiKeyError::Revoked)).await;
            replace(&table("one", &one));
            becomes(&keys, &one, Ok("one")).await;
            task.abort();
        }
    }

    #[test]
    fn a_missing_or_wrong_file_is_an_error_at_the_start() {
        let temp = tempfile::tempdir().unwrap();
        let why = follower(temp.path()).err().unwrap();
        assert!(why.contains("there is no keys file") && why.contains("belljar key new NAME"), "{why}");
        let path = temp.path().join("keys.toml");
        std::fs::write(&path, "kex = 1").unwrap();
        let why = follower(temp.path()).err().unwrap();
        assert!(why.contains("keys.toml: line 1, column 1: unknown key \"kex\""), "{why}");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let why = follower(temp.path()).err().unwrap();
        assert!(why.contains("run: chmod go-w"), "{why}");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        assert!(follower(temp.path()).is_ok());
        let none = Config::read(ConfigInput::default()).unwrap();
        assert!(KeyFollower::load(&none, None, || Ok(None)).unwrap().is_none(), "without [auth]");
    }
}
