//! What a connection changed in a client's file, kept in the state directory: the text that was put in, and the text
//! that stood there. So `--remove` restores every byte, also if the client changed other parts of the file.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::server::failure::Failure;
use crate::server::{files, location};

/// One change.
#[derive(Serialize, Deserialize)]
pub(super) struct Note {
    file: PathBuf,
    /// The text that was put in.
    put: String,
    /// The text in whose place it was put.
    taken: String,
    /// True if the file did not exist.
    created: bool,
}

/// Where the note of a client and a server's name is. `None` if there is no state directory.
fn place(client: &str, name: &str) -> Option<PathBuf> {
    Some(location::state_home()?.join("connect").join(format!("{client}.{name}.json")))
}

impl Note {
    /// The change from `before` to `after`.
    pub(super) fn of(file: &Path, before: Option<&str>, after: &str) -> Self {
        let old = before.unwrap_or_default();
        let start: usize = old.chars().zip(after.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        let (old, new) = (old.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
        let end: usize =
            old.chars().rev().zip(new.chars().rev()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        let middle = |text: &str| text.get(..text.len().saturating_sub(end)).unwrap_or_default().to_owned();
        Self { file: file.to_owned(), put: middle(new), taken: middle(old), created: before.is_none() }
    }

    /// True if the note is about this file.
    pub(super) fn is_for(&self, file: &Path) -> bool {
        self.file == file
    }

    /// True if the connection made the file.
    pub(super) fn creates(&self) -> bool {
        self.created
    }

    /// `text` without the change. `None` if the change is not in it exactly once.
    pub(super) fn undo(&self, text: &str) -> Option<String> {
        let is_clear = !self.put.is_empty() && text.matches(&self.put).count() == 1;
        is_clear.then(|| text.replacen(&self.put, &self.taken, 1))
    }

    /// Reads the note. `None` if there is none, or if it cannot be understood.
    pub(super) fn load(client: &str, name: &str) -> Result<Option<Self>, Failure> {
        let Some(place) = place(client, name) else { return Ok(None) };
        Ok(files::read(&place)?.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Writes the note.
    pub(super) fn store(&self, client: &str, name: &str) -> Result<(), Failure> {
        // Without a state directory, `--remove` takes out the entry only.
        let Some(place) = place(client, name) else { return Ok(()) };
        if let Some(directory) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        let lock = files::lock_for_writing(&[&place])?;
        Ok(files::replace(&lock, &place, text, 0o600)?)
    }

    /// Deletes the note.
    pub(super) fn forget(client: &str, name: &str) -> Result<(), Failure> {
        match place(client, name).map(std::fs::remove_file) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}
