//! The file of a login at an authorization server: it holds the refresh token, and belongs to one mount of one
//! configuration.
//!
//! Only this user can read the file. A change replaces it by a rename, so that it is always complete. The lock of the file
//! (`flock`) admits one process at a time: many servers give a new refresh token for each old one, and take a second use
//! of an old one as a theft.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::config::OAuthSettings;
use super::response::GrantedTokens;
use crate::model::{MountName, command};

/// The most bytes of the file.
const MAX_BYTES: u64 = 64 << 10;

/// How long [`LoginPlace::remove`] waits for a server that uses the login.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// How often a lock is tried again.
pub(super) const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Why the file of a login cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoginFileError {
    /// Reading or writing fails. Holds the message of the system.
    #[error("the file of the login cannot be used: {0}")]
    Io(#[from] io::Error),
    /// It is no regular file.
    #[error("the file of the login is no regular file; remove it")]
    NotAFile,
    /// Other users can read it. Holds the command that prevents this.
    #[error("others can read the file of the login; run: {0}")]
    Open(String),
    /// It belongs to another user.
    #[error("the file of the login belongs to another user; remove it")]
    Foreign,
    /// It was not written by belljar.
    #[error("the file of the login is damaged; log in again")]
    Damaged,
    /// There is no configuration file, to which a login could belong.
    #[error("a login belongs to a configuration file, and there is none")]
    NoConfiguration,
}

/// A login.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Login {
    /// The authorization server, for people who read the file.
    server: String,
    /// When the person logged in, in seconds since 1970.
    since: u64,
    /// When the refresh token ends, if the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<u64>,
    /// The refresh token. Missing if the server gives none, and when the login has ended.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wiped_text")]
    refresh_token: Option<Zeroizing<String>>,
    /// The access token, if the server gives no refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wiped_text")]
    access_token: Option<Zeroizing<String>>,
}

/// Reads and writes a text that is wiped from memory.
mod wiped_text {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(text: &Option<Zeroizing<String>>, serializer: S) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|text| text.as_str()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Zeroizing<String>>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Zeroizing::new))
    }
}

/// The version of a file: it differs when the file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginStamp(u64, u64, i64, i64);

/// The place of the file of a login.
#[derive(Clone, Debug)]
pub struct LoginPlace {
    path: PathBuf,
}

/// The file of a login, locked until this value is dropped.
pub(super) struct LockedLogin {
    file: File,
}

/// The seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Login {
    /// The login that `tokens` are for. `since`: when the person logged in.
    pub(super) fn new(settings: &OAuthSettings, tokens: &GrantedTokens, since: SystemTime, now: SystemTime) -> Self {
        let has_refresh = tokens.refresh_token.is_some();
        let lifetime = if has_refresh { tokens.refresh_lifetime } else { tokens.lifetime };
        Self {
            server: settings.server.clone(),
            since: seconds(since),
            ends: lifetime.map(|time| seconds(now).saturating_add(time.as_secs())),
            refresh_token: tokens.refresh_token.clone(),
            access_token: if has_refresh { None } else { Some(tokens.access_token.clone()) },
        }
    }

    /// The same login without its tokens: it has ended.
    pub(super) fn ended(&self) -> Self {
        Self { server: self.server.clone(), since: self.since, ..Self::default() }
    }

    /// When the person logged in.
    pub fn since(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.since)
    }

    /// When the login ends, if the server has said so.
    pub fn ends(&self) -> Option<SystemTime> {
        Some(UNIX_EPOCH + Duration::from_secs(self.ends?))
    }

    /// True if the login can still give access tokens at `now`.
    pub fn is_valid(&self, now: SystemTime) -> bool {
        let has_token = self.refresh_token.is_some() || self.access_token.is_some();
        has_token && self.ends.is_none_or(|ends| seconds(now) < ends)
    }

    /// The refresh token.
    pub(super) fn refresh_token(&self) -> Option<&Zeroizing<String>> {
        self.refresh_token.as_ref()
    }

    /// The access token, if there is no refresh token, and how long it is valid.
    pub(super) fn access_token(&self, now: SystemTime) -> Option<(&Zeroizing<String>, Option<Duration>)> {
        let left = self.ends.map(|ends| Duration::from_secs(ends.saturating_sub(seconds(now))));
        Some((self.access_token.as_ref()?, left))
    }
}

impl LoginPlace {
    /// The place of the login of `mount` for these settings, in the directory of the logins of a configuration.
    pub fn new(directory: &Path, mount: &MountName, settings: &OAuthSettings) -> Self {
        let digest: String = settings.digest().hex().chars().take(16).collect();
        Self { path: directory.join(format!("{mount}.{digest}.json")) }
    }

    /// The version of the file. `None`: there is none.
    pub(super) fn stamp(&self) -> Option<LoginStamp> {
        let meta = std::fs::symlink_metadata(&self.path).ok()?;
        Some(LoginStamp(meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()))
    }

    /// The login. `None`: there is none.
    ///
    /// # Errors
    /// If the file cannot be read, other users can read it, or it is damaged.
    pub fn read(&self) -> Result<Option<Login>, LoginFileError> {
        self.open()?.map(|mut file| self.parse(&mut file)).transpose()
    }

    fn open(&self) -> io::Result<Option<File>> {
        // Do not block at a FIFO, and follow no link.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let flags = i32::from_ne_bytes(flags.bits().to_ne_bytes());
        #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
        match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(&self, file: &mut File) -> Result<Login, LoginFileError> {
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(LoginFileError::NotAFile);
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(LoginFileError::Foreign);
        }
        if meta.mode() & 0o077 != 0 {
            let quoted = command::shell_quoted(&self.path.to_string_lossy());
            return Err(LoginFileError::Open(format!("chmod 600 {quoted}")));
        }
        let mut text = Zeroizing::new(Vec::new());
        file.take(MAX_BYTES).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(|_| LoginFileError::Damaged)
    }

    /// Locks the file, if no other process has locked it. `None`: another one has.
    ///
    /// # Errors
    /// If there is no file, or it cannot be used.
    pub(super) fn try_lock(&self) -> Result<Option<(LockedLogin, Login)>, LoginFileError> {
        let mut file = self.open()?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        // The file may have been replaced before it was locked.
        let own = file.metadata()?;
        let present = self.stamp();
        if present != Some(LoginStamp(own.dev(), own.ino(), own.mtime(), own.mtime_nsec())) {
            return Ok(None);
        }
        let login = self.parse(&mut file)?;
        Ok(Some((LockedLogin { file }, login)))
    }

    /// Replaces the file. The caller has locked the old one, if there is one. Makes the directory if it is missing.
    pub(super) fn replace(&self, login: &Login, _: Option<&LockedLogin>) -> Result<LoginStamp, LoginFileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let text = Zeroizing::new(serde_json::to_vec(login).map_err(io::Error::from)?);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let written = (|| {
            #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &self.path)?;
            #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
            File::open(directory)?.sync_all()
        })();
        if let Err(error) = written {
            let _ = std::fs::remove_file(&temporary);
            return Err(error.into());
        }
        self.stamp().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// Removes the file. False if there was none. Waits while a server uses the login: it would store it again.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self) -> Result<bool, LoginFileError> {
        let deadline = Instant::now() + LOCK_TIME;
        let locked = loop {
            match self.try_lock() {
                Ok(Some((locked, _))) => break Some(locked),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOCK_INTERVAL),
                // A file that cannot be used is removed without its lock.
                Ok(None) | Err(_) => break None,
            }
        };
        let removed = std::fs::remove_file(&self.path);
        drop(locked);
        match removed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for LockedLogin {
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(token: &str) -> Login {
        let refresh_token = Some(Zeroizing::new(token.to_owned()));
        Login { server: "https://a.example".to_owned(), since: 7, refresh_token, ..Login::default() }
    }

    fn token(login: Login) -> String {
        login.refresh_token.unwrap().as_str().to_owned()
    }

    #[test]
    fn a_file_is_private_and_replaced_as_a_whole() {
        let temp = tempfile::tempdir().unwrap();
        let place = LoginPlace { path: temp.path().join("a/b/web.1.json") };
        assert!(place.read().unwrap().is_none() && place.stamp().is_none());
        let first = place.replace(&login("one"), None).unwrap();
        assert_eq!(std::fs::metadata(&place.path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(temp.path().join("a/b")).unwrap().mode() & 0o777, 0o700);
        assert_eq!(place.stamp(), Some(first));
        let second = place.replace(&login("two"), None).unwrap();
        assert_ne!(first, second);
        assert_eq!(token(place.read().unwrap().unwrap()), "two");
        assert_eq!(std::fs::read_dir(temp.path().join("a/b")).unwrap().count(), 1);
        assert!(place.remove().unwrap() && !place.remove().unwrap());
    }

    #[test]
    fn an_unsafe_file_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let place = LoginPlace { path: temp.path().join("web.json") };
        let why = || place.read().err().unwrap().to_string();
        place.replace(&login("one"), None).unwrap();
        std::fs::set_permissions(&place.path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(why().contains("run: chmod 600"));
        std::fs::write(&place.path, "{}").unwrap();
        std::fs::set_permissions(&place.path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(why().contains("damaged"));
        std::fs::rename(&place.path, temp.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", &place.path).unwrap();
        assert!(place.read().is_err());
        std::fs::remove_file(&place.path).unwrap();
        std::fs::create_dir(&place.path).unwrap();
        assert!(why().contains("no regular file"));
    }

    #[test]
    fn one_process_at_a_time_has_the_lock() {
        let temp = tempfile::tempdir().unwrap();
        let place = LoginPlace { path: temp.path().join("web.json") };
        assert!(place.try_lock().is_err(), "there is no file");
        place.replace(&login("one"), None).unwrap();
        let (locked, found) = place.try_lock().unwrap().unwrap();
        assert_eq!(token(found), "one");
        assert!(place.try_lock().unwrap().is_none(), "locked");
        place.replace(&login("two"), Some(&locked)).unwrap();
        drop(locked);
        assert_eq!(token(place.try_lock().unwrap().unwrap().1), "two");
    }

    #[test]
    fn a_login_ends() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(login("one").is_valid(at(1 << 40)));
        assert!(!login("one").ended().is_valid(at(8)));
        let limited = Login { ends: Some(10), ..login("one") };
        assert!(limited.is_valid(at(9)) && !limited.is_valid(at(10)));
    }
}
