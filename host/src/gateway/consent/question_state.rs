//! The state of a question: it travels with the question, sealed, and comes back with the answer.

use super::asked_request::AskedRequest;
use crate::gateway::request_states::StateNumber;
use crate::grants::KINDS;
use crate::model::seal::Seal;
use crate::model::{AskContext, Consent, Digest, MountName, ReadError};

/// The longest state in bytes: a URI, five consents, a caller, and the answers to a provider's question, each of the
/// greatest length, escaped, in base64.
pub(super) const MAX_STATE: usize = 128 << 10;

/// The contents of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionState {
    /// The number of the question.
    pub number: StateNumber,
    /// The time of the question, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The mount that needs the grant.
    pub mount: MountName,
    /// The digest of its component.
    pub digest: Digest,
    /// The version of the mount. It changes with any change of the mount's configuration.
    pub version: [u8; 32],
    /// The request for which was asked.
    pub request: AskedRequest<'static>,
    /// The caller that was asked: its transport, and the client's name.
    pub caller: (String, Option<String>),
    /// The identity of the principal that was asked.
    pub principal: String,
    /// The grant that is needed.
    pub wanted: Consent,
    /// The grants that were allowed earlier in the same request.
    pub given: Vec<Consent>,
    /// The answers to the provider's own earlier question, and its state.
    pub carried: Option<AskContext>,
}

/// The reason why a state is not valid. The text continues "the request state ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionStateError {
    /// The request has no state.
    #[error("is missing; send the one that came with the question")]
    Missing,
    /// The state is longer than any that this server issues.
    #[error("is longer than any that this server gives")]
    TooLong,
    /// belljar did not seal the state, or another replica did and there is no store.
    #[error("was not given by this server since it started, or was changed on its way")]
    Foreign,
    /// The state is older than [`ANSWER_TIME`](crate::gateway::request_states::ANSWER_TIME).
    #[error("is older than 5 minutes")]
    Expired,
    /// The question was answered before.
    #[error("was used already")]
    Used,
    /// The state was issued for another request.
    #[error("was given for another request")]
    OtherRequest,
    /// The state was issued to another client or another principal.
    #[error("was given to another client")]
    OtherClient,
    /// The state was issued for another mount.
    #[error("was given for another mount")]
    OtherMount,
    /// The mount has another component now.
    #[error("was given for an earlier version of the provider's component")]
    OtherBytes,
    /// The mount has another configuration now.
    #[error("was given before the configuration of this mount changed")]
    OtherConfiguration,
    /// The mount may not ask any more.
    #[error("was given before this mount lost its permission to ask")]
    AskingDisabled,
    /// The answer is "always", which the question did not offer.
    #[error("belongs to a question that did not offer \"always\"")]
    NotOffered,
}

impl From<QuestionStateError> for ReadError {
    fn from(error: QuestionStateError) -> Self {
        Self::BadRequestState(error.to_string())
    }
}

/// The fields of a sealed state, in order.
type SealedFields = (
    StateNumber,
    u64,
    String,
    ([u8; 32], [u8; 32]),
    AskedRequest<'static>,
    (String, Option<String>, String),
    (String, String),
    Vec<(String, String)>,
    Option<AskContext>,
);

impl QuestionState {
    /// Seals the state with `seal`.
    pub(super) fn sealed(&self, seal: &Seal) -> String {
        let pair = |consent: &Consent| (consent.grant.clone().into_owned(), consent.target.clone());
        let QuestionState { number, at, mount, digest, version, request, caller, principal, wanted, given, carried } =
            self;
        let given: Vec<_> = given.iter().map(pair).collect();
        let caller = (caller.0.clone(), caller.1.clone(), principal.clone());
        let fields: SealedFields = (
            *number,
            *at,
            mount.to_string(),
            (digest.0, *version),
            request.clone(),
            caller,
            pair(wanted),
            given,
            carried.clone(),
        );
        // Strings and numbers always serialise.
        seal.seal(0, "", serde_json::to_vec(&fields).unwrap_or_default())
    }

    /// Opens a state that `seal` sealed. Does not check whether it is still valid.
    ///
    /// # Errors
    /// When the state is too long, or `seal` did not seal it.
    pub(super) fn open(state: &str, seal: &Seal) -> Result<Self, QuestionStateError> {
        if state.len() > MAX_STATE {
            return Err(QuestionStateError::TooLong);
        }
        let body = seal.open(0, "", state).map_err(|_| QuestionStateError::Foreign)?;
        let (number, at, mount, (digest, version), request, (transport, client, principal), wanted, given, carried): SealedFields =
            serde_json::from_slice(&body).map_err(|_| QuestionStateError::Foreign)?;
        let consent = |(grant, target): (String, String)| {
            let kind = KINDS.iter().find(|kind| kind.name == grant).ok_or(QuestionStateError::Foreign)?;
            Ok::<_, QuestionStateError>(Consent { grant: kind.name.into(), target })
        };
        Ok(Self {
            number,
            at,
            mount: MountName::new(&mount).map_err(|_| QuestionStateError::Foreign)?,
            digest: Digest(digest),
            version,
            request,
            caller: (transport, client),
            principal,
            wanted: consent(wanted)?,
            given: given.into_iter().map(consent).collect::<Result<_, _>>()?,
            carried,
        })
    }
}
