//! Cursors: a position, sealed. Opaque to clients, self-contained (they survive a restart and cost no memory), and
//! authenticated (a made-up or altered one is refused, so that nobody is sent through a list in leaps that were not offered).
//! A cursor is of one list: of one method or tool, and of the arguments that chose what is on it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::catalog::listing::Position;
use crate::model::MountName;
use crate::model::seal::Seal;

/// Bytes of a sealed cursor: a mount's name, four numbers and the seal, in base64, and room.
const MAX: usize = 1 << 10;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// The tool that lists resources.
    ToolResources,
    /// The same tool with templates.
    ToolTemplates,
}

/// Where a page begins that is a part of a page of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Where the catalog's page begins; none: at the start.
    pub position: Option<Position>,
    /// Entries of that page that were shown already.
    pub skip: u32,
    /// The only mount that is listed.
    pub only: Option<MountName>,
    /// Entries of a page.
    pub limit: u32,
}

impl Mark {
    /// Whether this is of the list that these arguments choose, as far as they are given.
    ///
    /// # Errors
    /// Says what is wrong, as the end of "the cursor ...".
    pub fn is_of(&self, only: Option<&MountName>, limit: Option<u32>) -> Result<(), String> {
        let whose =
            |only: Option<&MountName>| only.map_or_else(|| "all mounts".to_owned(), |name| format!("mount \"{name}\""));
        if only.is_some() && self.only.as_ref() != only {
            return Err(format!("is of the list of {}, and not of that of {}", whose(self.only.as_ref()), whose(only)));
        }
        match limit.filter(|limit| *limit != self.limit) {
            Some(other) => Err(format!("is of pages of {}, and not of {other}", self.limit)),
            None => Ok(()),
        }
    }
}

/// Seals and opens cursors with one key.
pub struct Cursors {
    seal: Seal,
}

/// The fields of a sealed position, in order.
type Fields = (String, u32, u64, u32, u32);

impl Cursors {
    /// Derives the key from the installation's secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { seal: Seal::new("belljar 2026-11 list cursors v3", secret) }
    }

    /// The cursor for `position`.
    pub fn seal(&self, kind: Kind, position: &Position) -> String {
        self.put(kind, &fields(position))
    }

    /// The position of a cursor.
    ///
    /// # Errors
    /// Says what is wrong with it, as the end of "the cursor ...".
    pub fn open(&self, kind: Kind, cursor: &str) -> Result<Position, String> {
        Ok(position(self.take(kind, cursor)?)?)
    }

    /// The cursor for `mark`.
    pub fn seal_mark(&self, kind: Kind, mark: &Mark) -> String {
        let only = mark.only.as_ref().map(MountName::as_str);
        self.put(kind, &(mark.position.as_ref().map(fields), mark.skip, only, mark.limit))
    }

    /// The mark of a cursor.
    ///
    /// # Errors
    /// As [`Cursors::open`].
    pub fn open_mark(&self, kind: Kind, cursor: &str) -> Result<Mark, String> {
        let (at, skip, only, limit): (Option<Fields>, u32, Option<String>, u32) = self.take(kind, cursor)?;
        let only = only.map(|only| MountName::new(&only).map_err(|_| FOREIGN)).transpose()?;
        Ok(Mark { position: at.map(position).transpose()?, skip, only, limit })
    }

    fn put(&self, kind: Kind, fields: &impl Serialize) -> String {
        // Strings and numbers always serialise.
        self.seal.seal(kind as u8, serde_json::to_vec(fields).unwrap_or_default())
    }

    fn take<T: DeserializeOwned>(&self, kind: Kind, cursor: &str) -> Result<T, String> {
        if cursor.len() > MAX {
            return Err("is longer than any that this server gives".to_owned());
        }
        let body = self.seal.open(kind as u8, cursor).map_err(|_| FOREIGN)?;
        Ok(serde_json::from_slice(&body).map_err(|_| FOREIGN)?)
    }
}

/// What is said of a cursor that was not made here.
pub(super) const FOREIGN: &str = "was not given by this server for this list";

fn fields(p: &Position) -> (&str, u32, u64, u32, u32) {
    (p.mount.as_str(), p.list, p.offset, p.slow, p.pages)
}

fn position((mount, list, offset, slow, pages): Fields) -> Result<Position, &'static str> {
    Ok(Position { mount: MountName::new(&mount).map_err(|_| FOREIGN)?, list, offset, slow, pages })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn position() -> Position {
        Position { mount: MountName::new("notes").unwrap(), list: 3, offset: u64::MAX, slow: 7, pages: 6 }
    }

    #[test]
    fn a_cursor_survives_a_restart() {
        let sealed = Cursors::new(&[1; 32]).seal(Kind::Resources, &position());
        assert_eq!(Cursors::new(&[1; 32]).open(Kind::Resources, &sealed), Ok(position()));
    }

    #[test]
    fn a_mark_is_its_own_lists_only() {
        let cursors = Cursors::new(&[1; 32]);
        let only = MountName::new("notes").unwrap();
        let whole = Mark { position: Some(position()), skip: 50, only: Some(only), limit: 20 };
        for mark in [Mark::default(), whole] {
            let sealed = cursors.seal_mark(Kind::ToolResources, &mark);
            assert_eq!(cursors.open_mark(Kind::ToolResources, &sealed), Ok(mark));
            assert!(cursors.open_mark(Kind::ToolTemplates, &sealed).is_err());
            assert!(cursors.open(Kind::Resources, &sealed).is_err());
        }
    }

    #[test]
    fn a_mark_is_of_the_arguments_that_it_was_given_for() {
        let [x, y] = ["x", "y"].map(|name| MountName::new(name).unwrap());
        let mark = |only: Option<&MountName>| Mark { only: only.cloned(), limit: 20, ..Mark::default() };
        for (only, given, limit, is_good) in [
            (Some(&x), Some(&x), Some(20), true),
            (Some(&x), None, None, true),
            (None, None, Some(20), true),
            (Some(&x), Some(&y), Some(20), false),
            (None, Some(&y), None, false),
            (Some(&x), Some(&x), Some(21), false),
            (None, None, Some(50), false),
        ] {
            assert_eq!(mark(only).is_of(given, limit).is_ok(), is_good, "{only:?} {given:?} {limit:?}");
        }
    }

    #[test]
    fn forged_cursors_are_refused() {
        let cursors = Cursors::new(&[1; 32]);
        let sealed = cursors.seal(Kind::Resources, &position());
        assert!(cursors.open(Kind::Templates, &sealed).is_err(), "of another list");
        assert!(Cursors::new(&[2; 32]).open(Kind::Resources, &sealed).is_err(), "of another installation");
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(
                    cursors.open(Kind::Resources, &URL_SAFE_NO_PAD.encode(&bad)).is_err(),
                    "bit {bit} of byte {at}"
                );
            }
            assert!(cursors.open(Kind::Resources, &URL_SAFE_NO_PAD.encode(&bytes[..at])).is_err(), "cut at {at}");
        }
        for bad in ["", "x", "AAAA", "not base64!", "\u{0}", &"A".repeat(100_000), &URL_SAFE_NO_PAD.encode([0; 16])] {
            assert!(cursors.open(Kind::Resources, bad).is_err());
        }
    }
}
