//! The machines that packages are made for, and the name that each package format has for them.

use anyhow::{Result, bail};

/// The targets that `cargo xtask dist` compiles for. Their programs are static, so that one file runs on each distribution.
pub const TRIPLES: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// A processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

/// How a program reaches its C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// The program contains all that it needs.
    Static,
    /// The program loads glibc, of this version `(major, minor)` or newer.
    Glibc(u32, u32),
}

/// The machines that a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The processor.
    pub(crate) architecture: Architecture,
    /// The C library.
    pub(crate) linkage: Linkage,
}

/// Checks a target of the option `--target`. Only the targets in [`TRIPLES`] are valid.
///
/// # Errors
///
/// The error names the target and the valid ones.
pub fn musl_triple(triple: &str) -> Result<&'static str> {
    match TRIPLES.into_iter().find(|known| *known == triple) {
        Some(known) => Ok(known),
        None => bail!("no packages are made for the target \"{triple}\": use {}", TRIPLES.join(" or ")),
    }
}

impl Architecture {
    /// The architecture of this machine. `None` if belljar does not run on it.
    pub fn of_this_machine() -> Option<Architecture> {
        [Architecture::X86_64, Architecture::Aarch64].into_iter().find(|one| one.name() == std::env::consts::ARCH)
    }

    /// The name in target triples and in tags of wheels.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian and in OCI images, which use the same.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }

    /// The name in npm: a value of `process.arch`.
    pub(crate) fn node(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x64",
            Architecture::Aarch64 => "arm64",
        }
    }
}

impl Target {
    /// The target triple. A static program is named after musl, because Rust's targets for musl are the static ones.
    pub(crate) fn triple(&self) -> String {
        let library = match self.linkage {
            Linkage::Static => "musl",
            Linkage::Glibc(..) => "gnu",
        };
        format!("{}-unknown-linux-{library}", self.architecture.name())
    }

    /// The platform tag of a wheel (PEP 600, PEP 656). A static program has the tags of the oldest systems that pip knows.
    pub(crate) fn wheel(&self) -> String {
        let name = self.architecture.name();
        match self.linkage {
            Linkage::Static => format!("manylinux_2_17_{name}.manylinux2014_{name}.musllinux_1_1_{name}"),
            Linkage::Glibc(major, minor) => format!("manylinux_{major}_{minor}_{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_name() {
        let of = |architecture, linkage| Target { architecture, linkage };
        let fixed = of(Architecture::X86_64, Linkage::Static);
        assert_eq!(fixed.triple(), TRIPLES[0]);
        assert_eq!(fixed.wheel(), "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64");
        let arm = of(Architecture::Aarch64, Linkage::Static);
        assert_eq!(arm.triple(), TRIPLES[1]);
        assert_eq!((arm.architecture.debian(), arm.architecture.node()), ("arm64", "arm64"));
        let dynamic = of(Architecture::X86_64, Linkage::Glibc(2, 34));
        assert_eq!(
            (dynamic.triple().as_str(), dynamic.wheel().as_str()),
            ("x86_64-unknown-linux-gnu", "manylinux_2_34_x86_64")
        );
    }

    #[test]
    fn an_unknown_target_is_named() {
        let error = musl_triple("riscv64gc-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.contains("\"riscv64gc-unknown-linux-gnu\"") && error.contains(TRIPLES[1]), "{error}");
        assert_eq!(musl_triple(TRIPLES[1]).unwrap(), TRIPLES[1]);
    }
}
