//! A built program: its bytes, and the machines that it runs on. They are read from its ELF headers, because a name can lie.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use object::Endianness;
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};

use crate::target::{Architecture, Linkage, Target};

/// The libraries that each Linux system with glibc has, by the policy of manylinux. Their file names begin so.
const EVERYWHERE: [&str; 7] =
    ["ld-linux", "libc.so.", "libdl.so.", "libgcc_s.so.", "libm.so.", "libpthread.so.", "librt.so."];

/// A built program.
pub(crate) struct Program {
    /// Where it was read from.
    pub(crate) path: PathBuf,
    /// Its bytes. All packages share them.
    pub(crate) bytes: Arc<[u8]>,
    /// The machines that it runs on.
    pub(crate) target: Target,
}

impl Program {
    /// Reads a program.
    pub(crate) fn read(path: &Path) -> Result<Program> {
        let shown = path.display();
        let bytes = fs::read(path).with_context(|| {
            format!(
                "cannot read the program \"{shown}\": build it with `cargo xtask build`, or name another with --program"
            )
        })?;
        let target = target(&bytes).with_context(|| format!("cannot pack the program \"{shown}\""))?;
        // A path without a directory would be looked up in PATH.
        let path = fs::canonicalize(path).with_context(|| format!("cannot resolve \"{shown}\""))?;
        Ok(Program { path, bytes: bytes.into(), target })
    }

    /// The bytes of the program `name`, which is built beside this one.
    pub(crate) fn beside(&self, name: &str) -> Result<Vec<u8>> {
        let beside = self.path.with_file_name(name);
        fs::read(&beside).with_context(|| {
            format!("cannot read the program \"{}\": build it with `cargo xtask build`", beside.display())
        })
    }

    /// True if this machine has the processor of the program.
    pub(crate) fn is_native(&self) -> bool {
        Architecture::of_this_machine() == Some(self.target.architecture)
    }
}

/// The machines that the program in `bytes` runs on.
fn target(bytes: &[u8]) -> Result<Target> {
    let elf = ElfFile64::<Endianness>::parse(bytes)
        .context("it is no ELF file of 64 bits, but belljar runs on Linux only")?;
    let (endian, header) = (elf.endian(), elf.elf_header());
    let architecture = match header.e_machine(endian) {
        EM_X86_64 => Architecture::X86_64,
        EM_AARCH64 => Architecture::Aarch64,
        other => bail!("its ELF machine is {other}, and packages are made for x86_64 and aarch64"),
    };
    let mut loader = None;
    for segment in elf.elf_program_headers() {
        loader = loader.or(segment.interpreter(endian, bytes)?);
    }
    let linkage = match loader.map(String::from_utf8_lossy) {
        None => Linkage::Static,
        Some(name) if name.contains("/ld-linux") => glibc(&elf)?,
        Some(name) => bail!("it needs the loader \"{name}\": link it statically, or against glibc"),
    };
    Ok(Target { architecture, linkage })
}

/// The newest version of glibc that a dynamic program needs. A library that a system may lack is an error.
fn glibc(elf: &ElfFile64<'_>) -> Result<Linkage> {
    let dynamic = elf.elf_dynamic_table()?;
    for entry in dynamic.iter() {
        if entry.tag == DT_NEEDED {
            let name = String::from_utf8_lossy(dynamic.string(entry)?);
            if !EVERYWHERE.iter().any(|library| name.starts_with(library)) {
                bail!("it needs the library \"{name}\", which not every system has: link that statically");
            }
        }
    }
    let newest = symbol_versions(elf)?.iter().filter_map(|name| glibc_version(name)).max();
    let (major, minor) = newest.context("it loads glibc, but has no version of a symbol of glibc")?;
    Ok(Linkage::Glibc(major, minor))
}

/// The names of the symbol versions that a program needs, such as `GLIBC_2.34`.
fn symbol_versions(elf: &ElfFile64<'_>) -> Result<Vec<String>> {
    let (endian, sections) = (elf.endian(), elf.elf_section_table());
    let mut names = Vec::new();
    let Some((libraries, link)) = sections.gnu_verneed(endian, elf.data())? else { return Ok(names) };
    let strings = sections.strings(endian, elf.data(), link)?;
    for library in libraries {
        let (_, versions) = library?;
        for version in versions {
            names.push(String::from_utf8_lossy(version?.name(endian, strings)?).into_owned());
        }
    }
    Ok(names)
}

/// The major and minor version in `GLIBC_2.34` or `GLIBC_2.2.5`. `None` for other names.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_numbers() {
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc_version("GLIBC_2.34"), Some((2, 34)));
        assert!(glibc_version("GLIBC_2.9") < glibc_version("GLIBC_2.34"));
        assert_eq!(glibc_version("GCC_3.0"), None);
        assert_eq!(glibc_version("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn the_target_is_read_from_the_program() {
        // The running test is a program of this machine.
        let own = std::env::current_exe().unwrap();
        let program = Program::read(&own).unwrap();
        assert!(program.is_native());
        assert!(cfg!(target_env = "musl") || matches!(program.target.linkage, Linkage::Glibc(2, 17..)));
    }

    #[test]
    fn another_file_is_refused() {
        let error = format!("{:#}", target(b"#!/bin/sh\n").unwrap_err());
        assert!(error.contains("no ELF file"), "{error}");
    }

    #[test]
    fn another_machine_is_refused() {
        let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        // The field `e_machine`; 243 is RISC-V.
        bytes[18..20].copy_from_slice(&243_u16.to_le_bytes());
        let error = format!("{:#}", target(&bytes).unwrap_err());
        assert!(error.contains("its ELF machine is 243"), "{error}");
    }
}
