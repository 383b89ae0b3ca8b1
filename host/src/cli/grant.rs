//! `belljar grant`: gives a mount something, and binds that to its component as it is now. Knows no kind of grant by name.

use std::process::ExitCode;

use serde_json::json;

use super::change::{self, Change};
use super::trust::Candidate;
use super::{Failure, Where, Yes, open, pins};
use crate::grants::edit::Gift;
use crate::grants::{KINDS, Kind};
use crate::model::{MountName, command};

pub(super) fn run(at: &Where, mount: &str, gifts: &[(&'static Kind, Gift)], yes: Yes) -> Result<ExitCode, Failure> {
    super::log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::Misused)?;
    if gifts.is_empty() {
        let examples: Vec<String> = KINDS.iter().filter_map(|kind| kind.command(mount.as_str(), None)).collect();
        return Err(Failure::Misused(format!("it is not said what to give; for example: {}", examples.join(", or: "))));
    }
    // Whoever changes the file while the operator reads wins; what is approved is what is written, so it is asked anew.
    loop {
        let mut change = Change::draft(at, |document, here| {
            change::mount(document, &mount, |table| {
                gifts.iter().try_for_each(|(kind, gift)| (kind.give)(table, gift, here)).map_err(Failure::Misused)
            })
        })?;
        open::furnish(&mut change.new, &[])?;
        let candidate = Candidate::find(&change.new, &mount)?;
        if candidate.has_changed() && change.old.mounts.get(&mount).is_some_and(|own| own.needs_pin()) {
            return Err(Failure::Failed(format!(
                "\"{mount}\" is in quarantine: its component changed since its grants were given; to look at that first, run: {}",
                command::line(["trust", mount.as_str()])
            )));
        }
        let warnings = warnings(&change, &candidate, gifts)?;
        if change.is_empty() && candidate.is_trusted() {
            super::say(yes.json, &format!("\"{mount}\" holds that already; nothing was changed\n"))?;
            return told(yes, &change, &candidate, false);
        }
        let shown = format!("{}{}{}{warnings}", change.diff(), change.consequences(&mount), candidate.binding());
        super::say(yes.json, &shown)?;
        if !change::agrees("Write this?", yes.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let turn = change.turn()?;
        // The pin first: were this the end, the grant would not be there; the other way round, the next start would bind
        // it to whatever lies there then.
        let mut lock = pins::read(&change.new.lock)?;
        candidate.pin(&mut lock);
        if !change.is_current()? {
            super::say(yes.json, "the configuration changed meanwhile; once more\n")?;
            continue;
        }
        pins::write(&turn, &change.new, &lock)?;
        change.write(&turn)?;
        drop(turn);
        super::say(yes.json, &change.told(Some(&mount)))?;
        return told(yes, &change, &candidate, true);
    }
}

fn told(yes: Yes, change: &Change, candidate: &Candidate, written: bool) -> Result<ExitCode, Failure> {
    if yes.json {
        let mount = &candidate.name;
        super::print_json(&json!({
            "mount": mount.as_str(), "written": written, "diff": change.diff(), "file": candidate.file,
            "digest": candidate.digest.to_string(), "granted": change.granted(mount),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the operator should know before it is written.
///
/// # Errors
/// When the grants cannot be used as they would be.
fn warnings(change: &Change, candidate: &Candidate, gifts: &[(&'static Kind, Gift)]) -> Result<String, Failure> {
    let mount = &candidate.name;
    let Some(own) = change.new.mounts.get(mount) else { return Ok(String::new()) };
    // What a grant is made of may want to be told of events; nothing waits for one here.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let held = own
        .grants
        .configure(&change.new.ambient)
        .map_err(|why| Failure::Failed(format!("nothing was changed: \"{mount}\" cannot be given that: {why}")))?;
    let uses = candidate.profile.kinds();
    let useless = held.kinds().into_iter().filter(|kind| !uses.contains(kind));
    let useless =
        useless.map(|kind| format!("the component imports nothing that \"{kind}\" is for, and cannot use it"));
    let advice = gifts.iter().flat_map(|(kind, gift)| (kind.advise)(gift));
    Ok(useless.chain(advice).chain(held.warnings()).map(|warning| format!("warning: {warning}\n")).collect())
}
