//! `belljar serve --files`: serves directories without a configuration of the user.
//!
//! belljar keeps a configuration of its own for each set of directories, below the state directory. So everything else
//! works as for a configuration of the user: the lock, the walls, and the commands that errors suggest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::add::NewMount;
use super::{grant, inspect};
use crate::grants::KINDS;
use crate::grants::edit::GrantArgs;
use crate::model::{Digest, MountName};
use crate::server::candidate::Candidate;
use crate::server::directories::private_dir;
use crate::server::edit::{self, ConfigChange};
use crate::server::failure::Failure;
use crate::server::location::{self, LocationArgs};
use crate::server::shipped;

/// The provider that serves the directories.
const PROVIDER: &str = "files";

/// The kind of grant for directories.
const GRANT: &str = "fs";

/// Characters of the name of a configuration's folder.
const NAME_LENGTH: usize = 16;

/// The location of belljar's own configuration for these directories. Creates it, unless an earlier start did.
///
/// # Errors
/// If the provider is not installed, or the configuration cannot be written.
pub(super) fn place(directories: &[PathBuf]) -> Result<LocationArgs, Failure> {
    let provider = shipped::find(PROVIDER).ok_or_else(|| {
        Failure::Failed(format!(
            "the provider \"{PROVIDER}\" was not installed with belljar, and --files needs it; install belljar from a package, or name the directory of its providers in BELLJAR_PROVIDERS"
        ))
    })?;
    let mounts = mounts(directories)?;
    let (_, working) = location::config_path(&LocationArgs::default())?;
    let mounts: Vec<(MountName, PathBuf)> =
        mounts.into_iter().map(|(name, directory)| (name, working.join(directory))).collect();
    let (_, bytes) = inspect::read(&provider)?;
    let all = format!("{} {mounts:?}", Digest::of(&bytes));
    let id: String = Digest::of(all.as_bytes()).hex().chars().take(NAME_LENGTH).collect();
    let state =
        location::state_home().ok_or_else(|| Failure::Failed("neither XDG_STATE_HOME nor HOME is set".to_owned()))?;
    let folder = state.join("files").join(&id);
    let at = |folder: &Path| LocationArgs { config: Some(folder.join(crate::config::FILE)), ..LocationArgs::default() };
    if !folder.is_dir() {
        // The folder gets its name when it is complete: another belljar may start for the same directories.
        let draft = folder.with_file_name(format!("{id}.{}", std::process::id()));
        private_dir(&draft).map_err(|why| Failure::Failed(why.to_string()))?;
        let at = LocationArgs { is_config_optional: true, ..at(&draft) };
        let written = mounts.iter().try_for_each(|(name, directory)| write(&at, &provider, name, directory));
        let named = written.and_then(|()| Ok(std::fs::rename(&draft, &folder)?));
        if let Err(why) = named {
            let _ = std::fs::remove_dir_all(&draft);
            if !folder.is_dir() {
                return Err(why);
            }
        }
    }
    Ok(at(&folder))
}

/// Writes the component, the grant and the lock of one mount.
fn write(at: &LocationArgs, provider: &Path, name: &MountName, directory: &Path) -> Result<(), Failure> {
    let mount = NewMount::read(provider, Some(name.as_str()))?;
    let kind = KINDS.iter().find(|kind| kind.name == GRANT);
    let kind = kind.ok_or_else(|| Failure::Failed(format!("there is no kind of grant \"{GRANT}\"")))?;
    let directory = directory.to_str().ok_or_else(|| {
        Failure::Failed(format!("\"{}\" is not UTF-8, so it cannot be granted", directory.to_string_lossy()))
    })?;
    let needs = mount.needs(GRANT);
    let guest = needs.first().and_then(|need| need.name.clone()).unwrap_or_else(|| "/data".to_owned());
    let value = GrantArgs { value: format!("{guest}={directory}"), extra_flags: Vec::new() };
    let change = ConfigChange::draft::<Failure>(at, |document, here| {
        edit::mount(document, name, |table| (kind.grant)(table, &value, here).map_err(Failure::misused))
    })?;
    mount.install(&change.new.plugins)?;
    let candidate = Candidate::find(&change.new, name)?;
    match grant::write(&change, &candidate)? {
        true => Ok(()),
        false => Err(Failure::Failed("another process changed belljar's own configuration; start again".to_owned())),
    }
}

/// The mounts, each named by its directory. Two directories with the same name get numbers.
fn mounts(directories: &[PathBuf]) -> Result<Vec<(MountName, &Path)>, Failure> {
    let mut taken = BTreeSet::new();
    let mut mounts = Vec::new();
    for directory in directories {
        let name = mount_name(directory);
        let names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}-{number}")));
        let free = names.into_iter().find(|name| taken.insert(name.clone())).unwrap_or(name);
        mounts.push((MountName::new(&free).map_err(Failure::misused)?, directory.as_path()));
    }
    Ok(mounts)
}

/// A name for the mount of a directory: its own name in small letters, with a hyphen for each other character.
fn mount_name(directory: &Path) -> String {
    let own = directory.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let words: String = own.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    // Room for a number after it.
    let name: String = words.join("-").chars().take(crate::model::MAX_MOUNT_NAME - 8).collect();
    match MountName::new(name.trim_end_matches('-')) {
        Ok(name) => name.to_string(),
        Err(_) => PROVIDER.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_named_by_its_directory() {
        let directories: Vec<PathBuf> =
            ["/home/you/My Notes", "/srv/notes", "/home/you/notes", "/", "/tmp/.."].map(PathBuf::from).to_vec();
        let named = mounts(&directories).unwrap_or_else(|_| panic!("a name is wrong"));
        let names: Vec<String> = named.into_iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["my-notes", "notes", "notes-2", "files", "files-2"]);
        assert_eq!(mount_name(Path::new("/a/Über uns (2024)!")), "ber-uns-2024");
        assert!(mount_name(Path::new(&"n".repeat(500))).len() < crate::model::MAX_MOUNT_NAME);
    }
}
