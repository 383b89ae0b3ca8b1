//! Sealed states of consent questions: `gateway::consent`. Only the manager that sealed a state may open it, because no other
//! one has the key. An altered state must not open.

use belljar::gateway::consent::{AskedRequest, ConsentManager, QuestionState};
use belljar::gateway::request_states::RequestStates;
use belljar::grants::KINDS;
use belljar::model::{AskContext, Consent, Digest, MountName};

use crate::input::{self, Fields};

/// Fields: the mount, the URI, the client, the target of the wanted consent, the target of a given consent, a number; then the
/// position at which the sealed state is altered, and the text that is put there.
pub(super) fn consent(bytes: &[u8]) {
    let consents = ConsentManager::new(RequestStates::new(&[7; 32], None), None);
    let made_up = input::text(bytes);
    assert!(consents.open(&made_up).is_err(), "{made_up:?} was opened");
    let mut fields = Fields::of(bytes);
    let (mount, uri, client) = (fields.text(), fields.text(), fields.option());
    let (wanted, given, number) = (fields.text(), fields.option(), fields.number());
    // The number of the input selects a kind of grant.
    let kind = |n: u64| KINDS[usize::try_from(n).unwrap_or_default() % KINDS.len()].name;
    // The number also selects the request: a read, a call or a prompt.
    let arguments = [number.to_le_bytes()[0]; 32];
    let request = match number % 3 {
        0 => AskedRequest::Read(uri.clone().into()),
        1 => AskedRequest::Call { tool: uri.clone().into(), arguments },
        _ => AskedRequest::Prompt { prompt: uri.clone().into(), arguments },
    };
    let carried = (number % 2 == 0).then(|| AskContext { state: Some(uri), ..AskContext::default() });
    let ticket = QuestionState {
        number: u128::from(number).to_le_bytes(),
        version: Digest::of(&number.to_le_bytes()).0,
        at: number.rotate_left(32),
        mount: MountName::new(&mount).unwrap_or_else(|_| MountName::new("notes").unwrap()),
        digest: Digest::of(mount.as_bytes()),
        request,
        caller: ("stdio".to_owned(), client),
        principal: mount.clone(),
        wanted: Consent { grant: kind(number).into(), target: wanted },
        given: given.into_iter().map(|what| Consent { grant: kind(number / 2).into(), target: what }).collect(),
        carried,
    };
    let sealed = consents.seal(&ticket);
    assert_eq!(consents.open(&sealed), Ok(ticket), "the manager opens its own state");
    assert!(
        ConsentManager::new(RequestStates::new(&[8; 32], None), None).open(&sealed).is_err(),
        "a manager with another key opened the state"
    );

    let at = usize::try_from(fields.number()).unwrap_or_default() % sealed.len();
    let with = fields.text();
    for altered in [
        format!("{}{with}{}", &sealed[..at], &sealed[at..]),
        format!("{}{with}{}", &sealed[..at], sealed.get(at + with.len()..).unwrap_or_default()),
        sealed[..at].to_owned(),
        sealed[at..].to_owned(),
        format!("{sealed}="),
        format!("{sealed}{sealed}"),
    ] {
        assert!(altered == sealed || consents.open(&altered).is_err(), "{altered:?} was opened");
    }
}
