//! What a person allows for good is written into the configuration, as `belljar grant` would: by a process of its own, which
//! is started before the second wall and stays outside. It knows one order: this mount, these bytes, this consent. Whoever
//! breaks out of a sandbox can give such orders and no others: for everything else the configuration lies beyond the wall.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::change::{self, Change};
use super::trust::Candidate;
use super::{Failure, Where, pins};
use crate::config::{Ask, Config};
use crate::gateway::consent::Keeper;
use crate::grants::KINDS;
use crate::model::{Consent, Digest, MountName, text};

/// The hidden verb that the child process runs.
pub(super) const VERB: &str = "keep-consent";

/// How often a change is made anew because somebody else was quicker.
const TRIES: usize = 5;

/// An order: mount, digest, kind of grant, what.
type Order = (String, String, String, String);

/// The child process, which ends when this is dropped and its input with it.
struct Subprocess {
    pipe: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Child,
}

/// Starts the process that writes, where `config` lets any mount ask for something for good.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start(at: &Where, config: &Config) -> Result<Option<Arc<dyn Keeper>>, Failure> {
    if !config.mounts.values().any(|mount| mount.ask == Ask::Persist) {
        return Ok(None);
    }
    #[expect(clippy::disallowed_methods, reason = "our own program, as the process that writes the configuration")]
    let mut command = Command::new("/proc/self/exe");
    command.arg(VERB).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (flag, path) in [("--plugins", &at.plugins), ("--config", &at.config)] {
        if let Some(path) = path {
            command.arg(flag).arg(path);
        }
    }
    let fail =
        |why: String| Failure::Failed(format!("cannot start the process that keeps what is always allowed: {why}"));
    let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(fail("it has no pipes".to_owned()));
    };
    Ok(Some(Arc::new(Subprocess { pipe: Mutex::new((input, BufReader::new(output))), _child: child })))
}

impl Keeper for Subprocess {
    fn keep(&self, mount: &MountName, digest: &Digest, consent: &Consent) -> Result<(), String> {
        let order: Order = (mount.to_string(), digest.to_string(), consent.grant.to_owned(), consent.what.clone());
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, output) = &mut *pipe;
        let mut answer = String::new();
        let gone = |why: &dyn std::fmt::Display| format!("the process that writes it is gone ({why})");
        let line = serde_json::to_string(&order).map_err(|error| gone(&error))?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|error| gone(&error))?;
        output.read_line(&mut answer).map_err(|error| gone(&error))?;
        match serde_json::from_str::<Option<String>>(&answer).map_err(|error| gone(&error))? {
            None => Ok(()),
            Some(why) => Err(why),
        }
    }
}

/// The child process: an order a line, and for each the answer, null or what went wrong.
pub(super) fn child(at: &Where) -> ExitCode {
    super::start_log("warn");
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let failed =
            serde_json::from_str::<Order>(&line).map_err(|error| error.to_string()).and_then(|order| keep(at, &order));
        let answer = serde_json::to_string(&failed.err()).unwrap_or_default();
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn keep(at: &Where, (mount, digest, grant, what): &Order) -> Result<(), String> {
    let said = |failure| match failure {
        Failure::Misused(why) | Failure::Failed(why) => why,
    };
    let mount = MountName::new(mount)?;
    let digest: Digest = digest.parse()?;
    let kind = KINDS.iter().find(|kind| kind.name == grant).ok_or("there is no such kind of grant")?;
    for _ in 0..TRIES {
        let draft = Change::draft(at, |document, _| {
            change::mount(document, &mount, |table| (kind.keep)(table, what).map_err(Failure::Failed))
        });
        let change = draft.map_err(said)?;
        if change.old.mounts.get(&mount).is_none_or(|own| own.ask != Ask::Persist) {
            return Err(format!("[mounts.{mount}] no longer says  ask = \"persist\""));
        }
        let candidate = Candidate::find(&change.new, &mount).map_err(said)?;
        if candidate.digest != digest || candidate.has_changed() {
            return Err(format!(
                "the component of \"{mount}\" was exchanged meanwhile; look at it: belljar trust {mount}"
            ));
        }
        let turn = change.turn().map_err(said)?;
        if !change.is_current().map_err(said)? {
            continue;
        }
        // The pin first, as `grant` does.
        let mut lock = pins::read(&change.new.lock)?;
        candidate.pin(&mut lock);
        pins::write(&turn, &change.new, &lock)?;
        if change.write(&turn).map_err(said)? {
            tracing::warn!(mount = %mount, "a person allowed {grant} \"{}\" for good; it is in the configuration", text::excerpt(what, 200));
            return Ok(());
        }
    }
    Err("somebody else changes the configuration all the time".to_owned())
}
