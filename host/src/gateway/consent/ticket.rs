//! What travels with a question and comes back with its answer: a ticket, sealed.

use super::Consents;
use crate::grants::KINDS;
use crate::model::{Consent, Digest, MountName};

/// Bytes of a state: a URI, five consents and a caller, each at its longest, escaped, in base64.
pub(super) const MAX_STATE: usize = 32 << 10;

/// What a state says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which question of this process it is.
    pub number: u64,
    /// When it was asked, in milliseconds since the process began to ask.
    pub at: u64,
    /// Who wants it.
    pub mount: MountName,
    /// The bytes that want it.
    pub digest: Digest,
    /// The number of what is loaded for the mount: another, as soon as anything is written differently for it.
    pub loaded: u64,
    /// For which read.
    pub uri: String,
    /// Who was asked: the transport, and the client's name.
    pub caller: (String, Option<String>),
    /// What is wanted.
    pub wanted: Consent,
    /// What was allowed in the same request before.
    pub given: Vec<Consent>,
}

/// The fields of a sealed ticket, in order.
type Fields =
    (u64, u64, String, ([u8; 32], u64), String, (String, Option<String>), (String, String), Vec<(String, String)>);

impl Consents {
    /// The state of a question.
    pub fn seal(&self, ticket: &Ticket) -> String {
        let pair = |consent: &Consent| (consent.grant.to_owned(), consent.what.clone());
        let Ticket { number, at, mount, digest, loaded, uri, caller, wanted, given } = ticket;
        let given: Vec<_> = given.iter().map(pair).collect();
        let fields: Fields =
            (*number, *at, mount.to_string(), (digest.0, *loaded), uri.clone(), caller.clone(), pair(wanted), given);
        // Strings and numbers always serialise.
        self.seal.seal(0, serde_json::to_vec(&fields).unwrap_or_default())
    }

    /// What a state says, if this process sealed it. Whether it counts is another question.
    ///
    /// # Errors
    /// Says what is wrong with it, as the end of "the request state ...".
    pub fn open(&self, state: &str) -> Result<Ticket, &'static str> {
        const FOREIGN: &str = "was not given by this server since it started, or was changed on its way";
        if state.len() > MAX_STATE {
            return Err("is longer than any that this server gives");
        }
        let body = self.seal.open(0, state).map_err(|_| FOREIGN)?;
        let (number, at, mount, (digest, loaded), uri, caller, wanted, given): Fields =
            serde_json::from_slice(&body).map_err(|_| FOREIGN)?;
        let consent = |(grant, what): (String, String)| {
            let kind = KINDS.iter().find(|kind| kind.name == grant).ok_or(FOREIGN)?;
            Ok::<_, &'static str>(Consent { grant: kind.name, what })
        };
        Ok(Ticket {
            number,
            at,
            mount: MountName::new(&mount).map_err(|_| FOREIGN)?,
            digest: Digest(digest),
            loaded,
            uri,
            caller,
            wanted: consent(wanted)?,
            given: given.into_iter().map(consent).collect::<Result<_, _>>()?,
        })
    }
}
