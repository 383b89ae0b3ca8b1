//! The local socket of the belljar that serves all clients of one user and one configuration, and the files beside it:
//!
//! * `ID.sock`: the socket, which only this user can open;
//! * `ID.json`: how to start this belljar again ([`Instance`]). `belljar down` removes it;
//! * `ID.lock`: locked while this belljar serves;
//! * `ID.start`: locked while it is started or stopped.
//!
//! They are in `$XDG_RUNTIME_DIR/belljar`, or in `run` in the state directory if that variable is not set.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::location::{PlaceFile, is_private, real, state_home, variable};

/// Characters of an id.
const ID_LENGTH: usize = 16;

/// How to start a belljar again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The program.
    pub program: PathBuf,
    /// The configuration, as the value of `--place`.
    pub place: String,
    /// The path of the configuration, which may not exist, for people.
    pub config: PathBuf,
    /// True if systemd runs it.
    pub is_unit: bool,
}

/// The files of one belljar. They may not exist.
#[derive(Clone, Debug)]
pub struct SocketFiles {
    directory: PathBuf,
    id: String,
}

impl SocketFiles {
    /// The files of the belljar that serves this configuration. `None` if there is no directory for them.
    pub fn of(place: &PlaceFile) -> Option<Self> {
        let mut hasher = blake3::Hasher::new();
        for path in [Some(&place.config), place.plugins.as_ref()].into_iter().flatten() {
            let path = real(path);
            let bytes = path.as_os_str().as_bytes();
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        let id = hasher.finalize().to_hex().chars().take(ID_LENGTH).collect();
        Some(Self { directory: directory_of_sockets()?, id })
    }

    /// The files of all belljars of this user that were started and not stopped, sorted. `None` if there is no directory
    /// for them.
    pub fn all() -> Option<Vec<Self>> {
        let directory = directory_of_sockets()?;
        #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let id = |name: &str| name.strip_suffix(".json").map(str::to_owned);
        let mut ids: Vec<String> = entries.filter_map(|entry| id(&entry.file_name().to_string_lossy())).collect();
        ids.sort();
        Some(ids.into_iter().map(|id| Self { directory: directory.clone(), id }).collect())
    }

    /// The name of the files, without their endings.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The directory of the files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the file with this ending.
    pub fn file(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", self.id))
    }

    /// Connects to the belljar that serves this configuration.
    ///
    /// # Errors
    /// If there is none, or if other users could have made the socket.
    pub fn connect(&self) -> io::Result<UnixStream> {
        if !is_private(&self.directory)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        #[expect(clippy::disallowed_methods, reason = "belljar's own socket")]
        UnixStream::connect(self.file("sock"))
    }

    /// How to start this belljar again. `None` if it was never started, or was stopped with `belljar down`.
    pub fn instance(&self) -> Option<Instance> {
        #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
        let text = std::fs::read(self.file("json")).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// The directory of sockets. It may not exist.
fn directory_of_sockets() -> Option<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    Some(match runtime {
        Some(runtime) => runtime.join("belljar"),
        None => state_home()?.join("run"),
    })
}
