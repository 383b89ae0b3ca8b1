//! `belljar.lock`: which bytes may use a mount's grants. Read at every start, compared at every load, written by belljar
//! only. It knows no files: text in, text out.
//!
//! What is damaged is refused whole. A checksum over everything that is said finds what would parse all the same: a mount's
//! name with another letter would be a mount without a pin, and its next bytes would be taken for its first ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::model::{Digest, Guard, MountName, command, text};

/// The name of the file, beside the configuration.
pub const FILE: &str = "belljar.lock";

/// The format that is written and read.
const VERSION: u64 = 1;

/// The first line of the file.
const HEADING: &str =
    "# Which bytes may use the grants of a mount. Kept by belljar; to accept changed ones: belljar trust MOUNT\n";

/// Names of exports or imports that are kept of a component; none that is of use has more.
const NAMES: usize = 256;

/// What the lock knows of one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The bytes that may use its grants.
    pub digest: Digest,
    /// What they exported, so that a change can be told.
    pub exports: Vec<String>,
    /// What they imported.
    pub imports: Vec<String>,
}

/// The pins of all mounts, those that hold no grants now included: a grant that comes back finds the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    pins: BTreeMap<MountName, Pin>,
}

/// Why a mount's bytes may not use its grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// They are not those that the grants were given to, which had this digest.
    Changed(Digest),
    /// It is not known which ones the grants were given to; says why, for the operator.
    Unknown(String),
}

/// How bytes are compared with the lock.
#[derive(Clone, Debug)]
pub enum Pins {
    /// Each mount with grants needs its pin.
    On {
        /// The pins.
        lock: Lock,
        /// Why a pin that was missing could not be written.
        unwritten: Option<String>,
    },
    /// As above, but what has no pin yet passes: nothing of it will run.
    Look(Lock),
    /// The lock cannot be read; says why.
    Broken(String),
    /// Nothing is compared (`--dev`).
    Off,
}

impl Default for Pins {
    fn default() -> Self {
        Self::On { lock: Lock::default(), unwritten: None }
    }
}

impl Pins {
    /// Whether bytes with this digest may use the grants of `mount`.
    ///
    /// # Errors
    /// Says why not.
    pub fn judge(&self, mount: &MountName, digest: &Digest) -> Result<(), Mismatch> {
        if !Guard::Pin.is_on() {
            return Ok(());
        }
        let (lock, unwritten) = match self {
            Self::Off => return Ok(()),
            Self::Broken(why) => return Err(Mismatch::Unknown(why.clone())),
            Self::On { lock, unwritten } => (lock, unwritten.as_deref()),
            Self::Look(lock) if lock.pin(mount).is_none() => return Ok(()),
            Self::Look(lock) => (lock, None),
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

    /// The pins, where they can be read.
    pub fn lock(&self) -> Option<&Lock> {
        match self {
            Self::On { lock, .. } | Self::Look(lock) => Some(lock),
            Self::Broken(_) | Self::Off => None,
        }
    }
}

impl Lock {
    /// Reads the file's text.
    ///
    /// # Errors
    /// Says in which line and what is wrong.
    pub fn parse(source: &str) -> Result<Self, String> {
        let line = |span: Option<std::ops::Range<usize>>| {
            let before = span.and_then(|span| source.get(..span.start)).unwrap_or_default();
            format!("line {}", before.matches('\n').count() + 1)
        };
        let file: File = toml::from_str(source)
            .map_err(|error| format!("{}: {}", line(error.span()), text::excerpt(error.message(), 200)))?;
        let at = |span: &Spanned<_>| line(Some(span.span()));
        if *file.version.get_ref() != VERSION {
            return Err(format!(
                "{}: version {} is not the one that this belljar reads, which is {VERSION}; use the belljar that wrote it",
                line(Some(file.version.span())),
                file.version.get_ref()
            ));
        }
        let pins = file.mounts.into_iter().map(|(name, entry)| (name.0, entry.into())).collect();
        let lock = Self { pins };
        let found = Digest::of(lock.body().as_bytes());
        if file.checksum.get_ref().0 != found {
            return Err(format!(
                "{}: the checksum does not fit: something else than belljar changed the file",
                at(&file.checksum)
            ));
        }
        Ok(lock)
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let body = self.body();
        format!("{HEADING}version = {VERSION}\nchecksum = \"{}\"\n{body}", Digest::of(body.as_bytes()))
    }

    /// What the checksum is of: everything that is said, in one way of saying it.
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

    /// Binds the grants of `mount` to these bytes; the earlier pin, if there was one.
    pub fn set(&mut self, mount: MountName, mut pin: Pin) -> Option<Pin> {
        pin.exports.truncate(NAMES);
        pin.imports.truncate(NAMES);
        self.pins.insert(mount, pin)
    }

    /// Forgets `mount`.
    pub fn remove(&mut self, mount: &MountName) -> Option<Pin> {
        self.pins.remove(mount)
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u64>,
    checksum: Spanned<Hash>,
    #[serde(default)]
    mounts: BTreeMap<Name, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    digest: Hash,
    exports: Vec<String>,
    imports: Vec<String>,
}

impl From<Entry> for Pin {
    fn from(entry: Entry) -> Self {
        Self { digest: entry.digest.0, exports: entry.exports, imports: entry.imports }
    }
}

/// A digest in its full spelling.
struct Hash(Digest);

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(MountName);

impl<'de> Deserialize<'de> for Name {
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
    fn what_was_written_is_read() {
        for lock in [Lock::default(), lock()] {
            assert_eq!(Lock::parse(&lock.to_text()).unwrap(), lock, "{}", lock.to_text());
            // What says the same is the same: line ends of another system, comments.
            assert_eq!(Lock::parse(&format!("{}# mine\r\n", lock.to_text().replace('\n', "\r\n"))).unwrap(), lock);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let good = lock().to_text();
        for (from, to, expected) in [
            ("version = 1", "version = 2", "line 2: version 2 is not"),
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
            let why = Lock::parse(&bad).unwrap_err();
            assert!(why.starts_with("line ") && why.contains(expected), "{to}: {why}");
        }
        for cut in (1..good.len()).filter(|cut| good.is_char_boundary(*cut)) {
            let rest = good.get(..cut).unwrap();
            assert!(Lock::parse(rest).map_or(true, |lock| lock == self::lock()), "cut at {cut}");
        }
    }

    #[test]
    fn no_damaged_byte_lets_other_bytes_pass() {
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
                        matches!(pins.judge(&name(mount), &other), Err(Mismatch::Changed(_))),
                        "bit {bit} of byte {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_are_judged() {
        let (one, other) = (Digest::of(b"1"), Digest::of(b"3"));
        let on = Pins::On { lock: lock(), unwritten: Some("no room".into()) };
        assert_eq!(on.judge(&name("notes"), &one), Ok(()));
        assert_eq!(on.judge(&name("notes"), &other), Err(Mismatch::Changed(one)));
        assert_eq!(on.judge(&name("new"), &one), Err(Mismatch::Unknown("no room".into())));
        assert!(
            matches!(Pins::default().judge(&name("new"), &one), Err(Mismatch::Unknown(why)) if why.contains("belljar trust new"))
        );
        assert_eq!(Pins::Look(lock()).judge(&name("new"), &one), Ok(()));
        assert_eq!(Pins::Look(lock()).judge(&name("notes"), &other), Err(Mismatch::Changed(one)));
        assert_eq!(Pins::Broken("bad".into()).judge(&name("notes"), &one), Err(Mismatch::Unknown("bad".into())));
        assert_eq!(Pins::Off.judge(&name("notes"), &other), Ok(()));
    }
}
