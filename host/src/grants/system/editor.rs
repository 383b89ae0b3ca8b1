//! Configuration text, flags and descriptions of `system` grants.

use toml_edit::{Item, TableLike, Value};

use super::config::SystemConfig;
use super::name::{NAME, System};
use super::parts::SystemPart;
use crate::grants::edit::{EditDirectories, EditError, Flag, GrantArgs, TomlShape, add_to_list};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};

/// The part that an example names.
const EXAMPLE_PART: &str = "all";

/// The configuration line and the flags that grant a part.
pub(super) fn suggestion(word: &str) -> GrantSuggestion {
    GrantSuggestion {
        line: format!("system = [{}]", toml::Value::from(word)),
        flags: vec![format!("--{NAME}"), word.to_owned()],
        prerequisite: None,
    }
}

/// The cure of a refusal to open a file of `/system`, by the name of the file. `None` if there is no such file.
pub fn cure_of_file(mount: &str, name: &str) -> Option<String> {
    Some(suggestion(SystemPart::of_file(name)?.word()).cure(mount))
}

fn check_part(word: &str) -> Result<String, KindError> {
    Ok(SystemPart::parse(word)?.word().to_owned())
}

impl GrantEditor for System {
    const EXAMPLE: &'static str = "system = [\"all\"]";
    const SUMMARY: &'static str = "Parts of this machine's state that the provider may see, as files below /system: load, memory, disks, processes, services, sensors, network, containers, or all of them. command-lines, which is not part of all, adds the arguments of processes.";
    const FLAG: Flag = Flag {
        name: NAME,
        value: "PART",
        help: "Let the provider see a part of this machine's state: load, memory, disks, processes, services, sensors, network, containers, all; or command-lines, which all leaves out",
    };
    const REVOKE_PLACEHOLDER: &'static str = "PART";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "part", check: check_part, may_omit: false, accepts_any: true, accepts_example: false };

    fn describe(config: &SystemConfig) -> Vec<String> {
        config.0.iter().map(|part| part.word().to_owned()).collect()
    }

    fn explain(config: &SystemConfig) -> Vec<String> {
        config.0.iter().map(|part| format!("see {}", part.sees())).collect()
    }

    fn meets(config: &SystemConfig, need: &Need) -> bool {
        if need.any {
            return !config.is_empty();
        }
        let wanted = need.name.as_deref().and_then(|word| SystemPart::parse(word).ok());
        match wanted {
            Some(SystemPart::All) => SystemPart::FILES.iter().all(|part| config.has(*part)),
            Some(part) => config.has(part),
            None => !config.is_empty(),
        }
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        Some(suggestion(need.and_then(|need| need.name.as_deref()).unwrap_or(EXAMPLE_PART)))
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        let word = check_part(&args.value).map_err(EditError::Kind)?;
        let occupied = || EditError::Occupied { key: NAME.to_owned(), expected: TomlShape::List };
        add_to_list(mount, NAME, &word).ok_or_else(occupied)
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        let absent = |there| EditError::Absent { key: NAME, name: name.to_owned(), there };
        let Some(words) = mount.get_mut(NAME).and_then(Item::as_array_mut) else { return Err(absent(Vec::new())) };
        let there = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let before = words.len();
        words.retain(|word| word.as_str() != Some(name));
        if words.len() == before {
            return Err(absent(there));
        }
        if words.is_empty() {
            mount.remove(NAME);
        }
        Ok(())
    }
}
