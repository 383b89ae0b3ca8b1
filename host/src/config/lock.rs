//! `belljar.lock`: the digests of the components that may use each mount's grants. Only belljar writes it. belljar reads it at
//! every start and compares it at every load. This module opens no file: text in, text out.
//!
//! A damaged lock is refused as a whole. The checksum covers every entry and finds damage that still parses. Without it, one
//! changed letter in a mount's name would leave the mount without a pin, and belljar would pin the next component unasked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::model::{Digest, Guard, MountName, command, text};

/// The name of the file, beside the configuration.
pub const FILE: &str = "belljar.lock";

/// The version of the format.
const VERSION: u64 = 1;

/// The first line of the file.
const HEADING: &str = "# The components that may use the grants of each mount. Written by belljar. To accept a changed component: belljar trust MOUNT\n";

/// The most names of exports, and of imports, that a pin keeps. Real components have fewer.
const NAMES: usize = 256;

/// The entry of one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The digest of the component that may use the grants.
    pub digest: Digest,
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
    #[error("version {0} is not supported: this belljar reads version {VERSION}; use the belljar that wrote the file")]
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
            Some(pin) if pin.digest == *digest => Ok(()),
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
        if *file.version.get_ref() != VERSION {
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
        let body = self.body();
        format!("{HEADING}version = {VERSION}\nchecksum = \"{}\"\n{body}", Digest::of(body.as_bytes()))
    }

    /// The entries in their canonical form, which the checksum covers.
    fn body(&self) -> String {
        let mut out = String::new();
        for (name, pin) in &self.pins {
            let _ = write!(out, "\n[mounts.{name}]\ndigest = \"{}\"\n", pin.digest);
            for (key, names) in [("exports", &pin.exports), ("imports", &pin.imports)] {
                let _ = writeln!(out, "{key} = [");
                for name in names {
                    let _ = writeln!(out, "    {},", toml::Value::from(name.as_str()));
                }
                out.push_str("]\n");
            }
        }
        out
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
    exports: Vec<String>,
    imports: Vec<String>,
}

impl From<LockEntry> for Pin {
    fn from(entry: LockEntry) -> Self {
        Self { digest: entry.digest.0, exports: entry.exports, imports: entry.imports }
    }
}

/// A digest, written as `sha256:` and 64 hexadecimal digits.
struct WrittenDigest(Digest);

impl<'de> Deserialize<'de> for WrittenDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
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

    #[test]
    fn a_written_lock_is_read_back() {
        for lock in [Lock::default(), lock()] {
            assert_eq!(Lock::parse(&lock.to_text()).unwrap(), lock, "{}", lock.to_text());
            // Comments and the line ends of another system do not count.
            assert_eq!(Lock::parse(&format!("{}# mine\r\n", lock.to_text().replace('\n', "\r\n"))).unwrap(), lock);
        }
    }

    #[test]
    fn errors_name_the_line_of_the_problem() {
        let good = lock().to_text();
        for (from, to, expected) in [
            ("version = 1", "version = 2", "line 2: version 2 is not supported"),
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
        let (good, other) = (lock().to_text(), Digest::of(b"3"));
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone().into_bytes();
                *bytes.get_mut(at).unwrap() ^= 1 << bit;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                let Ok(lock) = Lock::parse(&text) else { continue };
                let pins = Pins::On { lock, unwritten: None };
                for mount in ["notes", "weather"] {
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
