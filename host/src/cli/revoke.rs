//! `belljar revoke`: takes away what a mount holds. Knows no kind of grant by name.

use std::process::ExitCode;

use serde_json::json;

use super::change::{self, Change};
use super::{Failure, Where, Yes, pins};
use crate::grants::{KINDS, Kind};
use crate::model::MountName;

pub(super) fn run(
    at: &Where,
    mount: &str,
    takings: &[(&'static Kind, String)],
    all: bool,
    yes: Yes,
) -> Result<ExitCode, Failure> {
    super::log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::Misused)?;
    if takings.is_empty() && !all {
        let flags: Vec<String> = KINDS.iter().map(|kind| format!("--{} {}", kind.flag.name, kind.thing)).collect();
        return Err(Failure::Misused(format!("it is not said what to take away; say {}, or --all", flags.join(", "))));
    }
    loop {
        let (_, given) = super::open::given(at)?;
        let now = crate::config::Config::read(given)?;
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
        let change = Change::draft(at, |document, _| {
            change::mount(document, &mount, |table| {
                for (kind, what) in takings {
                    (kind.take)(table, what).map_err(|why| format!("\"{mount}\" keeps what it has: {why}"))?;
                }
                for kind in KINDS.iter().filter(|_| all) {
                    table.remove(kind.name);
                }
                Ok(())
            })
        })?;
        super::say(yes.json, &format!("{}{}", change.diff(), change.consequences(&mount)))?;
        if !change::agrees("Write this?", yes.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let turn = change.turn()?;
        // The grant first: were this the end, a pin would be left that binds nothing.
        if !change.write(&turn)? {
            super::say(yes.json, "the configuration changed meanwhile; once more\n")?;
            continue;
        }
        if change.new.mounts.get(&mount).is_none_or(|own| !own.needs_pin()) {
            let mut lock = pins::read(&change.new.lock)?;
            if lock.remove(&mount).is_some() {
                pins::write(&turn, &change.new, &lock)?;
            }
        }
        drop(turn);
        super::say(yes.json, &change.told(Some(&mount)))?;
        super::say(yes.json, change.still_open())?;
        if yes.json {
            super::print_json(&json!({
                "mount": mount.as_str(), "written": true, "diff": change.diff(), "granted": change.granted(&mount),
            }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
}
