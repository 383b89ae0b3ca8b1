//! A finding of `belljar doctor`.

/// How good a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingState {
    Good,
    /// It works, but not as well as it could.
    Warning,
    /// Something does not work.
    Bad,
}

/// One thing that was looked at.
pub(super) struct SetupFinding {
    pub(super) area: &'static str,
    pub(super) state: FindingState,
    pub(super) what: String,
    /// What to do. `None` if nothing is to be done.
    pub(super) cure: Option<String>,
}

impl SetupFinding {
    pub(super) fn good(area: &'static str, what: impl Into<String>) -> Self {
        Self { area, state: FindingState::Good, what: what.into(), cure: None }
    }

    pub(super) fn warning(area: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { area, state: FindingState::Warning, what: what.into(), cure: Some(cure.into()) }
    }

    pub(super) fn bad(area: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { area, state: FindingState::Bad, what: what.into(), cure: Some(cure.into()) }
    }
}
