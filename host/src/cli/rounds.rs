//! Calls of tools and prompts from the command line: the host, the questions on the terminal, and the progress.

use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::{consent, form, progress};
use crate::catalog::{Defined, Mount};
use crate::config::Config;
use crate::gateway::Gateway;
use crate::gateway::asking::AskInput;
use crate::gateway::consent::ConsentAnswer;
use crate::gateway::definitions::PublicDefinition;
use crate::gateway::invoke::Invoked;
use crate::limits::progress::{ProgressReport, ProgressSender, channel};
use crate::model::{Answer, Fault, MountName, ReadError, command, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup::StartedHost;
use crate::server::{
    configuration, keys::Keys, keys::SharedCode, landlock, log, pins::Pinning, privileged_helper, record, startup,
};

/// How often a person is asked in one call.
const MAX_ROUNDS: usize = 8;

/// The most characters of a report's note.
const MAX_NOTE_CHARS: usize = 100;

/// Where a command finds the host, and what it writes.
pub(super) struct HostArgs<'a> {
    pub(super) at: &'a LocationArgs,
    pub(super) dev: bool,
    /// The file that the command writes.
    pub(super) output: Option<&'a Path>,
    /// True if the command can make calls for which a person is asked.
    pub(super) asks: bool,
}

/// Starts the host, waits until every component is loaded, and runs `work`.
pub(super) fn with_host(
    HostArgs { at, dev, output, asks }: HostArgs<'_>,
    work: impl AsyncFnOnce(&StartedHost) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    progress::start(if asks { "warn,rmcp=error" } else { "error" });
    let config = configuration::config(at, &[], Pinning::unless_dev(dev, Pinning::WriteMissing))?;
    let consents = if asks { privileged_helper::start_for_consents(at, &config)? } else { None };
    let keys = Keys::read(at, &config, SharedCode::Use)?;
    let wall = landlock::raise(&config, &keys, output)?;
    wall.runtime()?.block_on(async {
        let audit = record::audit(&config, true)?;
        let host = startup::start(config, keys, audit, consents)?;
        host.gateway.fully_loaded_snapshot().await;
        progress::end();
        work(&host).await
    })
}

/// The definitions of all mounts, or of one, and what was left out: the mount and the reason.
pub(super) async fn definitions<D: Defined>(
    gateway: &Gateway,
    only: Option<&MountName>,
) -> Result<(Vec<PublicDefinition<D>>, Vec<(MountName, String)>), Failure> {
    if let Some(only) = only {
        let snapshot = gateway.fully_loaded_snapshot().await;
        let mount = snapshot.mounts().iter().find(|mount| mount.name == *only).ok_or_else(|| {
            let cure = command::line(["list"]);
            Failure::Failed(format!("there is no mount \"{only}\"; to list the mounts, run: {cure}"))
        })?;
        if !D::is_exported(mount.interfaces) {
            return Err(Failure::Failed(format!("the provider of the mount \"{only}\" has no {}s", D::WHAT)));
        }
    }
    let (mut all, mut notices, mut next) = (Vec::new(), Vec::new(), None);
    loop {
        let page = gateway.definitions::<D>(&startup::caller(), next, only).await;
        all.extend(page.entries);
        notices.extend(page.notices.into_iter().map(|(mount, notice)| (mount, notice.to_string())));
        next = page.next;
        if next.is_none() {
            return Ok((all, notices));
        }
    }
}

/// The definition with this public name.
pub(super) async fn definition<D: Defined>(host: &StartedHost, name: &str) -> Result<PublicDefinition<D>, Failure> {
    if name.starts_with('-') {
        let shown = text::quoted(name, 80);
        return Err(Failure::Misused(format!("{shown} is no flag of this command; --help lists its flags")));
    }
    match host.gateway.definition::<D>(&startup::caller(), name).await {
        Ok(found) => Ok(found),
        Err(Fault { error: ReadError::NotFound, .. }) => Err(unknown::<D>(host, name).await),
        Err(fault) => Err(fault.into()),
    }
}

/// The failure for an unknown name, with the nearest name that is known.
async fn unknown<D: Defined>(host: &StartedHost, name: &str) -> Failure {
    let known = match definitions::<D>(&host.gateway, None).await {
        Ok((known, _)) => known,
        Err(failure) => return failure,
    };
    let distance = |one: &&PublicDefinition<D>| strsim::osa_distance(&one.name, name);
    let nearest = known.iter().min_by_key(distance).filter(|one| distance(one) <= one.name.len().div_ceil(3));
    let list = command::line([format!("{}s", D::WHAT)]);
    let hint = match nearest {
        Some(near) => format!("did you mean \"{}\"?", near.name),
        None => format!("to list the {}s, run: {list}", D::WHAT),
    };
    let rules = if host.config.rules.is_empty() { "" } else { "; the rules hold for you, too" };
    Failure::Failed(format!("there is no {} {}; {hint}{rules}", D::WHAT, text::quoted(name, 80)))
}

/// Makes a call, and asks its questions on the terminal until it has a result.
///
/// # Errors
/// The failure of the call. [`Failure::Misused`] if the arguments do not fit.
pub(super) async fn invoke<T>(
    config: &Config,
    call: impl AsyncFn(AskInput<'_>) -> Result<Invoked<T>, Fault>,
) -> Result<(T, Arc<Mount>), Failure> {
    let can_answer = consent::can_ask();
    let (mut state, mut choice, mut answers): (Option<String>, Option<ConsentAnswer>, Vec<Answer>) = Default::default();
    for _ in 0..=MAX_ROUNDS {
        let invoked = with_progress(async |progress| {
            let answers = answers.clone();
            call(AskInput { can_answer, state: state.as_deref(), consent: choice, answers, progress }).await
        });
        let invoked = invoked.await.map_err(|fault| to_failure(fault, can_answer))?;
        match invoked {
            Invoked::Done(result, mount, _) => return Ok((result, mount)),
            Invoked::ConsentUnavailable(fault) => return Err(fault.into()),
            Invoked::ConsentRequired(question) => {
                (choice, answers) = (Some(consent::ask(&question, config)?), Vec::new());
                state = Some(question.state);
            }
            Invoked::Ask(questions) => {
                log::flush();
                let (input, out) = (std::io::stdin(), std::io::stderr());
                (choice, answers) = (None, form::ask(&questions, &mut input.lock(), &mut out.lock())?);
                state = Some(questions.state);
            }
        }
    }
    Err(Failure::Failed(format!("the provider asks too often: {MAX_ROUNDS} times in one call")))
}

/// The failure of a call. Says so if it may have failed because nobody could be asked: each provider has its own words.
fn to_failure(fault: Fault, can_answer: bool) -> Failure {
    match &fault.error {
        ReadError::BadArguments(_) => Failure::Misused(fault.to_string()),
        ReadError::Invalid(_) | ReadError::BadOutput(_) | ReadError::ProviderFailed(_) if !can_answer => {
            let note = "nobody could be asked: standard input or standard error is no terminal";
            Failure::Failed(format!("{}\n  {note}", Failure::from(fault).message()))
        }
        _ => fault.into(),
    }
}

/// Runs `work`, and shows its reports on standard error, if that is a terminal.
async fn with_progress<T>(work: impl AsyncFnOnce(Option<ProgressSender>) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work(None).await;
    }
    let (sender, mut reports) = channel();
    let work = work(Some(sender));
    tokio::pin!(work);
    let mut is_shown = false;
    let done = loop {
        tokio::select! {
            biased;
            Some(report) = reports.recv() => {
                is_shown = true;
                write_error(&format!("{}{}", progress::CLEAR, line(&report)));
            }
            done = &mut work => break done,
        }
    };
    if is_shown {
        write_error(progress::CLEAR);
    }
    done
}

fn write_error(text: &str) {
    let mut out = std::io::stderr().lock();
    // A report that cannot be shown is no failure of the call.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// `3/10 reading a.md`
fn line(ProgressReport { done, total, note }: &ProgressReport) -> String {
    let total = total.map(|total| format!("/{total}")).unwrap_or_default();
    let note = note.as_deref().map(|note| format!(" {}", text::excerpt(note, MAX_NOTE_CHARS))).unwrap_or_default();
    format!("{done}{total}{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_clean_line() {
        let report = |total, note: Option<&str>| ProgressReport { done: 2.5, total, note: note.map(str::to_owned) };
        assert_eq!(line(&report(None, None)), "2.5");
        assert_eq!(line(&report(Some(10.0), Some("a\nb\u{1b}[2J"))), "2.5/10 a b[2J");
    }
}
