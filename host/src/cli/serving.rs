//! Which belljars serve a configuration now, and what of it they have taken over: a note each, in the state directory, that
//! its server holds locked for as long as it runs. Commands that change the configuration wait for it, and say what is so.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{keys, open};
use crate::model::{MountName, text};

/// How the names of notes begin.
const PREFIX: &str = "serving.";

/// How long a server may take to read its files again: it looks at them within two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether it has.
const GLANCE: Duration = Duration::from_millis(20);

/// More than any note has.
const MOST: u64 = 1 << 20;

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    /// Its process.
    pub(super) pid: u32,
    /// The configuration, whether it is there or not.
    pub(super) configuration: PathBuf,
    /// A digest of the text that it goes by.
    pub(super) text: String,
    /// A digest of the lock that it goes by; none where it compares nothing.
    pub(super) lock: Option<String>,
    /// The text that it refused, and why.
    pub(super) refused: Option<(String, String)>,
    /// Mounts that are not served as the text says, and why.
    pub(super) mounts: Vec<(String, String)>,
    /// Whether it reads its files again when they change.
    pub(super) follows: bool,
    /// Whether a second wall stands around it.
    pub(super) is_walled: bool,
}

/// A digest of a text, for [`Said`].
pub(super) fn digest(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| blake3::hash(text.as_bytes()).to_hex().to_string())
}

/// The note of this process, while it serves.
pub(super) struct Note {
    file: File,
    said: Said,
}

impl Note {
    /// Begins one in `state`, before the second wall stands. None where it cannot be kept, which is no reason not to serve.
    pub(super) fn begin(state: &Path, said: Said) -> Option<Self> {
        open::private_dir(state).ok()?;
        let said = Said { pid: std::process::id(), configuration: keys::real(&said.configuration), ..said };
        let path = state.join(format!("{PREFIX}{}", said.pid));
        #[expect(clippy::disallowed_methods, reason = "belljar's own note")]
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut note = Self { file, said };
        note.write();
        Some(note)
    }

    /// Says something else from now on.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Said)) {
        change(&mut self.said);
        self.write();
    }

    /// Whoever reads while this is written finds no note, and looks again.
    fn write(&mut self) {
        let text = serde_json::to_vec(&self.said).unwrap_or_default();
        let written = self.file.set_len(0).and_then(|()| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&text)
        });
        if let Err(error) = written {
            tracing::debug!("the note of what is served cannot be written: {error}");
        }
    }
}

/// Whoever serves `configuration` now, by the notes in `state`.
fn servers(state: &Path, configuration: &Path) -> Vec<Said> {
    let configuration = keys::real(configuration);
    #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
    let Ok(entries) = std::fs::read_dir(state) else { return Vec::new() };
    let is_note = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(PREFIX);
    let notes = entries.flatten().filter(|entry| is_note(&entry.file_name())).map(|entry| entry.path());
    let mut all: Vec<Said> = notes.filter_map(|path| read(&path)).collect();
    all.retain(|said| said.configuration == configuration);
    all.sort_by_key(|said| said.pid);
    all
}

/// The note of a server that runs. One whose server is gone is removed.
fn read(path: &Path) -> Option<Said> {
    #[expect(clippy::disallowed_methods, reason = "belljar's own note")]
    let file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = std::fs::remove_file(path);
        return None;
    }
    let by = Instant::now() + Duration::from_secs(1);
    loop {
        let mut text = String::new();
        #[expect(clippy::disallowed_methods, reason = "belljar's own note")]
        File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
        match serde_json::from_str(&text) {
            Ok(said) => return Some(said),
            // It is being written.
            Err(_) if Instant::now() < by => std::thread::sleep(GLANCE),
            Err(_) => return None,
        }
    }
}

/// What was changed, for whoever waits until it is in force.
#[derive(Clone, Copy)]
pub(super) enum Changed<'a> {
    /// The configuration: its text now.
    Text(&'a str),
    /// The lock: its text now.
    Lock(&'a str),
}

/// Waits until whoever serves `configuration` has taken over what was changed, for `mount` where it is of one, and says what
/// is so.
pub(super) fn told(state: &Path, configuration: &Path, changed: Changed<'_>, mount: Option<&MountName>) -> String {
    let wanted = match changed {
        Changed::Text(text) | Changed::Lock(text) => digest(Some(text)),
    };
    let has = |said: &Said| match changed {
        Changed::Text(_) => said.text == wanted,
        Changed::Lock(_) => said.lock.as_ref().is_none_or(|lock| *lock == wanted),
    };
    let has_refused = |said: &Said| said.refused.as_ref().is_some_and(|(text, _)| *text == wanted);
    let by = Instant::now() + PATIENCE;
    let mut all = servers(state, configuration);
    while all.iter().any(|said| said.follows && !has(said) && !has_refused(said)) && Instant::now() < by {
        std::thread::sleep(GLANCE);
        all = servers(state, configuration);
    }
    let mut out = "Saved.".to_owned();
    for said in &all {
        let pid = said.pid;
        let own = said.mounts.iter().find(|(name, _)| mount.is_some_and(|mount| name == mount.as_str()));
        let _ = match (&said.refused, own) {
            _ if !said.follows && !has(said) => write!(
                out,
                " The running server (pid {pid}) does not follow its files (reload = false); to have it read them, run: kill -HUP {pid}"
            ),
            (Some((_, why)), _) if has_refused(said) => {
                write!(out, " The running server (pid {pid}) refuses the configuration: {}", text::excerpt(why, 500))
            }
            _ if !has(said) => write!(
                out,
                " The running server (pid {pid}) has not taken it over within {} s; its log says why",
                PATIENCE.as_secs()
            ),
            (_, Some((_, why))) => {
                write!(out, " The running server (pid {pid}) does not use it: {}", text::excerpt(why, 500))
            }
            _ if mount.is_none() => {
                write!(out, " The running server (pid {pid}) has read it; its log says what of it takes a restart.")
            }
            _ => write!(out, " The running server (pid {pid}) uses it from the next call on."),
        };
    }
    out.push('\n');
    out
}

/// What is true of the second walls of those that serve `configuration` when something was taken away.
pub(super) fn still_open(state: &Path, configuration: &Path) -> &'static str {
    match servers(state, configuration).iter().any(|said| said.is_walled) {
        true => {
            "No call is given it any more. Until that server is restarted, its second wall, which is for whoever breaks out of a sandbox, still lets the directory or port through.\n"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_for_as_long_as_its_server() {
        let temp = tempfile::tempdir().unwrap();
        let (state, file) = (temp.path().join("state"), temp.path().join("belljar.toml"));
        let mount = MountName::new("m").unwrap();
        let told = |text: &str| told(&state, &file, Changed::Text(text), Some(&mount));
        assert_eq!(told("a"), "Saved.\n");
        let said = Said { configuration: file.clone(), text: digest(Some("a")), follows: true, ..Said::default() };
        let mut note = Note::begin(&state, said).unwrap();
        let pid = std::process::id();
        assert_eq!(told("a"), format!("Saved. The running server (pid {pid}) uses it from the next call on.\n"));
        note.change(|said| said.mounts.push(("m".to_owned(), "it needs a restart".to_owned())));
        assert!(told("a").ends_with("does not use it: it needs a restart\n"));
        note.change(|said| said.refused = Some((digest(Some("b")), "bad".to_owned())));
        assert!(told("b").contains("refuses the configuration: bad"));
        note.change(|said| said.follows = false);
        assert!(told("c").contains(&format!("kill -HUP {pid}")));
        assert!(servers(&state, &temp.path().join("other.toml")).is_empty(), "another configuration");
        drop(note);
        assert_eq!(told("a"), "Saved.\n");
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "it is removed");
    }
}
