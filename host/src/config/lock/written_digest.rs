//! A digest in the lock.

use serde::{Deserialize, Deserializer};

use crate::model::Digest;

/// A digest, written as `sha256:` and 64 hexadecimal digits.
pub(super) struct WrittenDigest(pub(super) Digest);

impl<'de> Deserialize<'de> for WrittenDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
