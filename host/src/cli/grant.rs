//! `belljar grant`: adds grants to a mount, and binds them to the current digest of its component. Names no kind of
//! grant.

use super::flags::WriteFlags;
use super::output;
use std::process::ExitCode;

use serde_json::json;

use super::confirm;
use crate::grants::edit::GrantArgs;
use crate::grants::{GrantKind, KINDS};
use crate::model::{MountName, command};
use crate::sandbox::Profile;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{candidate::Candidate, configuration, edit, edit::ConfigChange, log, pins};

pub(super) fn run(
    at: &LocationArgs,
    mount: &str,
    grants: &[(&'static GrantKind, GrantArgs)],
    write: WriteFlags,
) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    if grants.is_empty() {
        let examples: Vec<String> = KINDS.iter().filter_map(|kind| kind.command(mount.as_str(), None)).collect();
        return Err(Failure::Misused(format!("expected at least one grant; for example: {}", examples.join(", or: "))));
    }
    // If another process changes the file while the operator reads the question, the operator is asked again about a
    // new change: only an approved change is written.
    loop {
        let mut change = ConfigChange::draft(at, |document, here| {
            edit::mount(document, &mount, |table| {
                grants
                    .iter()
                    .try_for_each(|(kind, arguments)| (kind.grant)(table, arguments, here))
                    .map_err(Failure::misused)
            })
        })?;
        configuration::read_ambient(&mut change.new, &[])?;
        let candidate = Candidate::find(&change.new, &mount)?;
        if candidate.has_changed() && change.old.mounts.get(&mount).is_some_and(|own| own.needs_pin()) {
            return Err(Failure::Failed(format!(
                "\"{mount}\" is in quarantine: its component changed since its grants were given; to review and trust it first, run: {}",
                command::line(["trust", mount.as_str()])
            )));
        }
        let warnings = warnings(&change, (&mount, &candidate.profile), grants)?;
        if change.is_empty() && candidate.is_trusted() {
            output::message(write.json, &format!("\"{mount}\" already holds these grants; nothing was changed\n"))?;
            return report(write, &change, &candidate, false);
        }
        let shown = format!("{}{}{}{warnings}", change.diff(), change.consequences(&mount), candidate.binding());
        output::message(write.json, &shown)?;
        if !confirm::ask("Write this?", write.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        if !self::write(&change, &candidate)? {
            output::message(write.json, AGAIN)?;
            continue;
        }
        output::message(write.json, &change.effect(Some(&mount)))?;
        return report(write, &change, &candidate, true);
    }
}

/// What is said before the operator is asked again.
pub(super) const AGAIN: &str = "another process changed the configuration in the meantime; trying again\n";

/// Writes the change, and binds the grants to the component. False if another process changed the configuration.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn write(change: &ConfigChange, candidate: &Candidate) -> Result<bool, Failure> {
    let write_lock = change.lock_for_writing()?;
    // The pin is written before the grant. If the process ends in between, the grant is missing. In the other order, the
    // next start would pin whatever component is there by then.
    let mut lock = pins::read(&change.new.lock)?;
    candidate.pin(&mut lock);
    if !change.is_current()? {
        return Ok(false);
    }
    pins::write(&write_lock, &change.new, &lock)?;
    Ok(change.write(&write_lock)?)
}

fn report(write: WriteFlags, change: &ConfigChange, candidate: &Candidate, written: bool) -> Result<ExitCode, Failure> {
    if write.json {
        let mount = &candidate.name;
        output::print_json(&json!({
            "mount": mount.as_str(), "written": written, "diff": change.diff(), "file": candidate.file,
            "digest": candidate.digest.to_string(), "granted": change.granted(mount),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The warnings to show before the change is written.
///
/// # Errors
/// When the new grants cannot be configured.
pub(super) fn warnings(
    change: &ConfigChange,
    (mount, profile): (&MountName, &Profile),
    grants: &[(&'static GrantKind, GrantArgs)],
) -> Result<String, Failure> {
    let Some(own) = change.new.mounts.get(mount) else { return Ok(String::new()) };
    // Configuring a grant may register with a runtime's event loop. No event is awaited here.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let held = own.grants.configure(&change.new.ambient).map_err(|why| {
        Failure::Failed(format!("nothing was changed: the grants of \"{mount}\" cannot be used: {why}"))
    })?;
    let uses = profile.kinds();
    let useless = held.kinds().into_iter().filter(|kind| !uses.contains(kind));
    let useless =
        useless.map(|kind| format!("the component cannot use the grant \"{kind}\": it has none of the imports for it"));
    let advice = grants.iter().flat_map(|(kind, arguments)| (kind.advise)(arguments));
    Ok(useless.chain(advice).chain(held.warnings()).map(|warning| format!("warning: {warning}\n")).collect())
}
