//! Tokens that were verified a short time ago. A signature check takes a hundred times as long as a look-up here.
//!
//! Tokens are remembered by their SHA-256, so no token is kept, and the time of a look-up says nothing about one. Only
//! verified tokens are remembered: others cannot fill the memory.

use std::time::{Duration, SystemTime};

use moka::sync::Cache;

use crate::model::Digest;
use crate::policy::Principal;

/// The most remembered tokens.
const MAX_TOKENS: u64 = 4096;

/// How long a token is remembered at most. A revoked token is accepted for that long.
pub(super) const MAX_AGE: Duration = Duration::from_secs(5 * 60);

/// Remembered tokens.
pub(super) struct VerifiedTokens(Cache<Digest, VerifiedToken>);

/// A remembered token.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) principal: Principal,
    /// The index of the issuer, and the version of its keys. `None`: the issuer was asked about the token.
    pub(super) keys: Option<(usize, u64)>,
    /// When the token was verified.
    pub(super) from: SystemTime,
    /// When it is forgotten.
    pub(super) until: SystemTime,
}

impl VerifiedTokens {
    /// No tokens.
    pub(super) fn new() -> Self {
        // The time to live only frees memory. The times of each token decide.
        Self(Cache::builder().max_capacity(MAX_TOKENS).time_to_live(MAX_AGE).build())
    }

    /// The token of this digest, at the time `at`. `key_version` gives the current version of an issuer's keys.
    pub(super) fn find(
        &self,
        digest: &Digest,
        at: SystemTime,
        key_version: impl Fn(usize) -> u64,
    ) -> Option<Principal> {
        let token = self.0.get(digest)?;
        let is_current = token.keys.is_none_or(|(issuer, version)| key_version(issuer) == version);
        // A clock that was set back would make a token last longer.
        if is_current && token.from <= at && at < token.until {
            return Some(token.principal);
        }
        if !is_current || token.until <= at {
            self.0.invalidate(digest);
        }
        None
    }

    /// Remembers a token for `age`, and never past `expires`.
    pub(super) fn remember(
        &self,
        digest: Digest,
        principal: Principal,
        keys: Option<(usize, u64)>,
        from: SystemTime,
        expires: Option<SystemTime>,
        age: Duration,
    ) {
        let until = expires.map_or(from + age, |expires| expires.min(from + age));
        if from < until {
            self.0.insert(digest, VerifiedToken { principal, keys, from, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::policy::{Evidence, TokenIdentity, authenticate};

    fn principal() -> Principal {
        authenticate(Evidence::Token(TokenIdentity { subject: "alice".to_owned(), ..TokenIdentity::default() }))
    }

    #[test]
    fn a_token_is_forgotten_in_time() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        for (expires, age, forgotten) in [(None, 300, 1300), (Some(1100), 300, 1100), (Some(9999), 60, 1060)] {
            let tokens = VerifiedTokens::new();
            let age = Duration::from_secs(age);
            tokens.remember(Digest([1; 32]), principal(), None, at(1000), expires.map(at), age);
            for (now, is_there) in [(1000, true), (999, false), (forgotten - 1, true), (forgotten, false)] {
                assert_eq!(tokens.find(&Digest([1; 32]), at(now), |_| 0).is_some(), is_there, "{expires:?} {now}");
            }
        }
        let tokens = VerifiedTokens::new();
        tokens.remember(Digest([1; 32]), principal(), None, at(1000), Some(at(990)), MAX_AGE);
        assert_eq!(tokens.0.iter().count(), 0, "an expired token is accepted within the skew, and not remembered");
    }

    #[test]
    fn a_token_is_forgotten_when_the_keys_of_its_issuer_change() {
        let tokens = VerifiedTokens::new();
        tokens.remember(Digest([1; 32]), principal(), Some((3, 7)), UNIX_EPOCH, None, MAX_AGE);
        assert!(tokens.find(&Digest([2; 32]), UNIX_EPOCH, |_| 7).is_none());
        assert!(tokens.find(&Digest([1; 32]), UNIX_EPOCH, |issuer| issuer as u64 + 4).is_some());
        assert!(tokens.find(&Digest([1; 32]), UNIX_EPOCH, |_| 8).is_none());
        assert!(tokens.find(&Digest([1; 32]), UNIX_EPOCH, |_| 7).is_none(), "forgotten");
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let tokens = VerifiedTokens::new();
        for number in 0..3 * MAX_TOKENS {
            let digest = Digest::of(&number.to_le_bytes());
            tokens.remember(digest, principal(), None, UNIX_EPOCH, None, MAX_AGE);
        }
        tokens.0.run_pending_tasks();
        assert!((1..=MAX_TOKENS).contains(&tokens.0.entry_count()), "{}", tokens.0.entry_count());
    }
}
