//! Failures: the kind, the problem, and the cure. No credential ever gets into one.

use belljar_fetch_protocol::{Failure, FailureKind};

use crate::text;

/// The result of a step.
pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

/// A failure. The texts are cleaned, because they quote strangers.
pub(crate) fn failure(kind: FailureKind, problem: impl AsRef<str>, cure: impl AsRef<str>) -> Box<Failure> {
    Box::new(Failure {
        kind,
        problem: text::clean(problem.as_ref(), text::SENTENCE),
        cure: text::clean(cure.as_ref(), text::SENTENCE),
    })
}

/// A server that answers what no registry answers.
pub(crate) fn wrong_content(problem: impl AsRef<str>) -> Box<Failure> {
    failure(FailureKind::Content, problem, "ask its publisher to push it again, or use another source")
}
