//! Cursors: `mcp::cursor`. The key is secret, so that no input may ever open but what was sealed.

use belljar::catalog::listing::Position;
use belljar::mcp::cursor::{Cursors, Kind};
use belljar::model::MountName;

use crate::input::{self, Fields};

/// Fields: the mount, four numbers, where to alter what was sealed, and with what.
pub(super) fn cursor(bytes: &[u8]) {
    let cursors = Cursors::new(&[7; 32]);
    let made_up = input::text(bytes);
    for kind in [Kind::Resources, Kind::Templates] {
        assert!(cursors.open(kind, &made_up).is_err(), "{made_up:?} was opened");
    }
    let mut fields = Fields::of(bytes);
    let mut position = Position::start_of(&MountName::new(&fields.text()).unwrap_or_else(|_| name()), 0);
    let (one, two) = (fields.number().to_le_bytes(), fields.number());
    let part = |at: usize| u32::from(one[at]) << (one[at + 1] % 25);
    position.list = part(0);
    position.slow = part(2);
    position.pages = part(4);
    position.offset = two;
    let sealed = cursors.seal(Kind::Resources, &position);
    assert_eq!(cursors.open(Kind::Resources, &sealed), Ok(position), "its own cursor");
    assert!(cursors.open(Kind::Templates, &sealed).is_err(), "a cursor of another list");
    assert!(Cursors::new(&[8; 32]).open(Kind::Resources, &sealed).is_err(), "a cursor of another installation");

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
        assert!(altered == sealed || cursors.open(Kind::Resources, &altered).is_err(), "{altered:?} was opened");
    }
}

fn name() -> MountName {
    MountName::new("notes").unwrap()
}
