//! `belljar trust`: shows what changed in a component, and pins its current digest, so that it can use its mount's
//! grants again. Runs no code of the component.

use super::flags::WriteFlags;
use super::output;
use std::process::ExitCode;

use serde_json::json;

use super::confirm;
use crate::config::Config;
use crate::model::MountName;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{candidate::Candidate, files, location, log, pins, server_status, server_status::Changed};

pub(super) fn run(at: &LocationArgs, mounts: &[String], write: WriteFlags) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mut names =
        mounts.iter().map(|name| MountName::new(name)).collect::<Result<Vec<_>, _>>().map_err(Failure::misused)?;
    names.sort_unstable();
    names.dedup();
    let (path, input) = location::read_config_input(at)?;
    let config = Config::read(input)?;
    let mut pending = Vec::new();
    for name in &names {
        let candidate = Candidate::find(&config, name)?;
        let is_fetched = pins::read(&config.lock)?.pin(name).is_some_and(|pin| pin.source.is_some());
        if config.mounts.get(name).is_none_or(|own| !own.needs_pin()) && !is_fetched {
            output::message(write.json, &format!("\"{name}\" holds no grants and needs no trust\n"))?;
        } else if candidate.is_trusted() {
            output::message(
                write.json,
                &format!("\"{name}\" is already trusted: \"{}\" is {}\n", candidate.file, candidate.digest),
            )?;
        } else {
            output::message(write.json, &candidate.comparison(&config))?;
            pending.push(candidate);
        }
    }
    if pending.is_empty() {
        return report(write, &pending);
    }
    if !confirm::ask("Let the new components use these grants?", write.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    let write_lock = files::lock_for_writing(&[&config.lock])?;
    let mut lock = pins::read(&config.lock)?;
    pending.iter().for_each(|candidate| candidate.pin(&mut lock));
    pins::write(&write_lock, &config, &lock)?;
    drop(write_lock);
    for Candidate { name, digest, .. } in &pending {
        let changed = server_status::await_reload(&config.state, &path, Changed::Lock(&lock.to_text()), Some(name));
        output::message(write.json, &format!("\"{name}\" is trusted as {digest}. {changed}"))?;
    }
    report(write, &pending)
}

fn report(write: WriteFlags, trusted: &[Candidate]) -> Result<ExitCode, Failure> {
    if write.json {
        let one =
            |one: &Candidate| json!({ "mount": one.name.as_str(), "file": one.file, "digest": one.digest.to_string() });
        output::print_json(&json!({ "trusted": trusted.iter().map(one).collect::<Vec<_>>() }))?;
    }
    Ok(ExitCode::SUCCESS)
}
