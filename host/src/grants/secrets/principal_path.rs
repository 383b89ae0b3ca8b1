//! The path of a secret that has one file for each principal: `secrets/{principal}/github`.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::Digest;

/// The text that the name of a principal replaces.
pub(super) const PLACEHOLDER: &str = "{principal}";

/// The longest encoded name, in bytes. File systems allow 255 for a whole file name.
const MAX_NAME: usize = 200;

/// The path of a secret that has one file for each principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalPath {
    /// The directory in front of the part with the placeholder.
    directory: PathBuf,
    /// The path below it, with the placeholder.
    below: String,
}

/// A path with a placeholder that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PrincipalPathError {
    /// The placeholder occurs twice, or something like it occurs.
    #[error("expected \"{PLACEHOLDER}\" once, and no other braces")]
    Placeholder,
    /// The part of the path behind the placeholder is not UTF-8, or leaves its directory.
    #[error("expected plain names behind \"{PLACEHOLDER}\", without \".\" and \"..\"")]
    Below,
}

impl PrincipalPath {
    /// The path, if it has a placeholder. `None` if all principals share one file.
    ///
    /// # Errors
    /// If the placeholder is not used as it must be.
    pub fn find(path: &Path) -> Result<Option<Self>, PrincipalPathError> {
        let (mut directory, mut below) = (PathBuf::new(), Vec::new());
        for part in path.components() {
            let name = part.as_os_str().to_string_lossy();
            let is_below = !below.is_empty();
            if is_below && !matches!(part, Component::Normal(_)) {
                return Err(PrincipalPathError::Below);
            }
            let has_placeholder = name.contains(PLACEHOLDER);
            if has_placeholder && (is_below || name.replacen(PLACEHOLDER, "", 1).contains(['{', '}'])) {
                return Err(PrincipalPathError::Placeholder);
            }
            if is_below || has_placeholder {
                below.push(part.as_os_str().to_str().ok_or(PrincipalPathError::Below)?.to_owned());
            } else {
                directory.push(part);
            }
        }
        Ok((!below.is_empty()).then(|| Self { directory, below: below.join("/") }))
    }

    /// The directory in front of the part with the placeholder. Every file of the secret is below it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path below [`PrincipalPath::directory`] for a principal, for messages.
    pub fn below(&self, principal: &str) -> String {
        self.below.replace(PLACEHOLDER, &encoded(principal))
    }

    /// The file of a principal.
    pub fn file(&self, principal: &str) -> PathBuf {
        self.directory.join(self.below(principal))
    }

    /// The whole path, with the placeholder.
    pub fn pattern(&self) -> PathBuf {
        self.directory.join(&self.below)
    }
}

/// The name of a principal as a part of a path: lower-case letters, digits, `-` and `_` stay, every other byte becomes
/// `%` and two digits. So no name is `.` or `..`, leads into another directory, or is equal to another name on a file
/// system that ignores case. A name that would be longer than [`MAX_NAME`] becomes its SHA-256, which no short name
/// equals: each of those is a word of belljar's own, or has an encoded ":" or "@".
fn encoded(principal: &str) -> String {
    let mut name = String::new();
    for byte in principal.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => drop(write!(name, "%{byte:02x}")),
        }
    }
    if name.len() > MAX_NAME || name.is_empty() { Digest::of(principal.as_bytes()).hex() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(written: &str) -> PrincipalPath {
        PrincipalPath::find(Path::new(written)).unwrap().unwrap()
    }

    #[test]
    fn a_path_is_split_before_the_placeholder() {
        for (written, directory, file) in [
            ("/s/{principal}/github", "/s", "/s/key%3aci/github"),
            ("/s/{principal}", "/s", "/s/key%3aci"),
            ("/s/a-{principal}.token", "/s", "/s/a-key%3aci.token"),
            ("{principal}", "", "key%3aci"),
            ("/{principal}/a/b", "/", "/key%3aci/a/b"),
        ] {
            let path = path(written);
            assert_eq!(
                (path.directory(), path.file("key:ci")),
                (Path::new(directory), PathBuf::from(file)),
                "{written}"
            );
            assert_eq!(path.pattern(), Path::new(written));
        }
        assert_eq!(PrincipalPath::find(Path::new("/s/github")), Ok(None));
        assert_eq!(PrincipalPath::find(Path::new("/s/{x}")), Ok(None), "a directory may have such a name");
        for wrong in ["/s/{principal}/{principal}", "/{principal}{principal}", "/{principal}{", "/}{principal}"] {
            assert_eq!(PrincipalPath::find(Path::new(wrong)), Err(PrincipalPathError::Placeholder), "{wrong}");
        }
        assert_eq!(PrincipalPath::find(Path::new("/s/{principal}/../x")), Err(PrincipalPathError::Below));
    }

    #[test]
    fn every_name_is_a_plain_part_of_a_path() {
        for (principal, expected) in [
            ("local", "local"),
            ("key:ci", "key%3aci"),
            ("..", "%2e%2e"),
            (".", "%2e"),
            ("a/b@https://login.example", "a%2fb%40https%3a%2f%2flogin%2eexample"),
            ("Ana", "%41na"),
            ("é", "%c3%a9"),
            ("a\0b", "a%00b"),
            ("%2e", "%252e"),
            ("{principal}", "%7bprincipal%7d"),
        ] {
            assert_eq!(encoded(principal), expected);
        }
        let long = "x".repeat(201);
        assert_eq!(encoded(&long), Digest::of(long.as_bytes()).hex());
        assert_eq!(encoded(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(encoded(&"/".repeat(67)).len(), 64, "the encoded length counts");
        assert_eq!(encoded("").len(), 64);
    }

    #[test]
    fn two_principals_never_share_a_name() {
        let names = ["a", "A", "a/", "a%2f", "%61", "key:a", "key%3aa", "a@b", "a%40b", "ä", "a\u{308}"];
        let encoded: std::collections::HashSet<String> = names.iter().map(|name| encoded(name)).collect();
        assert_eq!(encoded.len(), names.len());
    }
}
