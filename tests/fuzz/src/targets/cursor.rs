//! Sealed cursors: `mcp::cursor`. Only the installation that sealed a cursor may open it, because no other one has the key. An
//! altered cursor must not open.

use belljar::catalog::listing::ListPosition;
use belljar::mcp::cursor::{CursorKind, Cursors};
use belljar::model::MountName;
use belljar::policy::{Evidence, Principal, authenticate};

use crate::input::{self, Fields};

/// Fields: the mount; eight bytes, which give three numbers; an offset; the position at which the sealed cursor is altered,
/// and the text that is put there.
pub(super) fn cursor(bytes: &[u8]) {
    let cursors = Cursors::new(&[7; 32]);
    let made_up = input::text(bytes);
    for kind in [CursorKind::Resources, CursorKind::Templates] {
        assert!(cursors.open(kind, &own(), &made_up).is_err(), "{made_up:?} was opened");
    }
    let mut fields = Fields::of(bytes);
    let mut position = ListPosition::start_of(&MountName::new(&fields.text()).unwrap_or_else(|_| name()), 0);
    let (one, two) = (fields.number().to_le_bytes(), fields.number());
    let part = |at: usize| u32::from(one[at]) << (one[at + 1] % 25);
    position.list = part(0);
    position.slow = part(2);
    position.pages = part(4);
    position.offset = two;
    let sealed = cursors.seal(CursorKind::Resources, &own(), &position);
    assert_eq!(
        cursors.open(CursorKind::Resources, &own(), &sealed),
        Ok(position),
        "an installation opens its own cursor"
    );
    assert!(cursors.open(CursorKind::Templates, &own(), &sealed).is_err(), "a cursor of another list was opened");
    assert!(
        Cursors::new(&[8; 32]).open(CursorKind::Resources, &own(), &sealed).is_err(),
        "a cursor of another installation was opened"
    );
    assert!(
        cursors.open(CursorKind::Resources, &authenticate(Evidence::Loopback), &sealed).is_err(),
        "a cursor of another principal was opened"
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
        assert!(
            altered == sealed || cursors.open(CursorKind::Resources, &own(), &altered).is_err(),
            "{altered:?} was opened"
        );
    }
}

fn name() -> MountName {
    MountName::new("notes").unwrap()
}

fn own() -> Principal {
    authenticate(Evidence::OwnUser)
}
