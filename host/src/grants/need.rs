//! One declared need of a provider.

use super::kind_error::KindError;

/// One thing that a provider needs, as its component declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The name of the kind of grant.
    pub kind: &'static str,
    /// The thing, as the kind names it: a guest path, a variable, an origin. `None`: the operator chooses it.
    pub name: Option<String>,
    /// True if another thing of this kind is as good. Then `name` is only an example.
    pub any: bool,
    /// True if the provider works without it.
    pub optional: bool,
    /// An example of the value, for kinds whose things have a value.
    pub example: Option<String>,
    /// The reason, in the provider's words.
    pub reason: Option<String>,
}

impl Need {
    /// One line for people: `fs (such as "/mail"), optional: "a directory of mailboxes"`.
    pub fn describe(&self) -> String {
        let mut out = self.kind.to_owned();
        match &self.name {
            Some(what) if self.any => out += &format!(" (such as \"{what}\")"),
            Some(what) => out += &format!(" \"{what}\""),
            None => {}
        }
        if self.optional {
            out += ", optional";
        }
        if let Some(reason) = &self.reason {
            out += &format!(": \"{reason}\"");
        }
        out
    }
}

/// How a provider declares a need of one kind.
#[derive(Clone, Copy, Debug)]
pub struct NeedSchema {
    /// The TOML key whose value names the thing.
    pub key: &'static str,
    /// Checks the name of a thing and returns it in canonical form.
    pub check: fn(&str) -> Result<String, KindError>,
    /// True if the key may be missing. Then the operator chooses the thing.
    pub may_omit: bool,
    /// True if the declaration may have `any = true`: another thing is as good.
    pub accepts_any: bool,
    /// True if the declaration may have `example`: a thing of this kind has a value.
    pub accepts_example: bool,
}
