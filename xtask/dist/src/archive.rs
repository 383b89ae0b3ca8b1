//! Tar archives that have the same bytes on each machine, and the package that is only such an archive.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};

use crate::output::Output;
use crate::project::Project;
use crate::target::Target;
use crate::tree::{File, Tree};

/// A tar archive in memory. Entries belong to root, and have the time of the project.
pub(crate) struct Tar {
    builder: tar::Builder<Vec<u8>>,
    /// The time of each entry, in seconds since 1970.
    time: u64,
    /// The directories that are in the archive already. Each ends with `/`.
    directories: BTreeSet<String>,
}

impl Tar {
    /// An empty archive.
    pub(crate) fn new(project: &Project) -> Tar {
        Tar { builder: tar::Builder::new(Vec::new()), time: project.time, directories: BTreeSet::new() }
    }

    /// Adds the files of a tree, each path after `prefix`. The prefix is empty or ends with `/`.
    pub(crate) fn tree(&mut self, prefix: &str, tree: &Tree) -> Result<()> {
        tree.iter().try_for_each(|(path, file)| self.file(&format!("{prefix}{path}"), file))
    }

    /// Adds a file, after the directories above it.
    pub(crate) fn file(&mut self, path: &str, file: &File) -> Result<()> {
        for (end, _) in path.match_indices('/') {
            self.directory(&format!("{}/", path.get(..end).unwrap_or_default()), 0)?;
        }
        self.entry(path, tar::EntryType::Regular, if file.is_program { 0o755 } else { 0o644 }, 0, &file.bytes)
    }

    /// Adds a directory, unless it is in the archive. The path ends with `/`. `owner` is the number of its user and group.
    pub(crate) fn directory(&mut self, path: &str, owner: u64) -> Result<()> {
        if !self.directories.insert(path.to_owned()) {
            return Ok(());
        }
        self.entry(path, tar::EntryType::Directory, 0o755, owner, &[])
    }

    fn entry(&mut self, path: &str, kind: tar::EntryType, mode: u32, owner: u64, bytes: &[u8]) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner);
        header.set_gid(owner);
        header.set_mtime(self.time);
        header.set_size(bytes.len() as u64);
        Ok(self.builder.append_data(&mut header, path, bytes)?)
    }

    /// The bytes of the archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?)
    }
}

/// Compresses by gzip. The header has no time and no name.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Writes `belljar-VERSION-TARGET.tar.gz`: the tree below a directory of the same name.
pub(crate) fn write(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    let name = format!("belljar-{}-{}", project.version, target.triple());
    let mut tar = Tar::new(project);
    tar.tree(&format!("{name}/"), tree)?;
    output.write(&format!("{name}.tar.gz"), &gzip(&tar.finish()?)?)
}
