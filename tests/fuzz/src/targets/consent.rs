//! States of questions: `gateway::consent`. The key is secret, so that no input may ever open but what was sealed.

use belljar::gateway::consent::{Consents, Ticket};
use belljar::grants::KINDS;
use belljar::model::{Consent, Digest, MountName};

use crate::input::{self, Fields};

/// Fields: the mount, the URI, the client, what is wanted, what was given, a number, where to alter what was sealed, and
/// with what.
pub(super) fn consent(bytes: &[u8]) {
    let consents = Consents::new(&[7; 32], None);
    let made_up = input::text(bytes);
    assert!(consents.open(&made_up).is_err(), "{made_up:?} was opened");
    let mut fields = Fields::of(bytes);
    let (mount, uri, client) = (fields.text(), fields.text(), fields.option());
    let (wanted, given, number) = (fields.text(), fields.option(), fields.number());
    // At least one kind, and the numbers are as good as any.
    let kind = |n: u64| KINDS[usize::try_from(n).unwrap_or_default() % KINDS.len()].name;
    let ticket = Ticket {
        number,
        loaded: number.rotate_left(16),
        at: number.rotate_left(32),
        mount: MountName::new(&mount).unwrap_or_else(|_| MountName::new("notes").unwrap()),
        digest: Digest::of(mount.as_bytes()),
        uri,
        caller: ("stdio".to_owned(), client),
        wanted: Consent { grant: kind(number), what: wanted },
        given: given.into_iter().map(|what| Consent { grant: kind(number / 2), what }).collect(),
    };
    let sealed = consents.seal(&ticket);
    assert_eq!(consents.open(&sealed), Ok(ticket), "its own state");
    assert!(Consents::new(&[8; 32], None).open(&sealed).is_err(), "a state of another process");

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
