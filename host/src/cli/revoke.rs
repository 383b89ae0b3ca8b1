//! `belljar revoke`: removes grants of a mount. Names no kind of grant.

use super::flags::WriteFlags;
use super::output;
use std::process::ExitCode;

use serde_json::json;

use super::confirm;
use crate::grants::{GrantKind, KINDS};
use crate::model::MountName;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{edit, edit::ConfigChange, location, log, pins};

pub(super) fn run(
    at: &LocationArgs,
    mount: &str,
    revocations: &[(&'static GrantKind, String)],
    all: bool,
    write: WriteFlags,
) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    if revocations.is_empty() && !all {
        let flags: Vec<String> =
            KINDS.iter().map(|kind| format!("--{} {}", kind.flag.name, kind.revoke_placeholder)).collect();
        return Err(Failure::Misused(format!("expected at least one grant to revoke: {}, or --all", flags.join(", "))));
    }
    loop {
        let (_, input) = location::read_config_input(at)?;
        let now = crate::config::Config::read(input)?;
        if now.mounts.get(&mount).is_none_or(|own| own.grants.is_empty()) {
            let holding = now.mounts.iter().filter(|(_, own)| !own.grants.is_empty());
            let holding: Vec<String> = holding.map(|(name, _)| format!("\"{name}\"")).collect();
            let others = if holding.is_empty() {
                "no mount does".to_owned()
            } else {
                format!("these do: {}", holding.join(", "))
            };
            return Err(Failure::Failed(format!("\"{mount}\" holds no grants; {others}")));
        }
        let change = ConfigChange::draft::<Failure>(at, |document, _| {
            edit::mount(document, &mount, |table| {
                for (kind, what) in revocations {
                    (kind.revoke)(table, what)
                        .map_err(|error| format!("no grant of \"{mount}\" was revoked: {error}"))?;
                }
                for kind in KINDS.iter().filter(|_| all) {
                    table.remove(kind.name);
                }
                Ok(())
            })
        })?;
        output::message(write.json, &format!("{}{}", change.diff(), change.consequences(&mount)))?;
        if !confirm::ask("Write this?", write.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let write_lock = change.lock_for_writing()?;
        // The grant is removed before the pin. If the process ends in between, only a pin without grants is left.
        if !change.write(&write_lock)? {
            output::message(write.json, "another process changed the configuration in the meantime; trying again\n")?;
            continue;
        }
        if change.new.mounts.get(&mount).is_none_or(|own| !own.needs_pin()) {
            let mut lock = pins::read(&change.new.lock)?;
            // A component that was fetched keeps its pin: the lock knows where it comes from.
            if lock.pin(&mount).is_some_and(|pin| pin.source.is_none()) {
                lock.remove(&mount);
                pins::write(&write_lock, &change.new, &lock)?;
            }
        }
        drop(write_lock);
        output::message(write.json, &change.effect(Some(&mount)))?;
        output::message(write.json, change.wall_notice())?;
        if write.json {
            output::print_json(&json!({
                "mount": mount.as_str(), "written": true, "diff": change.diff(), "granted": change.granted(&mount),
            }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
}
