//! Secrets: values that the host adds to what a provider sends, and that nobody else sees.
//!
//! A secret is read once, at the start, from where the operator keeps it; it is wiped from memory when it is dropped, has
//! no `Debug` and no `Display`, and whatever leaves towards clients, logs and records has it masked first.

mod redactor;

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use zeroize::Zeroizing;

use super::Ambient;
use crate::model::{Digest, command};

pub use redactor::{Pieces, Redactor};

/// The shortest secret: a shorter one cannot be told from ordinary text when it is masked.
const SHORTEST: usize = 8;

/// The longest secret.
const LONGEST: usize = 16 << 10;

/// Where the operator keeps a secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Source {
    /// An environment variable of belljar's.
    Env(String),
    /// A file that only its owner can read. One line break at its end is not part of the secret.
    File(PathBuf),
}

/// One secret.
pub struct Secret {
    name: String,
    value: Zeroizing<String>,
}

impl Secret {
    /// What the operator calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A secret of that value.
    ///
    /// # Errors
    /// When it is too short or too long to be masked, or has a control character.
    pub fn new(name: &str, value: Zeroizing<String>) -> Result<Self, String> {
        match value.len() {
            0 => Err("it is empty".to_owned()),
            short if short < SHORTEST => {
                Err(format!("it has fewer than {SHORTEST} characters, and could not be told from ordinary text"))
            }
            long if long > LONGEST => Err(format!("it has more than {LONGEST} bytes")),
            _ if value.chars().any(char::is_control) => {
                Err("it has a line break or another control character in it".to_owned())
            }
            _ => Ok(Self { name: name.to_owned(), value }),
        }
    }
}

/// Secrets by name, or why one cannot be used; see [`Secrets::to_plain`].
pub type Plain = BTreeMap<String, Result<String, String>>;

/// The secrets that the operator declared, read; or why one could not be.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, Result<Arc<Secret>, String>>);

impl Secrets {
    /// Reads all of them. What cannot be read is an error where it is used, not here.
    pub fn read(sources: &BTreeMap<String, Source>, ambient: &Ambient) -> Self {
        let read = |(name, source): (&String, &Source)| {
            let value = match source {
                Source::Env(variable) => from_env(variable),
                Source::File(path) => ambient.absolute(path).and_then(|path| from_file(&path)),
            };
            let secret = value.and_then(|value| Secret::new(name, value)).map(Arc::new);
            (name.clone(), secret.map_err(|why| format!("the secret \"{name}\" cannot be used: {why}")))
        };
        Self(sources.iter().map(read).collect())
    }

    /// Those that cannot be used, and why.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|secret| secret.as_ref().err().map(String::as_str))
    }

    /// These, and no others.
    pub fn of(secrets: impl IntoIterator<Item = Arc<Secret>>) -> Self {
        Self(secrets.into_iter().map(|secret| (secret.name.clone(), Ok(secret))).collect())
    }

    /// A digest of all of them, to tell whether one was changed.
    pub fn digest(&self) -> Digest {
        let mut all = Zeroizing::new(Vec::new());
        for (name, secret) in &self.0 {
            let (kind, text) = match secret {
                Ok(secret) => (0u8, secret.value.as_bytes()),
                Err(why) => (1, why.as_bytes()),
            };
            // Lengths first, so that no two lists look alike.
            for part in [name.as_bytes(), &[kind], text] {
                all.extend_from_slice(&(part.len() as u64).to_le_bytes());
                all.extend_from_slice(part);
            }
        }
        Digest::of(&all)
    }

    /// All of them as plain data, to be handed to another process of belljar's.
    pub fn to_plain(&self) -> Plain {
        let plain = |secret: &Result<Arc<Secret>, String>| match secret {
            Ok(secret) => Ok(secret.value.as_str().to_owned()),
            Err(why) => Err(why.clone()),
        };
        self.0.iter().map(|(name, secret)| (name.clone(), plain(secret))).collect()
    }

    /// What [`Secrets::to_plain`] gave.
    pub fn from_plain(plain: Plain) -> Self {
        let secret =
            |name: &str, value: Result<String, String>| Secret::new(name, Zeroizing::new(value?)).map(Arc::new);
        Self(plain.into_iter().map(|(name, value)| (name.clone(), secret(&name, value))).collect())
    }

    fn get(&self, name: &str) -> Result<&Arc<Secret>, String> {
        match self.0.get(name) {
            Some(Ok(secret)) => Ok(secret),
            Some(Err(why)) => Err(why.clone()),
            // The name has letters, digits, "-" and "_" only: see `Template`.
            None => Err(format!(
                "there is no secret \"{name}\"; put its value into an environment variable of belljar's, or into a file that only you can read, and add  {name} = {{ env = \"VARIABLE\" }}  or  {name} = {{ file = \"FILE\" }}  to [secrets]; for the first, run: {}",
                command::line(["set", &format!("secrets.{name} = {{ env = \"{}\" }}", variable(name))])
            )),
        }
    }
}

/// The variable that a secret of that name may be kept in.
fn variable(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("SECRET_{name}") } else { name }
}

fn from_env(variable: &str) -> Result<Zeroizing<String>, String> {
    #[expect(clippy::disallowed_methods, reason = "the variable that the operator named")]
    let value = std::env::var(variable);
    value.map(Zeroizing::new).map_err(|error| match error {
        std::env::VarError::NotPresent => {
            format!("the environment variable \"{}\" is not set", variable.escape_debug())
        }
        std::env::VarError::NotUnicode(_) => {
            format!("the environment variable \"{}\" is not UTF-8", variable.escape_debug())
        }
    })
}

fn from_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let fail = |why: &dyn std::fmt::Display| format!("\"{}\": {why}", path.display());
    // Not blocking, so that a FIFO is an error and no wait.
    let nonblock = i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes());
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    let file =
        std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path).map_err(|error| fail(&error))?;
    let meta = file.metadata().map_err(|error| fail(&error))?;
    if !meta.is_file() {
        return Err(fail(&"it is not a regular file"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(fail(&format!("others can read it; run: chmod 600 {}", command::quoted(&path.to_string_lossy()))));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() && meta.uid() != 0 {
        return Err(fail(&"it belongs to another user; make it your own"));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST + 2));
    file.take(LONGEST as u64 + 2).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| fail(&"it is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

/// Text with secrets in it, as the operator wrote it: `Bearer ${secret:name}`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Plain(String),
    Secret(String),
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        const OPEN: &str = "${secret:";
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(OPEN) {
            let is_name = |name: &str| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            };
            let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
                return Err("expected ${secret:NAME}, with a name of letters, digits, \"-\" and \"_\"".to_owned());
            };
            if !before.is_empty() {
                pieces.push(Piece::Plain(before.to_owned()));
            }
            pieces.push(Piece::Secret(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Plain(rest.to_owned()));
        }
        Ok(Self(pieces))
    }
}

impl Template {
    /// Whether there is a secret in it.
    pub fn is_secret(&self) -> bool {
        !self.names().is_empty()
    }

    /// The names of the secrets in it.
    pub fn names(&self) -> Vec<&str> {
        let name = |piece: &'_ Piece| match piece {
            Piece::Secret(_) => true,
            Piece::Plain(_) => false,
        };
        let named = self.0.iter().filter(|piece| name(piece));
        named
            .map(|piece| match piece {
                Piece::Secret(text) | Piece::Plain(text) => text.as_str(),
            })
            .collect()
    }

    /// The text, and the secrets that are in it.
    ///
    /// # Errors
    /// When a secret is not declared or could not be read.
    pub fn fill(&self, secrets: &Secrets) -> Result<(Zeroizing<String>, Vec<Arc<Secret>>), String> {
        let mut text = Zeroizing::new(String::new());
        let mut used = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Secret(name) => {
                    let secret = secrets.get(name)?;
                    // Grown whole, so that no copy of half of it is left behind.
                    let mut longer = Zeroizing::new(String::with_capacity(text.len() + secret.value.len()));
                    longer.push_str(&text);
                    longer.push_str(&secret.value);
                    text = longer;
                    used.push(Arc::clone(secret));
                }
            }
        }
        Ok((text, used))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn templates_name_secrets() {
        let template = |text: &str| Template::try_from(text.to_owned());
        let bearer = template("Bearer ${secret:api-key}!").unwrap();
        assert_eq!(bearer.names(), ["api-key"]);
        assert!(!template("plain $x ${y}").unwrap().is_secret());
        for bad in ["${secret:}", "${secret:a b}", "${secret:a"] {
            assert!(template(bad).is_err(), "{bad}");
        }
        let secrets = Secrets::of([Arc::new(
            Secret::new("api-key", Zeroizing::new("12345678".to_owned())).unwrap_or_else(|why| panic!("{why}")),
        )]);
        assert_eq!(bearer.fill(&secrets).unwrap().0.as_str(), "Bearer 12345678!");
        let why = template("${secret:other}").unwrap().fill(&secrets).err().unwrap();
        assert!(why.contains("\"other\"") && why.contains("[secrets]"), "{why}");
    }

    #[test]
    fn files_must_be_private() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("token");
        let read = || {
            let sources = BTreeMap::from([("t".to_owned(), Source::File("token".into()))]);
            let secrets = Secrets::read(&sources, &Ambient { base: temp.path().into(), ..Ambient::default() });
            secrets.get("t").map(|secret| secret.value.as_str().to_owned())
        };
        assert!(read().unwrap_err().contains("token"));
        std::fs::write(&path, "a-long-token\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(read().unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(read().unwrap(), "a-long-token");
        for (bad, says) in [("", "empty"), ("short\n", "fewer than 8"), ("two\nlines\nlong", "line break")] {
            std::fs::write(&path, bad).unwrap();
            assert!(read().unwrap_err().contains(says), "{bad:?}");
        }
        let unset = BTreeMap::from([("e".to_owned(), Source::Env("BELLJAR_NO_SUCH_VARIABLE".to_owned()))]);
        assert!(Secrets::read(&unset, &Ambient::default()).failures().any(|why| why.contains("is not set")));
    }
}
