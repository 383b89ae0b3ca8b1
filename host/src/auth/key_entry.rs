//! One entry of the keys file: the hash of a key, and what belongs to its holder. Never the key itself.

use std::fmt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::api_key::KeyHash;
use crate::model::text;
use crate::policy::KeyIdentity;

/// The longest name of a key, in bytes.
const MAX_NAME: usize = 64;

/// The longest scope, and the longest group, in bytes.
const MAX_WORD: usize = 128;

/// The most scopes, and the most groups, of one key.
const MAX_WORDS: usize = 64;

/// One key of the keys file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The name, the groups and the scopes of the holder.
    pub identity: KeyIdentity,
    /// The hash of the key.
    pub hash: KeyHash,
    /// When the key was made. `None`: not known.
    pub created: Option<KeyTime>,
    /// From this time on, the key is refused. `None`: it never expires.
    pub expires: Option<KeyTime>,
}

impl KeyEntry {
    /// True if the key is refused at the time `at`, because it has expired.
    pub fn is_expired(&self, at: SystemTime) -> bool {
        self.expires.is_some_and(|expires| SystemTime::from(expires.0) <= at)
    }
}

/// The name of a key: it identifies the key in rules, records and commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyName(String);

/// The text is not the name of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not the name of a key; use at most {MAX_NAME} letters, digits, \"-\", \"_\", \".\" and \"@\", and begin with a letter or digit"
)]
pub struct KeyNameError(String);

impl KeyName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is too long, or has a character that names do not have.
    pub fn new(name: &str) -> Result<Self, KeyNameError> {
        let is_first = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        match is_first && name.len() <= MAX_NAME && name.bytes().all(is_inner) {
            true => Ok(Self(name.to_owned())),
            false => Err(KeyNameError(text::excerpt(name, 80))),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A point in time in the keys file, such as `2027-01-31T12:00:00Z`. Exact to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyTime(DateTime<Utc>);

/// The time is outside the years that the keys file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time is after the year 9999; use a shorter time, or \"never\"")]
pub struct KeyTimeError;

impl KeyTime {
    /// The second of `time`.
    ///
    /// # Errors
    /// If it is before 1970 or after the year 9999.
    pub fn new(time: SystemTime) -> Result<Self, KeyTimeError> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| KeyTimeError)?;
        let seconds = i64::try_from(since.as_secs()).map_err(|_| KeyTimeError)?;
        let time = DateTime::from_timestamp(seconds, 0).map(Self).ok_or(KeyTimeError)?;
        // RFC 3339 has four digits for the year.
        if time.to_string().len() == "2027-01-31T12:00:00Z".len() { Ok(time) } else { Err(KeyTimeError) }
    }
}

impl fmt::Display for KeyTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

impl<'de> Deserialize<'de> for KeyTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        let time = DateTime::parse_from_rfc3339(&written)
            .map_err(|error| D::Error::custom(format!("expected a time such as \"2027-01-31T12:00:00Z\" ({error})")))?;
        Ok(Self(time.to_utc()))
    }
}

/// Checks the scopes of a key. A scope has the characters that OAuth allows (RFC 6749, section 3.3), so that keys and tokens
/// can have the same ones.
///
/// # Errors
/// The first scope that is wrong.
pub fn check_scopes(scopes: &[String]) -> Result<(), KeyWordError> {
    let is_scope = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let wrong = |scope: &&String| scope.is_empty() || scope.len() > MAX_WORD || !scope.bytes().all(is_scope);
    match scopes.iter().find(wrong) {
        Some(scope) => Err(KeyWordError::Scope(text::excerpt(scope, 80))),
        None if scopes.len() > MAX_WORDS => Err(KeyWordError::TooMany(scopes.len())),
        None => Ok(()),
    }
}

/// Checks the groups of a key.
///
/// # Errors
/// The first group that is wrong.
pub fn check_groups(groups: &[String]) -> Result<(), KeyWordError> {
    match groups.iter().find(|group| group.trim().is_empty() || !text::is_clean(group, MAX_WORD)) {
        Some(group) => Err(KeyWordError::Group(text::excerpt(group, 80))),
        None if groups.len() > MAX_WORDS => Err(KeyWordError::TooMany(groups.len())),
        None => Ok(()),
    }
}

/// Why the scopes or groups of a key are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyWordError {
    /// A scope is empty, too long, or has a character that scopes do not have.
    #[error(
        "\"{0}\" is not a scope; use 1 to {MAX_WORD} printable ASCII characters without spaces, quotation marks and backslashes"
    )]
    Scope(String),
    /// A group is empty, too long, or has invisible characters.
    #[error("\"{0}\" is not a group; use 1 to {MAX_WORD} visible characters")]
    Group(String),
    /// There are too many.
    #[error("there are {0} entries; use at most {MAX_WORDS}")]
    TooMany(usize),
}

/// The table `[[key]]`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct KeyTable {
    name: KeyName,
    sha256: KeyHash,
    #[serde(default, deserialize_with = "scopes")]
    scopes: Vec<String>,
    #[serde(default, deserialize_with = "groups")]
    groups: Vec<String>,
    created: Option<KeyTime>,
    expires: Option<KeyTime>,
}

fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let scopes = Vec::deserialize(deserializer)?;
    check_scopes(&scopes).map_err(D::Error::custom).map(|()| scopes)
}

fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let groups = Vec::deserialize(deserializer)?;
    check_groups(&groups).map_err(D::Error::custom).map(|()| groups)
}

impl<'de> Deserialize<'de> for KeyEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let KeyTable { name, sha256: hash, scopes, groups, created, expires } = KeyTable::deserialize(deserializer)?;
        Ok(Self { identity: KeyIdentity { name: name.0, groups, scopes }, hash, created, expires })
    }
}

impl<'de> Deserialize<'de> for KeyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["ci", "0", "ana@laptop", "a.b-c_d", &"x".repeat(64)] {
            assert_eq!(KeyName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "-a", ".a", "a b", "a/b", "é", "a\n", &"x".repeat(65)] {
            assert!(KeyName::new(name).unwrap_err().to_string().contains("is not the name of a key"), "{name:?}");
        }
    }

    #[test]
    fn scopes_have_the_characters_of_oauth() {
        let check = |scope: &str| check_scopes(&[scope.to_owned()]);
        for scope in ["notes:read", "a", "https://x.example/y", "!", "~", &"x".repeat(128)] {
            assert_eq!(check(scope), Ok(()), "{scope:?}");
        }
        for scope in ["", "a b", "a\"b", "a\\b", "a\u{7f}", "é", "a\n", &"x".repeat(129)] {
            assert!(check(scope).is_err(), "{scope:?}");
        }
        assert_eq!(check_scopes(&vec!["a".to_owned(); 65]), Err(KeyWordError::TooMany(65)));
    }

    #[test]
    fn groups_are_visible() {
        let check = |group: &str| check_groups(&[group.to_owned()]);
        for group in ["oncall", "On call, Berlin", "équipe"] {
            assert_eq!(check(group), Ok(()), "{group:?}");
        }
        for group in ["", " ", "a\nb", "a\u{202e}b", &"x".repeat(129)] {
            assert!(check(group).is_err(), "{group:?}");
        }
    }

    #[test]
    fn times_are_whole_seconds_within_four_digits_of_years() {
        let time = |seconds| KeyTime::new(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(time(1_795_478_400).unwrap().to_string(), "2026-11-24T00:00:00Z");
        let later = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_478_400_999);
        assert_eq!(KeyTime::new(later).unwrap(), time(1_795_478_400).unwrap());
        assert!(time(253_402_300_799).is_ok(), "the last second of the year 9999");
        assert_eq!(time(253_402_300_800), Err(KeyTimeError));
        assert_eq!(KeyTime::new(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), Err(KeyTimeError));
    }
}
