//! The question to a person, and the answer.

use std::fmt;

use super::asked_request::{AskedRequest, MAX_SHOWN_CHARS};
use crate::grants::GrantKind;
use crate::model::{Consent, Digest, MountName, text};

/// Hexadecimal digits of a digest that a question shows: enough to compare, few enough to read.
const DIGEST_DIGITS: usize = 12;

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// Allow for this request.
    Once,
    /// Allow permanently.
    Always,
    /// Refuse.
    Deny,
    /// The person dismissed the question with "decline".
    Decline,
    /// The person closed the question without an answer.
    Cancel,
}

impl ConsentAnswer {
    /// The answer as one lower-case word, for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::Deny => "deny",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// The consent part of a request: whether the client can ask a person, and an earlier answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsentInput<'a> {
    /// True if the client can ask a person.
    pub can_answer: bool,
    /// The returned state of a question, and the answer. The answer is `None` if the state came back without one.
    pub answered: Option<(&'a str, Option<ConsentAnswer>)>,
}

/// A question that a call ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentQuestion {
    /// The mount that needs the grant.
    pub mount: MountName,
    /// The digest of its component.
    pub digest: Digest,
    /// The request that needs it.
    pub request: AskedRequest<'static>,
    /// The grant that is needed.
    pub wanted: Consent,
    /// True if the grant can be allowed permanently.
    pub can_be_permanent: bool,
    /// The state that must come back with the answer.
    pub state: String,
}

/// The text of the question. It contains no free text of a provider: only the characters that a reference may have, and
/// an origin as the grants' parser writes it.
impl fmt::Display for ConsentQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mount, digest, request, wanted, .. } = self;
        let action = GrantKind::find(&wanted.grant).map_or("to use", |kind| kind.consent_question);
        let digest: String = digest.hex().chars().take(DIGEST_DIGITS).collect();
        let wanted = text::quoted(&wanted.target, MAX_SHOWN_CHARS);
        write!(
            f,
            "belljar: the provider \"{mount}\" (sha256:{digest}) wants {action} {wanted}, for {request}. It holds no grant for that. Allow it?"
        )
    }
}
