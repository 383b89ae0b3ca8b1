//! API keys: their form, their checksum and their hash. Knows no file, no principal and no clock.
//!
//! # Form
//!
//! | part | characters | content |
//! |---|---|---|
//! | prefix | 3 | `bj_` |
//! | secret | 43 | random letters and digits: 256 bits |
//! | checksum | 6 | the CRC-32 of everything before it, in base 62 |
//!
//! A secret scanner finds keys by the regular expression `\bbj_[0-9A-Za-z]{49}\b`. The checksum tells a key from another
//! text of this form, without a question to any server. A CRC protects against nothing: it finds typing errors, and
//! spares the look-up of other texts.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The first characters of every key.
pub const PREFIX: &str = "bj_";

/// Characters of the secret: the least number of letters and digits that hold 256 bits.
const SECRET_LENGTH: usize = 43;

/// Characters of the checksum: enough letters and digits for 32 bits.
const CHECKSUM_LENGTH: usize = 6;

/// The digits of base 62, in the order of their values.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text that stands for a key in messages.
const HIDDEN: &str = "[API key]";

/// A new API key. It is shown once and stored nowhere. Has no `Debug` and no `Display`. Its memory is wiped.
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Makes a key from random numbers of the operating system.
    ///
    /// # Errors
    /// If the operating system gives no random numbers.
    pub fn generate() -> Result<Self, getrandom::Error> {
        // Reserved at once: a growing string would leave parts of the secret in freed memory.
        let mut key = Zeroizing::new(String::with_capacity(PREFIX.len() + SECRET_LENGTH + CHECKSUM_LENGTH));
        key.push_str(PREFIX);
        let mut random = Zeroizing::new([0; 64]);
        while key.len() < PREFIX.len() + SECRET_LENGTH {
            getrandom::fill(random.as_mut_slice())?;
            // A byte that is refused here would make the first digits likelier than the others.
            let fair = random.iter().filter(|byte| **byte < 4 * 62);
            let missing = PREFIX.len() + SECRET_LENGTH - key.len();
            key.extend(fair.take(missing).map(|byte| char::from(digit(u32::from(*byte)))));
        }
        let checksum = checksum(key.as_bytes());
        key.extend(checksum.map(char::from));
        Ok(Self(key))
    }

    /// The text of the key, for the person who asked for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash under which belljar stores the key.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(&self.0)
    }
}

/// True if `text` has the form of a key, with the right checksum.
pub fn is_well_formed(text: &str) -> bool {
    let Some(body) = text.strip_prefix(PREFIX).filter(|body| body.len() == SECRET_LENGTH + CHECKSUM_LENGTH) else {
        return false;
    };
    let parts = text.as_bytes().split_at_checked(PREFIX.len() + SECRET_LENGTH);
    body.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && parts.is_some_and(|(before, written)| checksum(before) == written)
}

/// The digit of base 62 for `value` modulo 62.
fn digit(value: u32) -> u8 {
    DIGITS.get((value % 62) as usize).copied().unwrap_or(b'0')
}

/// The checksum of the characters before it. The most significant digit comes first.
fn checksum(before: &[u8]) -> [u8; CHECKSUM_LENGTH] {
    let mut rest = crc32fast::hash(before);
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for place in digits.iter_mut().rev() {
        *place = digit(rest);
        rest /= 62;
    }
    digits
}

/// `text` with `[API key]` in place of everything that begins as a key does. For messages about files in which a key may
/// have been pasted.
pub fn hide_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        out.push_str(before);
        out.push_str(if end == 0 { PREFIX } else { HIDDEN });
        rest = after.get(end..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The SHA-256 of a key. Keys are random, so a fast hash without salt is enough: nobody can try 2^256 keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Hashes the text of a key.
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// The first eight bytes as a number, for the order of a table.
    pub(super) fn prefix(&self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// The first eight hexadecimal digits. Logs and records contain no more of a credential.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl PartialEq for KeyHash {
    /// Takes the same time for all hashes, equal or not.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyHash {}

impl fmt::Display for KeyHash {
    /// 64 hexadecimal digits, in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

/// The text is not the hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the SHA-256 of a key, in 64 hexadecimal digits; \"belljar key new\" writes it")]
pub struct KeyHashError;

impl FromStr for KeyHash {
    type Err = KeyHashError;

    /// Parses hexadecimal digits in lower or upper case.
    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| KeyHashError)?;
        bytes.try_into().map(Self).map_err(|_| KeyHashError)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A key without its checksum.
    const FIXED: &str = "bj_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg";

    #[test]
    fn a_new_key_has_the_documented_form() {
        let pattern = regex::Regex::new(r"(?-u:\b)bj_[0-9A-Za-z]{49}(?-u:\b)").unwrap();
        let mut seen = HashSet::new();
        let mut digits = HashSet::new();
        for _ in 0..500 {
            let key = ApiKey::generate().unwrap();
            assert!(is_well_formed(key.reveal()), "{}", key.reveal());
            assert_eq!(pattern.find(&format!("token={};", key.reveal())).unwrap().as_str(), key.reveal());
            assert_eq!(key.hash(), KeyHash::of(key.reveal()));
            digits.extend(key.reveal().chars().skip(3).take(43));
            assert!(seen.insert(key.reveal().to_owned()));
        }
        assert_eq!(digits.len(), 62, "each digit occurs");
    }

    #[test]
    fn a_checksum_is_the_crc_in_base_62() {
        let written = String::from_utf8(checksum(FIXED.as_bytes()).to_vec()).unwrap();
        let value_of = |digit: u8| DIGITS.iter().position(|one| *one == digit).unwrap() as u64;
        let value = written.bytes().fold(0, |value, digit| value * 62 + value_of(digit));
        assert_eq!(value, u64::from(crc32fast::hash(FIXED.as_bytes())));
        assert!(62_u64.pow(6) > u64::from(u32::MAX), "six digits hold every CRC");
        assert_eq!(FIXED.len(), PREFIX.len() + SECRET_LENGTH);
        assert_eq!(written, "261QDi", "issued keys must stay valid");
        assert!(is_well_formed(&format!("{FIXED}{written}")));
    }

    #[test]
    fn other_texts_are_malformed() {
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        let (first, last) = (&key[..51], &key[51..]);
        for wrong in [
            String::new(),
            "bj_".into(),
            first.to_owned(),
            format!("{key}0"),
            format!(" {key}"),
            format!("{key}\n"),
            key.replacen("bj_", "BJ_", 1),
            key.replacen("bj_", "bj-", 1),
            format!("{first}{}", if last == "0" { "1" } else { "0" }),
            format!("bj_{}", "é".repeat(24) + "a"),
            format!("bj_{}", "-".repeat(49)),
            format!("bj_{}", "0".repeat(49)),
        ] {
            assert!(!is_well_formed(&wrong), "{wrong:?}");
        }
        // Every change of one character is found.
        for at in 3..key.len() {
            let other = if key.as_bytes()[at] == b'x' { "y" } else { "x" };
            assert!(!is_well_formed(&format!("{}{other}{}", &key[..at], &key[at + 1..])), "at {at}");
        }
    }

    #[test]
    fn a_hash_is_written_and_read_back() {
        // FIPS 180-2, appendix B.1.
        let hash = KeyHash::of("abc");
        assert_eq!(hash.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash.short(), "ba7816bf");
        assert_eq!(hash.prefix(), 0xba78_16bf_8f01_cfea);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
        assert_ne!(hash, KeyHash::of("abd"));
        for wrong in ["", "ba78", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66), &format!(" {hash}")] {
            assert_eq!(wrong.parse::<KeyHash>(), Err(KeyHashError), "{wrong:?}");
        }
    }

    #[test]
    fn keys_are_hidden_in_messages() {
        let key = ApiKey::generate().unwrap();
        let text = format!("name = \"{0}\", {0}x; bj_ and bj_a", key.reveal());
        assert_eq!(hide_keys(&text), "name = \"[API key]\", [API key]; bj_ and [API key]");
        assert_eq!(hide_keys("nothing"), "nothing");
    }
}
