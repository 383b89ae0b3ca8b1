//! Calls of tools and prompts from the command line: the questions on the terminal, and the progress.

use std::io::{IsTerminal, Write as _};
use std::sync::Arc;

use super::{consent, form, progress};
use crate::catalog::Mount;
use crate::config::Config;
use crate::gateway::asking::AskInput;
use crate::gateway::consent::ConsentAnswer;
use crate::gateway::invoke::Invoked;
use crate::limits::progress::{ProgressReport, ProgressSender, channel};
use crate::model::{Answer, Fault, ReadError, text};
use crate::server::failure::Failure;
use crate::server::log;

/// How often a person is asked in one call.
const MAX_ROUNDS: usize = 8;

/// The most characters of a report's note.
const MAX_NOTE_CHARS: usize = 100;

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
