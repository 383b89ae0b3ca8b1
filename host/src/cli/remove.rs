//! `belljar remove`: takes a mount out of the plugin directory, the configuration and the lock.

use std::process::ExitCode;

use serde_json::json;

use super::flags::WriteFlags;
use super::{confirm, grant, output};
use crate::model::{MountName, command};
use crate::server::edit::{self, ConfigChange};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{log, pins};

/// Removes a mount.
pub(super) fn run(at: &LocationArgs, mount: &str, write: WriteFlags) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    loop {
        let change = ConfigChange::draft::<Failure>(at, |document, _| {
            edit::remove_mount(document, &mount);
            Ok(())
        })?;
        let file = change.old.component_file(&mount);
        let users = change.new.mounts.iter().filter(|(_, own)| own.component.as_deref() == Some(file.as_str()));
        let users: Vec<String> = users.map(|(name, _)| format!("\"{name}\"")).collect();
        let path = change.new.plugins.join(&file);
        let is_present = path.is_file();
        if change.is_empty() && !is_present {
            return Err(Failure::Failed(format!(
                "there is no mount \"{mount}\"; to see all: {}",
                command::line(["list"])
            )));
        }
        let mut shown = if change.is_empty() { String::new() } else { change.diff() };
        shown += &match (is_present, users.is_empty()) {
            (false, _) => String::new(),
            (true, true) => format!("The file \"{}\" will be deleted.\n", path.display()),
            (true, false) => {
                format!("The file \"{}\" stays, because other mounts use it: {}\n", path.display(), users.join(", "))
            }
        };
        output::message(write.json, &shown)?;
        if !confirm::ask("Remove this?", write.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let write_lock = change.lock_for_writing()?;
        if !change.is_empty() && !change.write(&write_lock)? {
            output::message(write.json, grant::AGAIN)?;
            continue;
        }
        let mut lock = pins::read(&change.new.lock)?;
        if lock.remove(&mount).is_some() {
            pins::write(&write_lock, &change.new, &lock)?;
        }
        if is_present && users.is_empty() {
            std::fs::remove_file(&path)?;
        }
        drop(write_lock);
        output::message(write.json, &format!("Removed \"{mount}\".\n"))?;
        if write.json {
            output::print_json(&json!({ "mount": mount.as_str(), "removed": true, "diff": change.diff() }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
}
