//! Attempts of an attacker who has taken over a worker: native code that runs in place of the guest, with everything that
//! the process holds. Exists only in a build with the feature `unguarded`; the tests in
//! `tests/integration/sandbox/taken_over.rs` run it.
//!
//! A client names an attempt by the reference `attempt/NAME/ARGUMENTS`. The arguments are lines, as hexadecimal digits.

mod files;
mod kernel;
mod network;
mod powers;
mod processes;
mod protocol;

use std::sync::atomic::{AtomicBool, Ordering};

use self::kernel::{Attempt, AttemptArguments};
use self::protocol::Then;
use crate::interfaces::{Reply, Request};
use crate::model::{Body, Contents, Reading};
use crate::sandbox::spec::Outcome;

/// True if native code of a test runs in place of guests.
static IS_TAKEN_OVER: AtomicBool = AtomicBool::new(false);

/// From now on, this worker runs the attempts that reads name.
pub fn take_over_worker() {
    IS_TAKEN_OVER.store(true, Ordering::Relaxed);
}

/// The attempt that a read names.
pub(super) struct NamedAttempt {
    reference: String,
    name: String,
    arguments: AttemptArguments,
}

impl NamedAttempt {
    /// The attempt that a request names. `None` if the request is for the guest.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let Request::Read(read) = request else { return None };
        let rest = read.reference.strip_prefix("attempt/").filter(|_| IS_TAKEN_OVER.load(Ordering::Relaxed))?;
        let (name, arguments) = rest.split_once('/').unwrap_or((rest, ""));
        let arguments = AttemptArguments::from_hex(arguments);
        Some(Self { reference: read.reference.clone(), name: name.to_owned(), arguments })
    }

    /// Makes the attempt for call `number`. Returns the outcome for the front; never returns if the attempt gives none.
    pub(super) async fn run(self, number: u64) -> Outcome {
        let text = match (self.plain(), protocol::run(&self.name, number, &self.arguments, &self.reference)) {
            (Some(attempt), _) => match attempt(&self.arguments) {
                Ok(text) => format!("succeeded: {text}"),
                Err(error) => format!("refused: {error}"),
            },
            (None, Some(Then::Say(text))) => text,
            (None, Some(Then::Answer(outcome))) => return *outcome,
            (None, Some(Then::Nothing)) => std::future::pending().await,
            (None, None) => format!("there is no attempt \"{}\"", self.name),
        };
        reading(&self.reference, text)
    }

    fn plain(&self) -> Option<Attempt> {
        let all = [files::LIST, network::LIST, powers::LIST, processes::LIST].into_iter().flatten();
        all.copied().find(|(name, _)| *name == self.name).map(|(_, attempt)| attempt)
    }
}

/// The outcome of a read with one text.
fn reading(reference: &str, text: String) -> Outcome {
    let content =
        Contents { reference: reference.to_owned(), mime_type: None, body: Body::Text(text), meta: Vec::new() };
    let reply = Reply::Read(Reading { part: None, contents: vec![content], fresh_for: None });
    Outcome { result: Ok(reply), ..Outcome::failed(crate::model::ReadError::NotFound) }
}
