//! What clients are told about the effects of a tool.
//!
//! It follows from the grants of its mount, because clients let tools run without a question for it. A provider that was
//! granted only safe methods of HTTP cannot change anything: its tools are read-only, whatever it says. One that was granted
//! others can, so none of its tools is, whatever it says.

use crate::catalog::Mount;
use crate::config::Ask;
use crate::interfaces::tools::ToolDefinition;
use crate::model::{Effect, Guard};

/// The hints of a tool, as MCP defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may change or delete something, and does not only add.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond the mount's own data.
    pub open_world: bool,
}

impl ToolHints {
    /// The hints of a tool of `mount`.
    pub fn of(definition: &ToolDefinition, mount: &Mount) -> Self {
        let tool = &definition.tool;
        let (read_only, destructive) = (tool.effect == Effect::Reads, tool.effect == Effect::Destroys);
        let claims = Self { read_only, destructive, idempotent: tool.idempotent, open_world: tool.open_world };
        let powers = mount.powers;
        match Guard::Hints.is_on() {
            false => claims,
            true if powers.can_change => {
                Self { read_only: false, destructive: tool.effect != Effect::Adds, open_world: true, ..claims }
            }
            // A person may be asked for more, but never for more than a read of another place.
            true => Self {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: powers.can_reach_out || mount.ask != Ask::Never,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Powers;
    use crate::interfaces::json_schema::Schema;
    use crate::model::{Limits, MountName, Tool};

    fn hints(effect: Effect, claims: bool, powers: Powers, ask: Ask) -> ToolHints {
        let tool = Tool {
            name: "t".to_owned(),
            title: None,
            description: String::new(),
            input: String::new(),
            output: None,
            effect,
            idempotent: claims,
            open_world: claims,
            view: None,
            icons: Vec::new(),
            meta: Vec::new(),
        };
        let input = Schema::parse(r#"{"type":"object"}"#).unwrap();
        let plain = Mount::plain(MountName::new("m").unwrap(), "belljar://m/", Limits::default());
        ToolHints::of(&ToolDefinition { tool, input, output: None }, &Mount { powers, ask, ..plain })
    }

    #[test]
    fn grants_decide_and_not_the_provider() {
        let nothing = Powers { can_change: false, can_reach_out: false };
        let reads = Powers { can_reach_out: true, ..nothing };
        let changes = Powers { can_change: true, can_reach_out: true };
        let (read_only, destructive, idempotent, open_world) = (true, true, true, true);
        let safe = ToolHints { read_only, destructive: false, idempotent, open_world: false };
        for effect in [Effect::Reads, Effect::Adds, Effect::Destroys] {
            for claims in [false, true] {
                assert_eq!(hints(effect, claims, nothing, Ask::Never), safe, "{effect:?}");
                assert_eq!(hints(effect, claims, reads, Ask::Never), ToolHints { open_world, ..safe });
                assert_eq!(hints(effect, claims, nothing, Ask::Once), ToolHints { open_world, ..safe });
                let changing = hints(effect, claims, changes, Ask::Never);
                let destructive = destructive && effect != Effect::Adds;
                assert_eq!(changing, ToolHints { read_only: false, destructive, idempotent: claims, open_world });
            }
        }
    }
}
