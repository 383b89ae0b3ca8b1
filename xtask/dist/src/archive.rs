//! Tar archives that have the same bytes on each machine, and the package that is only such an archive.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::output::Output;
use crate::project::Project;
use crate::target::Target;
use crate::tree::{File, Tree};

/// A tar archive. Entries belong to root, and have the time of the project.
pub(crate) struct Tar<W: Write> {
    builder: tar::Builder<W>,
    /// The time of each entry, in seconds since 1970.
    time: u64,
    /// The directories that are in the archive already. Each ends with `/`.
    directories: BTreeSet<String>,
}

impl Tar<Vec<u8>> {
    /// An empty archive in memory.
    pub(crate) fn plain(project: &Project) -> Tar<Vec<u8>> {
        Tar::new(project, Vec::new())
    }

    /// The bytes of the archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?)
    }
}

impl Tar<GzEncoder<Vec<u8>>> {
    /// An empty archive in memory that is compressed while it grows, because the plain bytes of all packages are gigabytes.
    pub(crate) fn compressed(project: &Project) -> Tar<GzEncoder<Vec<u8>>> {
        Tar::new(project, encoder())
    }

    /// The compressed bytes of the archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?.finish()?)
    }
}

impl<W: Write> Tar<W> {
    fn new(project: &Project, writer: W) -> Tar<W> {
        Tar { builder: tar::Builder::new(writer), time: project.time, directories: BTreeSet::new() }
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
}

/// Compresses by gzip. The header has no time and no name.
fn encoder() -> GzEncoder<Vec<u8>> {
    GzBuilder::new().write(Vec::new(), Compression::default())
}

/// The bytes, compressed by gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = encoder();
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Writes `belljar-VERSION-TARGET.tar.gz`: the tree below a directory of the same name.
pub(crate) fn write(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    let name = format!("belljar-{}-{}", project.version, target.triple());
    let mut tar = Tar::compressed(project);
    tar.tree(&format!("{name}/"), tree)?;
    output.write(&format!("{name}.tar.gz"), &tar.finish()?)
}
