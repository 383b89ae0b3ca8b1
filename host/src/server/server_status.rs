//! Status files of running servers, in the state directory. A server holds its file locked while it runs, and writes
//! into it which version of the configuration it uses. Commands that change the configuration wait for the servers and
//! report.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::directories;
use crate::model::{MountName, text};

/// The prefix of the names of status files; the process id follows.
const PREFIX: &str = "serving.";

/// How long a server may take to read its files again. It usually notices a change within two seconds.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the status files are read while a command waits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The largest part of a status file that is read, in bytes. Every status file is smaller.
const MAX_BYTES: u64 = 1 << 20;

/// The contents of a status file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServerStatus {
    /// The process id of the server.
    pub(crate) pid: u32,
    /// The path of the configuration, which may not exist.
    pub(crate) configuration: PathBuf,
    /// The [`digest`] of the configuration text in use.
    pub(crate) text: String,
    /// The [`digest`] of the lock in use. `None` if the server does not compare components with the lock.
    pub(crate) lock: Option<String>,
    /// The [`digest`] of the last refused configuration text, and the reason.
    pub(crate) refused: Option<(String, String)>,
    /// The [`digest`] of the text of the API keys in use. `None` if the server takes no API keys.
    pub(crate) api_keys: Option<String>,
    /// The [`digest`] of the last refused text of the API keys, and the reason.
    pub(crate) refused_api_keys: Option<(String, String)>,
    /// The mounts that are not served as the configuration says, each with the reason.
    pub(crate) mounts: Vec<(String, String)>,
    /// True if the server reads its files again when they change.
    pub(crate) follows: bool,
    /// True if the second wall is raised around the server.
    pub(crate) is_walled: bool,
}

/// The digest of a text in a [`ServerStatus`]. Empty for a missing file.
pub(crate) fn digest(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| blake3::hash(text.as_bytes()).to_hex().to_string())
}

/// The status file of this process, locked while the process serves.
pub(crate) struct StatusFile(Mutex<LockedStatus>);

/// The open file, and its contents.
struct LockedStatus {
    file: File,
    status: ServerStatus,
}

impl StatusFile {
    /// Creates the file in `state`. Called before the second wall is raised. `None` if that fails: the server runs
    /// without it.
    pub(crate) fn create(state: &Path, status: ServerStatus) -> Option<Self> {
        directories::private_dir(state).ok()?;
        let configuration = directories::real(&status.configuration);
        let status = ServerStatus { pid: std::process::id(), configuration, ..status };
        let path = state.join(format!("{PREFIX}{}", status.pid));
        #[expect(clippy::disallowed_methods, reason = "belljar's own status file")]
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut locked = LockedStatus { file, status };
        locked.write();
        Some(Self(Mutex::new(locked)))
    }

    /// Changes the status and writes it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ServerStatus)) {
        let mut locked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut locked.status);
        locked.write();
    }
}

impl LockedStatus {
    /// Writes the status. Not atomic: a reader that finds an incomplete status reads again.
    fn write(&mut self) {
        let text = serde_json::to_vec(&self.status).unwrap_or_default();
        let written = self.file.set_len(0).and_then(|()| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&text)
        });
        if let Err(error) = written {
            tracing::debug!("cannot write the status file of this server: {error}");
        }
    }
}

/// The running servers of `configuration`, from the status files in `state`, sorted by process id.
fn servers(state: &Path, configuration: &Path) -> Vec<ServerStatus> {
    let configuration = directories::real(configuration);
    #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
    let Ok(entries) = std::fs::read_dir(state) else { return Vec::new() };
    let is_status = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(PREFIX);
    let files = entries.flatten().filter(|entry| is_status(&entry.file_name())).map(|entry| entry.path());
    let mut all: Vec<ServerStatus> = files.filter_map(|path| read(&path)).collect();
    all.retain(|status| status.configuration == configuration);
    all.sort_by_key(|status| status.pid);
    all
}

/// Reads a status file. If no running server holds its lock, removes the file and returns `None`.
fn read(path: &Path) -> Option<ServerStatus> {
    #[expect(clippy::disallowed_methods, reason = "belljar's own status file")]
    let file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = std::fs::remove_file(path);
        return None;
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let mut text = String::new();
        #[expect(clippy::disallowed_methods, reason = "belljar's own status file")]
        File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        match serde_json::from_str(&text) {
            Ok(status) => return Some(status),
            // The server is writing the file.
            Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Err(_) => return None,
        }
    }
}

/// The changed file, with its new text.
#[derive(Clone, Copy)]
pub(crate) enum Changed<'a> {
    /// The configuration.
    Text(&'a str),
    /// The lock.
    Lock(&'a str),
}

/// Waits up to [`RELOAD_TIMEOUT`] until every server of `configuration` uses the change. Returns a message with the
/// state of each server, for `mount` if it is given.
pub(crate) fn await_reload(
    state: &Path,
    configuration: &Path,
    changed: Changed<'_>,
    mount: Option<&MountName>,
) -> String {
    let wanted = match changed {
        Changed::Text(text) | Changed::Lock(text) => digest(Some(text)),
    };
    let uses = |status: &ServerStatus| match changed {
        Changed::Text(_) => status.text == wanted,
        Changed::Lock(_) => status.lock.as_ref().is_none_or(|lock| *lock == wanted),
    };
    let refuses = |status: &ServerStatus| status.refused.as_ref().is_some_and(|(text, _)| *text == wanted);
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    let mut all = servers(state, configuration);
    while all.iter().any(|one| one.follows && !uses(one) && !refuses(one)) && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
        all = servers(state, configuration);
    }
    let mut out = "Saved.".to_owned();
    for status in &all {
        let pid = status.pid;
        let own = status.mounts.iter().find(|(name, _)| mount.is_some_and(|mount| name == mount.as_str()));
        let _ = match (&status.refused, own) {
            _ if !status.follows && !uses(status) => write!(
                out,
                " The running server (pid {pid}) does not reload changed files (reload = false); to make it read them, run: kill -HUP {pid}"
            ),
            (Some((_, why)), _) if refuses(status) => {
                write!(out, " The running server (pid {pid}) refuses the configuration: {}", text::excerpt(why, 500))
            }
            _ if !uses(status) => write!(
                out,
                " The running server (pid {pid}) has not reloaded it within {} s; its log has the reason",
                RELOAD_TIMEOUT.as_secs()
            ),
            (_, Some((_, why))) => {
                write!(out, " The running server (pid {pid}) does not use it: {}", text::excerpt(why, 500))
            }
            _ if mount.is_none() => {
                write!(out, " The running server (pid {pid}) has read it; its log names settings that need a restart.")
            }
            _ => write!(out, " The running server (pid {pid}) uses it from the next call on."),
        };
    }
    out.push('\n');
    out
}

/// Waits up to [`RELOAD_TIMEOUT`] until every server of `configuration` that takes API keys uses those of `text`. Returns
/// a message with the state of each server.
pub(crate) fn await_api_keys(state: &Path, configuration: &Path, text: &str) -> String {
    let wanted = digest(Some(text));
    let uses = |status: &ServerStatus| status.api_keys.as_ref().is_none_or(|keys| *keys == wanted);
    let refuses = |status: &ServerStatus| status.refused_api_keys.as_ref().is_some_and(|(text, _)| *text == wanted);
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    let mut all = servers(state, configuration);
    while all.iter().any(|one| !uses(one) && !refuses(one)) && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
        all = servers(state, configuration);
    }
    let mut out = String::new();
    for status in &all {
        let pid = status.pid;
        let _ = match &status.refused_api_keys {
            _ if status.api_keys.is_none() => {
                write!(out, "The running server (pid {pid}) takes no API keys: it does not serve HTTP with [auth].")
            }
            Some((_, why)) if refuses(status) => {
                write!(out, "The running server (pid {pid}) refuses the keys: {}.", text::excerpt(why, 500))
            }
            _ if uses(status) => write!(out, "The running server (pid {pid}) uses it from the next request on."),
            _ => write!(
                out,
                "The running server (pid {pid}) has not read it within {} s; its log has the reason.",
                RELOAD_TIMEOUT.as_secs()
            ),
        };
        out.push('\n');
    }
    out
}

/// The notice after a revocation, if a server of `configuration` has a second wall: the wall stays open until a
/// restart.
pub(crate) fn wall_notice(state: &Path, configuration: &Path) -> &'static str {
    match servers(state, configuration).iter().any(|status| status.is_walled) {
        true => {
            "New calls can no longer use it. The second wall around that server process still allows the directory or port until the server is restarted; this matters only if a component breaks out of its sandbox.\n"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_file_exists_while_its_server_runs() {
        let temp = tempfile::tempdir().unwrap();
        let (state, file) = (temp.path().join("state"), temp.path().join("belljar.toml"));
        let mount = MountName::new("m").unwrap();
        let message = |text: &str| await_reload(&state, &file, Changed::Text(text), Some(&mount));
        assert_eq!(message("a"), "Saved.\n");
        let status = ServerStatus {
            configuration: file.clone(),
            text: digest(Some("a")),
            follows: true,
            ..ServerStatus::default()
        };
        let status_file = StatusFile::create(&state, status).unwrap();
        let pid = std::process::id();
        assert_eq!(message("a"), format!("Saved. The running server (pid {pid}) uses it from the next call on.\n"));
        status_file.update(|status| status.mounts.push(("m".to_owned(), "it needs a restart".to_owned())));
        assert!(message("a").ends_with("does not use it: it needs a restart\n"));
        status_file.update(|status| status.refused = Some((digest(Some("b")), "bad".to_owned())));
        assert!(message("b").contains("refuses the configuration: bad"));
        status_file.update(|status| status.follows = false);
        assert!(message("c").contains(&format!("kill -HUP {pid}")));
        assert!(servers(&state, &temp.path().join("other.toml")).is_empty(), "another configuration");
        let keys = |text: &str| await_api_keys(&state, &file, text);
        assert!(keys("k").contains("takes no API keys"));
        status_file.update(|status| status.api_keys = Some(digest(Some("k"))));
        assert_eq!(keys("k"), format!("The running server (pid {pid}) uses it from the next request on.\n"));
        status_file.update(|status| status.refused_api_keys = Some((digest(Some("l")), "bad".to_owned())));
        assert_eq!(keys("l"), format!("The running server (pid {pid}) refuses the keys: bad.\n"));
        drop(status_file);
        assert_eq!(keys("k"), "");
        assert_eq!(message("a"), "Saved.\n");
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "it is removed");
    }
}
