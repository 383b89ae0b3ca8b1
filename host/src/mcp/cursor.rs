//! Cursors: sealed positions in a list. A cursor is opaque to clients. It contains its whole state: it survives a
//! restart and costs no memory. It is authenticated: a forged or altered cursor is refused, and a client reaches only
//! positions that this server offered. A cursor belongs to one method or tool, to the arguments that select the list, and
//! to the principal that it was given to.
//!
//! A cursor carries no right: each page is filtered by what its principal may see at that time. It is therefore not
//! bound to a class of access, which has another number in each process: a cursor must survive a restart.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::listing::ListPosition;
use crate::model::MountName;
use crate::model::seal::Seal;
use crate::policy::Principal;

/// Most bytes of a sealed cursor. A mount's name, five numbers and the seal take less in base64.
const MAX_LENGTH: usize = 1 << 10;

/// The same for a cursor that contains a URI and a cursor of a provider.
const MAX_BELOW_LENGTH: usize = 16 << 10;

/// The length of a position with a cursor of a provider is a multiple of this. It may contain the name of a hidden entry.
const BELOW_STEP: usize = 1 << 10;

/// The length of a position in a cursor is a multiple of this. Most positions have the same length.
const STEP: usize = 192;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorKind {
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// The tool `list_resources`.
    ToolResources,
    /// The tool `list_resources` with `templates = true`.
    ToolTemplates,
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `skills/list`.
    Skills,
    /// `resources/directory/read`.
    Below,
    /// The tool `list_resources` with `below`.
    ToolBelow,
}

/// The reason to refuse a cursor. The text completes "the cursor ...".
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// It has more bytes than any cursor of this server.
    #[error("is longer than any that this server gives")]
    TooLong,
    /// This server did not make it, or made it for another list or another principal.
    #[error("was not given by this server for this list")]
    Foreign,
    /// The list has changed since, or another replica serves another list.
    #[error("belongs to a list that has changed")]
    Outdated,
    /// It belongs to the list of another mount.
    #[error("belongs to the list of {given}, but the request lists {wanted}")]
    OtherMount {
        /// The mount of the cursor, or "all mounts".
        given: String,
        /// The mount of the request, or "all mounts".
        wanted: String,
    },
    /// It belongs to pages of another length.
    #[error("belongs to pages of {given} entries, but the request wants {wanted}")]
    OtherLimit {
        /// Entries per page of the cursor.
        given: u32,
        /// Entries per page of the request.
        wanted: u32,
    },
}

/// The start of a page of the tool `list_resources`. Its pages are parts of the catalog's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPosition {
    /// The start of the catalog's page. `None`: the first page.
    pub position: Option<ListPosition>,
    /// Entries of the catalog's page that earlier pages of the tool showed.
    pub skip: u32,
    /// A hash of these entries. 0: none, or they are not checked.
    pub before: u64,
    /// The only mount of the list. `None`: all mounts.
    pub only: Option<MountName>,
    /// Entries per page of the tool.
    pub limit: u32,
}

impl ToolPosition {
    /// Checks that this position belongs to the list that the arguments select. An absent argument matches each list.
    ///
    /// # Errors
    /// The argument that differs.
    pub fn check_list(&self, only: Option<&MountName>, limit: Option<u32>) -> Result<(), BadCursor> {
        let whose =
            |only: Option<&MountName>| only.map_or_else(|| "all mounts".to_owned(), |name| format!("mount \"{name}\""));
        if only.is_some() && self.only.as_ref() != only {
            return Err(BadCursor::OtherMount { given: whose(self.only.as_ref()), wanted: whose(only) });
        }
        match limit.filter(|limit| *limit != self.limit) {
            Some(wanted) => Err(BadCursor::OtherLimit { given: self.limit, wanted }),
            None => Ok(()),
        }
    }
}

/// The start of a page of what is below a URI. Pages of the tool are parts of the provider's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BelowPosition {
    /// The URI.
    pub uri: String,
    /// The provider's own cursor. `None`: its first page.
    pub cursor: Option<String>,
    /// Entries of the provider's page that earlier pages of the tool showed.
    pub skip: u32,
    /// Entries per page of the tool.
    pub limit: u32,
}

/// Seals and opens cursors with one key.
pub struct Cursors {
    seal: Seal,
}

/// The fields of a sealed position, in order.
type Fields = (String, u32, u64, u32, u32, u64);

impl Cursors {
    /// Derives the key from the installation's `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { seal: Seal::new("belljar 2026-11 list cursors v5", secret) }
    }

    /// The cursor of `holder` for `position`.
    pub fn seal(&self, kind: CursorKind, holder: &Principal, position: &ListPosition) -> String {
        self.seal_fields(kind, holder, &fields(position))
    }

    /// The position of a cursor of `holder`.
    ///
    /// # Errors
    /// The reason to refuse the cursor.
    pub fn open(&self, kind: CursorKind, holder: &Principal, cursor: &str) -> Result<ListPosition, BadCursor> {
        position(self.open_fields(kind, holder, cursor)?)
    }

    /// The cursor of `holder` for a position in the pages of a tool.
    pub fn seal_tool_position(&self, kind: CursorKind, holder: &Principal, tool_position: &ToolPosition) -> String {
        let only = tool_position.only.as_ref().map(MountName::as_str);
        let position = tool_position.position.as_ref().map_or(Value::Null, fields);
        self.seal_fields(
            kind,
            holder,
            &serde_json::json!([position, tool_position.skip, tool_position.before, only, tool_position.limit]),
        )
    }

    /// The position of a cursor of `holder` in the pages of a tool.
    ///
    /// # Errors
    /// As [`Cursors::open`].
    pub fn open_tool_position(
        &self,
        kind: CursorKind,
        holder: &Principal,
        cursor: &str,
    ) -> Result<ToolPosition, BadCursor> {
        let (at, skip, before, only, limit): (Option<Fields>, u32, u64, Option<String>, u32) =
            self.open_fields(kind, holder, cursor)?;
        let only = only.map(|only| MountName::new(&only).map_err(|_| BadCursor::Foreign)).transpose()?;
        Ok(ToolPosition { position: at.map(position).transpose()?, skip, before, only, limit })
    }

    /// The cursor of `holder` for a position below a URI. `kind` is [`CursorKind::Below`] or [`CursorKind::ToolBelow`].
    pub fn seal_below(&self, kind: CursorKind, holder: &Principal, position: &BelowPosition) -> String {
        let BelowPosition { uri, cursor, skip, limit } = position;
        let fields = serde_json::json!([uri, cursor, skip, limit]);
        self.seal_padded(kind, holder, &fields, BELOW_STEP)
    }

    /// The position of a cursor of `holder` below a URI.
    ///
    /// # Errors
    /// As [`Cursors::open`], and [`BadCursor::Foreign`] for another URI than `uri`.
    pub fn open_below(
        &self,
        kind: CursorKind,
        holder: &Principal,
        cursor: &str,
        uri: &str,
    ) -> Result<BelowPosition, BadCursor> {
        if cursor.len() > MAX_BELOW_LENGTH {
            return Err(BadCursor::TooLong);
        }
        let body = self.seal.open(kind as u8, &holder.identity(), cursor).map_err(|_| BadCursor::Foreign)?;
        let (given, cursor, skip, limit): (String, Option<String>, u32, u32) =
            serde_json::from_slice(&body).map_err(|_| BadCursor::Foreign)?;
        match given == uri {
            true => Ok(BelowPosition { uri: given, cursor, skip, limit }),
            false => Err(BadCursor::Foreign),
        }
    }

    fn seal_fields(&self, kind: CursorKind, holder: &Principal, fields: &Value) -> String {
        self.seal_padded(kind, holder, fields, STEP)
    }

    fn seal_padded(&self, kind: CursorKind, holder: &Principal, fields: &Value, step: usize) -> String {
        let mut body = fields.to_string().into_bytes();
        // JSON may end with spaces. The digits of a position count hidden entries, so its length must not show.
        body.resize(body.len().next_multiple_of(step), b' ');
        self.seal.seal(kind as u8, &holder.identity(), body)
    }

    fn open_fields<T: DeserializeOwned>(
        &self,
        kind: CursorKind,
        holder: &Principal,
        cursor: &str,
    ) -> Result<T, BadCursor> {
        if cursor.len() > MAX_LENGTH {
            return Err(BadCursor::TooLong);
        }
        let body = self.seal.open(kind as u8, &holder.identity(), cursor).map_err(|_| BadCursor::Foreign)?;
        serde_json::from_slice(&body).map_err(|_| BadCursor::Foreign)
    }
}

fn fields(p: &ListPosition) -> Value {
    serde_json::json!([p.mount.as_str(), p.list, p.offset, p.slow, p.pages, p.before])
}

fn position((mount, list, offset, slow, pages, before): Fields) -> Result<ListPosition, BadCursor> {
    let mount = MountName::new(&mount).map_err(|_| BadCursor::Foreign)?;
    Ok(ListPosition { mount, list, offset, slow, pages, before })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::policy::{Evidence, KeyIdentity, authenticate};

    fn own() -> Principal {
        authenticate(Evidence::OwnUser)
    }

    fn position() -> ListPosition {
        ListPosition {
            mount: MountName::new("notes").unwrap(),
            list: 3,
            offset: u64::MAX,
            slow: 7,
            pages: 6,
            before: 5,
        }
    }

    #[test]
    fn the_length_of_a_cursor_does_not_tell_its_position() {
        let cursors = Cursors::new(&[1; 32]);
        let length = |name: &str, offset: u64| {
            let position = ListPosition { mount: MountName::new(name).unwrap(), offset, ..position() };
            let tool = ToolPosition { position: Some(position.clone()), ..ToolPosition::default() };
            let tool = cursors.seal_tool_position(CursorKind::ToolResources, &own(), &tool);
            [cursors.seal(CursorKind::Resources, &own(), &position).len(), tool.len()]
        };
        let longest = "m".repeat(64);
        for (name, offset) in [("m", u64::MAX), (longest.as_str(), 0), (longest.as_str(), u64::MAX)] {
            assert_eq!(length(name, offset), length("m", 0), "{name} {offset}");
        }
    }

    #[test]
    fn a_cursor_survives_a_restart() {
        let sealed = Cursors::new(&[1; 32]).seal(CursorKind::Resources, &own(), &position());
        assert_eq!(Cursors::new(&[1; 32]).open(CursorKind::Resources, &own(), &sealed), Ok(position()));
    }

    #[test]
    fn a_tool_cursor_belongs_to_one_list() {
        let cursors = Cursors::new(&[1; 32]);
        let only = MountName::new("notes").unwrap();
        let whole = ToolPosition { position: Some(position()), skip: 50, before: 9, only: Some(only), limit: 20 };
        for position in [ToolPosition::default(), whole] {
            let sealed = cursors.seal_tool_position(CursorKind::ToolResources, &own(), &position);
            assert_eq!(cursors.open_tool_position(CursorKind::ToolResources, &own(), &sealed), Ok(position));
            assert!(cursors.open_tool_position(CursorKind::ToolTemplates, &own(), &sealed).is_err());
            assert!(cursors.open(CursorKind::Resources, &own(), &sealed).is_err());
        }
    }

    #[test]
    fn a_cursor_below_a_uri_belongs_to_it() {
        let cursors = Cursors::new(&[1; 32]);
        let position =
            BelowPosition { uri: "a://b/c/".to_owned(), cursor: Some("\u{e9}".repeat(2048)), skip: 7, limit: 50 };
        let sealed = cursors.seal_below(CursorKind::Below, &own(), &position);
        assert_eq!(cursors.open_below(CursorKind::Below, &own(), &sealed, "a://b/c/"), Ok(position));
        for (kind, uri) in [(CursorKind::Below, "a://b/"), (CursorKind::ToolBelow, "a://b/c/")] {
            assert_eq!(cursors.open_below(kind, &own(), &sealed, uri), Err(BadCursor::Foreign));
        }
    }

    #[test]
    fn a_tool_cursor_belongs_to_the_arguments_of_its_list() {
        let [x, y] = ["x", "y"].map(|name| MountName::new(name).unwrap());
        let position =
            |only: Option<&MountName>| ToolPosition { only: only.cloned(), limit: 20, ..ToolPosition::default() };
        for (only, given, limit, is_good) in [
            (Some(&x), Some(&x), Some(20), true),
            (Some(&x), None, None, true),
            (None, None, Some(20), true),
            (Some(&x), Some(&y), Some(20), false),
            (None, Some(&y), None, false),
            (Some(&x), Some(&x), Some(21), false),
            (None, None, Some(50), false),
        ] {
            assert_eq!(position(only).check_list(given, limit).is_ok(), is_good, "{only:?} {given:?} {limit:?}");
        }
    }

    #[test]
    fn a_cursor_of_another_principal_is_refused_like_a_forged_one() {
        let key = |name: &str| authenticate(Evidence::Key(KeyIdentity { name: name.into(), ..KeyIdentity::default() }));
        let cursors = Cursors::new(&[1; 32]);
        let (list, tool) = (CursorKind::Resources, CursorKind::ToolResources);
        let sealed = cursors.seal(list, &key("a"), &position());
        let of_tool = cursors.seal_tool_position(tool, &key("a"), &ToolPosition::default());
        assert_eq!(cursors.open(list, &key("a"), &sealed), Ok(position()));
        let forged = cursors.open(list, &key("a"), "AAAA").unwrap_err();
        for other in [key("b"), key(""), own(), authenticate(Evidence::Loopback)] {
            assert_eq!(cursors.open(list, &other, &sealed), Err(BadCursor::Foreign), "{other}");
            assert_eq!(cursors.open_tool_position(tool, &other, &of_tool), Err(BadCursor::Foreign), "{other}");
        }
        assert_eq!(forged, BadCursor::Foreign);
        let wider = KeyIdentity { name: "a".into(), scopes: vec!["x".into()], groups: Vec::new() };
        let wider = authenticate(Evidence::Key(wider));
        assert!(cursors.open(list, &wider, &sealed).is_ok(), "a new token of the same principal continues its list");
    }

    #[test]
    fn forged_cursors_are_refused() {
        let cursors = Cursors::new(&[1; 32]);
        let sealed = cursors.seal(CursorKind::Resources, &own(), &position());
        assert!(cursors.open(CursorKind::Templates, &own(), &sealed).is_err(), "of another list");
        assert!(
            Cursors::new(&[2; 32]).open(CursorKind::Resources, &own(), &sealed).is_err(),
            "of another installation"
        );
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(
                    cursors.open(CursorKind::Resources, &own(), &URL_SAFE_NO_PAD.encode(&bad)).is_err(),
                    "bit {bit} of byte {at}"
                );
            }
            assert!(
                cursors.open(CursorKind::Resources, &own(), &URL_SAFE_NO_PAD.encode(&bytes[..at])).is_err(),
                "cut at {at}"
            );
        }
        for bad in ["", "x", "AAAA", "not base64!", "\u{0}", &"A".repeat(100_000), &URL_SAFE_NO_PAD.encode([0; 16])] {
            assert!(cursors.open(CursorKind::Resources, &own(), bad).is_err());
        }
    }
}
