//! How the commands are spelt that belljar prints: with the program's name or whole path, and with what leads to the
//! configuration in use.
//!
//! Who reads them may sit elsewhere than where belljar was started, and no path of the host goes to clients. So `serve`
//! notes where its configuration lies in a file below the state directory, and prints that file's name: `--place NAME`.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Failure, Where, open, store};
use crate::model::{Digest, command};

/// Characters of a place's name.
const NAME: usize = 8;

/// Where a configuration lies.
#[derive(Serialize, Deserialize)]
struct Place {
    config: PathBuf,
    plugins: Option<PathBuf>,
}

/// Commands as whoever typed this one types the next: from the same directory.
pub(super) fn as_typed(at: &Where) {
    command::spell(command::Spelling { program: program(true), place: typed(at) });
}

/// Commands for whoever reads what a server says. `is_near`: the reader has started this process, and knows its path.
pub(super) fn from_anywhere(at: &Where, is_near: bool) {
    let place = note(at).inspect_err(|why| tracing::warn!("commands in hints lack the configuration: {why}"));
    let place = place.map(|name| vec!["--place".to_owned(), name]).unwrap_or_default();
    command::spell(command::Spelling { program: program(is_near), place });
}

/// The flags of this command line.
fn typed(at: &Where) -> Vec<String> {
    let mut words = Vec::new();
    for (flag, path) in [("--config", &at.config), ("--plugins", &at.plugins)] {
        if let Some(path) = path {
            words.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    words
}

/// Notes where the configuration lies: the note's name.
fn note(at: &Where) -> Result<String, String> {
    let (config, directory) = open::place(at).map_err(Failure::why)?;
    // Without a configuration, what is beside it is where belljar was started.
    let plugins = at.plugins.as_ref().map(|path| directory.join(path));
    let plugins = plugins.or_else(|| (!config.exists()).then(|| directory.join("plugins")));
    let place = Place { config, plugins };
    let text = serde_json::to_string(&place).map_err(|error| error.to_string())?;
    let digest = Digest::of(text.as_bytes()).to_string();
    let name: String = digest.trim_start_matches("sha256:").chars().take(NAME).collect();
    let file = notes()?.join(&name);
    // It says what it says for good: the name is made of that.
    if !file.exists() {
        let folder = file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| format!("\"{}\": {error}", folder.display()))?;
        let turn = store::turn(&[&file])?;
        store::replace(&turn, &file, &text, 0o600)?;
    }
    Ok(name)
}

/// Where notes lie.
fn notes() -> Result<PathBuf, String> {
    let state = open::state_home().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    Ok(state.join("places"))
}

impl Where {
    /// What `--place` stands for, in its stead.
    pub(super) fn resolved(self) -> Result<Self, Failure> {
        let Some(name) = &self.place else { return Ok(self) };
        let fail = |why: &str| {
            Failure::Misused(format!(
                "--place \"{}\": {why}; it is the name that a belljar of yours has printed. Use --config FILE instead",
                name.escape_debug()
            ))
        };
        if name.len() != NAME || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(fail("expected 8 hexadecimal digits"));
        }
        let text = store::read(&notes()?.join(name))?.ok_or_else(|| fail("there is no such place"))?;
        let Place { config, plugins } = serde_json::from_str(&text).map_err(|_| fail("its note is damaged"))?;
        Ok(Self { config: Some(config), plugins, place: None, may_lack: true })
    }
}

/// What this program is called: `belljar` where a shell finds it by that name, or its whole path.
fn program(is_near: bool) -> String {
    const SHORT: &str = "belljar";
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let own = std::env::current_exe().ok();
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let meta = |path: &Path| std::fs::metadata(path).ok();
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    #[expect(clippy::disallowed_methods, reason = "where a shell looks for programs")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|folder| folder.join(SHORT)).find_map(|file| meta(&file));
    let is_found = own.as_deref().and_then(meta).zip(first).is_some_and(|(own, first)| same(&own, &first));
    match own {
        Some(own) if !is_found && is_near => own.to_string_lossy().into_owned(),
        _ => SHORT.to_owned(),
    }
}
