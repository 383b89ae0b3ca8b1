//! What `belljar check` says about tools and prompts. It runs no provider, so it knows only which mounts have some, and
//! which names they can have; `belljar tools` and `belljar prompts` list them.

use crate::catalog::{Mount, Snapshot};
use crate::gateway::definitions::MAX_PUBLIC_NAME;
use crate::model::command;

/// The kinds of definitions that a mount has: `tools`, `prompts`.
pub(super) fn kinds(mount: &Mount) -> Vec<&'static str> {
    let kinds = [(mount.interfaces.tools, "tools"), (mount.interfaces.prompts, "prompts")];
    kinds.into_iter().filter(|(has, _)| *has).map(|(_, kind)| kind).collect()
}

/// `tools and prompts, named notes_...`. `None` if the mount has none.
pub(super) fn describe(mount: &Mount) -> Option<String> {
    let kinds = kinds(mount);
    let named = match mount.tool_prefix.as_str() {
        "" => "with the provider's own names".to_owned(),
        prefix => format!("named {prefix}_..."),
    };
    (!kinds.is_empty()).then(|| format!("{}, {named}", kinds.join(" and ")))
}

/// The warnings about the names of a mount's tools and prompts.
pub(super) fn warnings(mount: &Mount, snapshot: &Snapshot) -> Vec<String> {
    let own = kinds(mount);
    let mut out = Vec::new();
    if !own.is_empty() && mount.tool_prefix.len() + "_x".len() > MAX_PUBLIC_NAME {
        out.push(format!(
            "no {} fits: a public name has at most {MAX_PUBLIC_NAME} characters; set a shorter tool-prefix under [mounts.{}]",
            own.join(" and no "),
            mount.name
        ));
    }
    let before = snapshot.mounts().iter().take_while(|one| one.name != mount.name);
    for other in before.filter(|one| one.tool_prefix == mount.tool_prefix) {
        let theirs = kinds(other);
        for kind in own.iter().filter(|kind| theirs.contains(kind)) {
            let prefix = match mount.tool_prefix.as_str() {
                "" => "both have no tool-prefix".to_owned(),
                prefix => format!("both have the tool-prefix \"{prefix}\""),
            };
            out.push(format!(
                "its {kind} can have the names of those of mount \"{}\": {prefix}. Of two with one name, this mount's is left out; to see which, run: {}",
                other.name,
                command::line([*kind])
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interfaces::Interfaces;
    use crate::model::{Limits, MountName};

    fn mount(name: &str, prefix: &str, tools: bool, prompts: bool) -> Mount {
        let plain = Mount::plain(MountName::new(name).unwrap(), &format!("belljar://{name}/"), Limits::default());
        let interfaces = Interfaces { resources: true, tools, prompts, ..Interfaces::default() };
        Mount { interfaces, tool_prefix: prefix.to_owned(), ..plain }
    }

    #[test]
    fn equal_prefixes_are_a_warning_for_the_later_mount() {
        let mounts = [
            mount("a", "n", true, true),
            mount("b", "n", true, false),
            mount("c", "", true, false),
            mount("d", "", false, true),
            mount("e", "n", false, false),
        ];
        let snapshot = Snapshot::new(mounts.into_iter().map(Arc::new).collect(), Vec::new());
        let all: Vec<Vec<String>> = snapshot.mounts().iter().map(|mount| warnings(mount, &snapshot)).collect();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0, 0, 0], "{all:?}");
        let told = &all[1][0];
        assert!(told.contains("its tools can have the names of those of mount \"a\": both have the tool-prefix \"n\""));
    }

    #[test]
    fn a_prefix_must_leave_room_for_a_name() {
        let long = "n".repeat(MAX_PUBLIC_NAME - 1);
        for (prefix, count) in [(long.as_str(), 1), (&long[1..], 0)] {
            let one = Arc::new(mount("a", prefix, true, true));
            let snapshot = Snapshot::new(vec![Arc::clone(&one)], Vec::new());
            assert_eq!(warnings(&one, &snapshot).len(), count, "{prefix}");
        }
    }

    #[test]
    fn a_mount_is_described_by_what_its_component_exports() {
        assert_eq!(describe(&mount("a", "n", true, true)).as_deref(), Some("tools and prompts, named n_..."));
        assert_eq!(describe(&mount("a", "", false, true)).as_deref(), Some("prompts, with the provider's own names"));
        assert_eq!(describe(&mount("a", "n", false, false)), None);
    }
}
