//! Secrets that change while belljar runs, such as access tokens.

use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::patterns::SecretPatterns;
use super::spelling::MAX_BYTES_PER_BYTE;
use crate::grants::secrets::secret::Secret;

/// The secrets that are kept. A call may still show one that was replaced while it ran.
const KEPT: usize = 4;

/// The present value of a secret that changes, and the values before it. A [`super::Redactor`] masks all of them.
#[derive(Default)]
pub struct LiveSecrets(ArcSwap<KeptSecrets>);

/// The kept secrets, the newest first, with their spellings.
#[derive(Default)]
struct KeptSecrets {
    secrets: Vec<Arc<Secret>>,
    patterns: Option<SecretPatterns>,
}

impl LiveSecrets {
    /// The most bytes of a value.
    pub const MAX_LENGTH: usize = 8 << 10;

    /// The most bytes of a spelling of a value.
    pub(super) const LONGEST_SPELLING: usize = Self::MAX_LENGTH * MAX_BYTES_PER_BYTE;

    /// Masks `secret` too, from now on. The oldest secret is dropped if there are too many.
    pub fn add(&self, secret: &Arc<Secret>) {
        self.0.rcu(|kept| {
            let others = kept.secrets.iter().filter(|other| other.value != secret.value);
            let secrets: Vec<_> = std::iter::once(secret).chain(others).take(KEPT).cloned().collect();
            KeptSecrets { patterns: SecretPatterns::new(&secrets), secrets }
        });
    }

    /// The length of the longest spelling of any present secret, in bytes. Zero: there is none.
    pub(super) fn longest(&self) -> usize {
        self.0.load().patterns.as_ref().map_or(0, |patterns| patterns.longest)
    }

    /// True if one of the secrets has a space.
    pub(super) fn has_space(&self) -> bool {
        self.0.load().patterns.as_ref().is_some_and(|patterns| patterns.has_space)
    }

    /// Adds the range of every occurrence that begins before `until`.
    pub(super) fn find(&self, bytes: &[u8], until: usize, found: &mut Vec<Range<usize>>) {
        if let Some(patterns) = &self.0.load().patterns {
            patterns.find(bytes, until, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::Redactor;
    use super::*;

    #[test]
    fn the_present_value_and_those_before_it_are_masked() {
        let live = Arc::new(LiveSecrets::default());
        let redactor = Redactor::with_live([], vec![Arc::clone(&live)]).unwrap();
        let masked = |text: &str| {
            let mut text = text.to_owned();
            redactor.mask(&mut text);
            text
        };
        assert_eq!(masked("token-number-0"), "token-number-0");
        assert_eq!((redactor.longest(), redactor.margin()), (1, 48 << 10));
        for number in 0..6 {
            let value = Zeroizing::new(format!("token-number-{number}"));
            live.add(&Arc::new(Secret::new("t", value).unwrap()));
        }
        for (number, is_masked) in [(0, false), (1, false), (2, true), (3, true), (4, true), (5, true)] {
            let text = format!("token-number-{number}");
            assert_eq!(masked(&text).contains("****"), is_masked, "{text}");
        }
        assert_eq!(redactor.longest(), 14 * MAX_BYTES_PER_BYTE);
        assert!(Redactor::with_live([], Vec::new()).is_none());
    }
}
