//! `belljar.lock`: the digests of the components that may use each mount's grants. Only belljar writes it. belljar reads it at
//! every start and compares it at every load. This module opens no file: text in, text out.
//!
//! A damaged lock is refused as a whole. The checksum covers every entry and finds damage that still parses. Without it, one
//! changed letter in a mount's name would leave the mount without a pin, and belljar would pin the next component unasked.

mod revocation;
mod source;
mod written_digest;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::model::{Digest, Guard, MountName, command, text};

/// The name of the file, beside the configuration.
pub const FILE: &str = "belljar.lock";

/// The newest version of the format. Version 1 has no sources; a lock without them is written as version 1.
const VERSION: u64 = 2;

/// The first line of the file.
const HEADING: &str = "# The components that may use the grants of each mount. Written by belljar. To accept a changed component: belljar trust MOUNT\n";

/// The most names of exports, and of imports, that a pin keeps. Real components have fewer.
const NAMES: usize = 256;

pub use revocation::LockedRevocation;
pub use source::{LockedSigner, LockedSource};
use written_digest::WrittenDigest;

/// The entry of one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The digest of the component that may use the grants.
    pub digest: Digest,
    /// The digest of a component that takes its place: an upgrade writes this, replaces the file, and writes the digest. In
    /// between, both may use the grants.
    pub next: Option<Digest>,
    /// Where the component was fetched from. `None` for a component that was there.
    pub source: Option<LockedSource>,
    /// The exports of that component. `belljar trust` shows how they changed.
    pub exports: Vec<String>,
    /// The imports of that component.
    pub imports: Vec<String>,
}

/// The pins of all mounts. A mount that has no grants any more keeps its pin, for the case that it gets grants again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    pins: BTreeMap<MountName, Pin>,
}

/// Why the lock is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LockError {
    /// The line of the problem. The first line is 1.
    pub line: usize,
    /// The problem.
    pub problem: LockProblem,
}

/// A problem of the lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockProblem {
    /// It is not TOML, or a key is missing, unknown or of the wrong type. Holds the parser's message.
    #[error("{0}")]
    Form(String),
    /// It has another version.
    #[error(
        "version {0} is not supported: this belljar reads the versions up to {VERSION}; use the belljar that wrote the file"
    )]
    Version(u64),
    /// The checksum does not fit the entries.
    #[error("the checksum does not fit: another program than belljar changed the file")]
    Checksum,
}

/// Why a component may not use the grants of its mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The grants are for another component, with this digest.
    Changed(Digest),
    /// The lock has no pin for the mount. Holds the reason, for the operator.
    Unknown(String),
    /// Its publisher revoked this version, and `[trust] revoked = "stop"`. Holds the pinned digest.
    Revoked(Digest, LockedRevocation),
}

/// How components are compared with the lock.
#[derive(Clone, Debug)]
pub enum Pins {
    /// Each mount with grants needs its pin.
    On {
        /// The pins.
        lock: Lock,
        /// Why belljar could not write a missing pin. None if it could.
        unwritten: Option<String>,
    },
    /// Each mount with grants is compared with its pin, and a mount without a pin passes. For commands that run no provider.
    AllowMissing(Lock),
    /// The lock cannot be read. Holds the reason.
    Broken(String),
    /// No component is compared (`--dev`).
    Off,
}

impl Default for Pins {
    fn default() -> Self {
        Self::On { lock: Lock::default(), unwritten: None }
    }
}

impl Pins {
    /// Checks that the component with this digest may use the grants of `mount`.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn check(&self, mount: &MountName, digest: &Digest) -> Result<(), Mismatch> {
        if !Guard::Pin.is_on() {
            return Ok(());
        }
        let (lock, unwritten) = match self {
            Self::Off => return Ok(()),
            Self::Broken(why) => return Err(Mismatch::Unknown(why.clone())),
            Self::On { lock, unwritten } => (lock, unwritten.as_deref()),
            Self::AllowMissing(lock) if lock.pin(mount).is_none() => return Ok(()),
            Self::AllowMissing(lock) => (lock, None),
        };
        match lock.pin(mount) {
            Some(pin) if pin.digest == *digest || pin.next == Some(*digest) => Ok(()),
            Some(pin) => Err(Mismatch::Changed(pin.digest)),
            None => Err(Mismatch::Unknown(unwritten.map_or_else(
                || {
                    let trust = command::line(["trust", mount.as_str()]);
                    format!("its component appeared after belljar was started; start again, or run: {trust}")
                },
                str::to_owned,
            ))),
        }
    }

    /// True if the lock says where the component of `mount` was fetched from. It is compared also without grants.
    pub fn is_fetched(&self, mount: &MountName) -> bool {
        self.lock().and_then(|lock| lock.pin(mount)).is_some_and(|pin| pin.source.is_some())
    }

    /// Why the publisher of the component with this digest revoked it. `None`: it did not, as far as the lock knows.
    pub fn revocation(&self, mount: &MountName, digest: &Digest) -> Option<&LockedRevocation> {
        let pin = self.lock()?.pin(mount).filter(|pin| pin.digest == *digest)?;
        pin.source.as_ref()?.revoked.as_ref()
    }

    /// The lock. None if it cannot be read or is not compared.
    pub fn lock(&self) -> Option<&Lock> {
        match self {
            Self::On { lock, .. } | Self::AllowMissing(lock) => Some(lock),
            Self::Broken(_) | Self::Off => None,
        }
    }
}

impl Lock {
    /// Parses the text of the file.
    ///
    /// # Errors
    /// The first problem, with its line.
    pub fn parse(source: &str) -> Result<Self, LockError> {
        let wrong = |span: Option<std::ops::Range<usize>>, problem| {
            let before = span.and_then(|span| source.get(..span.start)).unwrap_or_default();
            LockError { line: before.matches('\n').count() + 1, problem }
        };
        let file: LockFile = toml::from_str(source)
            .map_err(|error| wrong(error.span(), LockProblem::Form(text::excerpt(error.message(), 200))))?;
        if !(1..=VERSION).contains(file.version.get_ref()) {
            return Err(wrong(Some(file.version.span()), LockProblem::Version(*file.version.get_ref())));
        }
        let pins = file.mounts.into_iter().map(|(name, entry)| (name.0, entry.into())).collect();
        let lock = Self { pins };
        let found = Digest::of(lock.body().as_bytes());
        if file.checksum.get_ref().0 != found {
            return Err(wrong(Some(file.checksum.span()), LockProblem::Checksum));
        }
        Ok(lock)
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let (body, is_new) = (self.body(), self.pins.values().any(|pin| pin.next.is_some() || pin.source.is_some()));
        let version = if is_new { VERSION } else { 1 };
        format!("{HEADING}version = {version}\nchecksum = \"{}\"\n{body}", Digest::of(body.as_bytes()))
    }

    /// The entries in their canonical form, which the checksum covers.
    fn body(&self) -> String {
        let mut out = String::new();
        for (name, pin) in &self.pins {
            let _ = write!(out, "\n[mounts.{name}]\ndigest = \"{}\"\n", pin.digest);
            if let Some(next) = &pin.next {
                let _ = writeln!(out, "next = \"{next}\"");
            }
            for (key, names) in [("exports", &pin.exports), ("imports", &pin.imports)] {
                let _ = writeln!(out, "{key} = [");
                for name in names {
                    let _ = writeln!(out, "    {},", toml::Value::from(name.as_str()));
                }
                out.push_str("]\n");
            }
            if let Some(source) = &pin.source {
                let _ = write!(out, "\n[mounts.{name}.source]\n{source}");
            }
        }
        out
    }

    /// All pins.
    pub fn pins(&self) -> impl Iterator<Item = (&MountName, &Pin)> {
        self.pins.iter()
    }

    /// The pin of a mount.
    pub fn pin(&self, mount: &MountName) -> Option<&Pin> {
        self.pins.get(mount)
    }

    /// Sets the pin of `mount`. Returns the pin that it had.
    pub fn set(&mut self, mount: MountName, mut pin: Pin) -> Option<Pin> {
        pin.exports.truncate(NAMES);
        pin.imports.truncate(NAMES);
        self.pins.insert(mount, pin)
    }

    /// Removes the pin of `mount`, and returns it.
    pub fn remove(&mut self, mount: &MountName) -> Option<Pin> {
        self.pins.remove(mount)
    }
}

/// The form of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    version: Spanned<u64>,
    checksum: Spanned<WrittenDigest>,
    #[serde(default)]
    mounts: BTreeMap<PinnedMount, LockEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockEntry {
    digest: WrittenDigest,
    next: Option<WrittenDigest>,
    exports: Vec<String>,
    imports: Vec<String>,
    source: Option<source::WrittenSource>,
}

impl From<LockEntry> for Pin {
    fn from(entry: LockEntry) -> Self {
        let LockEntry { digest, next, exports, imports, source } = entry;
        let next = next.map(|next| next.0);
        Self { digest: digest.0, next, source: source.map(LockedSource::from), exports, imports }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PinnedMount(MountName);

impl<'de> Deserialize<'de> for PinnedMount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MountName::new(&String::deserialize(deserializer)?).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> MountName {
        MountName::new(text).unwrap()
    }

    fn pin(bytes: &[u8]) -> Pin {
        Pin {
            digest: Digest::of(bytes),
            next: None,
            source: None,
            exports: vec!["a:b/c@0.1.0".into()],
            imports: vec!["wasi:io/poll@0.2.0".into(), "\"\\\u{e9}".into()],
        }
    }

    fn lock() -> Lock {
        let mut lock = Lock::default();
        lock.set(name("notes"), pin(b"1"));
        lock.set(name("weather"), pin(b"2"));
        lock
    }

    fn lock_with_sources() -> Lock {
        let mut lock = lock();
        let signer = LockedSigner { name: "https://a/\"b\"@refs/tags/1".into(), issuer: Some("https://issuer".into()) };
        let manifest = Some(Digest::of(b"manifest"));
        let (reference, version) = ("ghcr.io/acme/tides:1.2".to_owned(), Some("1.2.0".to_owned()));
        let revoked = LockedRevocation { reason: None, instead: Some("1.3.0".into()) };
        let signed = LockedSource { reference, manifest, version, signer: Some(signer), revoked: Some(revoked) };
        let revoked = Some(LockedRevocation { reason: Some("a \"leak\"".into()), instead: None });
        let unsigned = LockedSource { manifest: None, version: None, signer: None, revoked, ..signed.clone() };
        lock.set(name("tides"), Pin { source: Some(signed), ..pin(b"4") });
        lock.set(name("unsigned"), Pin { source: Some(unsigned), next: Some(Digest::of(b"6")), ..pin(b"5") });
        lock
    }

    #[test]
    fn a_written_lock_is_read_back() {
        assert!(lock().to_text().contains("\nversion = 1\n"), "an older belljar reads it");
        assert!(lock_with_sources().to_text().contains("\nversion = 2\n"));
        for lock in [Lock::default(), lock(), lock_with_sources()] {
            assert_eq!(Lock::parse(&lock.to_text()).unwrap(), lock, "{}", lock.to_text());
            // Comments and the line ends of another system do not count.
            assert_eq!(Lock::parse(&format!("{}# mine\r\n", lock.to_text().replace('\n', "\r\n"))).unwrap(), lock);
        }
    }

    #[test]
    fn errors_name_the_line_of_the_problem() {
        let good = lock().to_text();
        for (from, to, expected) in [
            ("version = 1", "version = 3", "line 2: version 3 is not supported"),
            ("version = 1", "version = 1\nmore = 1", "line 3: unknown field `more`"),
            ("digest = \"sha256:", "digest = \"sha257:", "line 6: "),
            ("[mounts.weather]", "[mounts.notes]", "duplicate key"),
            ("[mounts.weather]", "[mounts.Weather]", "not a mount name"),
            ("[mounts.weather]", "[mounts.whether]", "line 3: the checksum does not fit"),
            ("exports", "expurts", "unknown field"),
            ("version = 1\n", "", "missing field `version`"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            let why = Lock::parse(&bad).unwrap_err().to_string();
            assert!(why.starts_with("line ") && why.contains(expected), "{to}: {why}");
        }
        for cut in (1..good.len()).filter(|cut| good.is_char_boundary(*cut)) {
            let rest = good.get(..cut).unwrap();
            assert!(Lock::parse(rest).map_or(true, |lock| lock == self::lock()), "cut at {cut}");
        }
    }

    #[test]
    fn no_flipped_bit_lets_another_component_pass() {
        let (good, other) = (lock_with_sources().to_text(), Digest::of(b"3"));
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone().into_bytes();
                *bytes.get_mut(at).unwrap() ^= 1 << bit;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                let Ok(lock) = Lock::parse(&text) else { continue };
                let pins = Pins::On { lock, unwritten: None };
                for mount in ["notes", "weather", "tides", "unsigned"] {
                    assert!(
                        matches!(pins.check(&name(mount), &other), Err(Mismatch::Changed(_))),
                        "bit {bit} of byte {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn components_are_compared_with_their_pins() {
        let (one, other) = (Digest::of(b"1"), Digest::of(b"3"));
        let on = Pins::On { lock: lock(), unwritten: Some("no room".into()) };
        assert_eq!(on.check(&name("notes"), &one), Ok(()));
        let upgrading = Pins::On { lock: lock_with_sources(), unwritten: None };
        let revoked = |digest| upgrading.revocation(&name("unsigned"), &Digest::of(digest)).is_some();
        assert!(revoked(b"5") && !revoked(b"6"), "an upgrade that is half done takes the new one");
        for digest in [Digest::of(b"5"), Digest::of(b"6")] {
            assert_eq!(upgrading.check(&name("unsigned"), &digest), Ok(()), "the old one and the new one");
        }
        assert_eq!(on.check(&name("notes"), &other), Err(Mismatch::Changed(one)));
        assert_eq!(on.check(&name("new"), &one), Err(Mismatch::Unknown("no room".into())));
        assert!(
            matches!(Pins::default().check(&name("new"), &one), Err(Mismatch::Unknown(why)) if why.contains("belljar trust new"))
        );
        assert_eq!(Pins::AllowMissing(lock()).check(&name("new"), &one), Ok(()));
        assert_eq!(Pins::AllowMissing(lock()).check(&name("notes"), &other), Err(Mismatch::Changed(one)));
        assert_eq!(Pins::Broken("bad".into()).check(&name("notes"), &one), Err(Mismatch::Unknown("bad".into())));
        assert_eq!(Pins::Off.check(&name("notes"), &other), Ok(()));
    }
}
