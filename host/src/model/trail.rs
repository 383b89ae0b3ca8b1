//! What was decided in a call, and what a person could have allowed.

use super::text;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A grant allowed it.
    Allowed,
    /// No grant allowed it, or none can.
    Denied,
    /// A grant allows it, and what was granted is not there now.
    Unavailable,
}

/// Something that a grant allowed, or that was refused for want of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The kind of grant: `fs`, `http`, ...
    pub grant: &'static str,
    /// What was asked for, in the guest's words (guest paths, never host paths), sanitised.
    pub what: String,
    /// What was decided.
    pub verdict: Verdict,
    /// For a refusal: what the operator types to allow it, or why nothing does.
    pub cure: Option<String>,
    /// How many times this very decision was taken in the call.
    pub times: u32,
}

/// Something that a person may allow for one call, beyond what the mount holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Consent {
    /// The kind of grant: `fs`, `http`, ...
    pub grant: &'static str,
    /// What is allowed, as the kind names it: an origin, a guest path. Never a guest's own words.
    pub what: String,
}

/// Every decision of one call, in order, repeated ones counted. All that was allowed is there, which the configuration bounds;
/// of refusals, which a guest makes up, the first [`MAX_TRAIL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    decisions: Vec<Decision>,
    asks: Vec<Consent>,
    /// How many further refusals there was no room for.
    pub dropped: u32,
}

/// How many different refusals a trail keeps: enough to show what a call did, too few to flood a log.
pub const MAX_TRAIL: usize = 32;

impl Trail {
    /// Adds a decision, or counts it where it stands already.
    pub fn add(&mut self, grant: &'static str, what: &str, verdict: Verdict, cure: impl FnOnce() -> Option<String>) {
        let what = text::excerpt(what, 200);
        let same = |d: &&mut Decision| d.grant == grant && d.verdict == verdict && d.what == what;
        if let Some(seen) = self.decisions.iter_mut().find(same) {
            seen.times = seen.times.saturating_add(1);
        } else if verdict == Verdict::Allowed || self.refusals() < MAX_TRAIL {
            self.decisions.push(Decision { grant, what, verdict, cure: cure(), times: 1 });
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// How many different refusals there are.
    fn refusals(&self) -> usize {
        self.decisions.iter().filter(|d| d.verdict != Verdict::Allowed).count()
    }

    /// Adds the decisions of another call.
    pub fn join(&mut self, other: &Self) {
        for decision in &other.decisions {
            let before = self.dropped;
            self.add(decision.grant, &decision.what, decision.verdict, || decision.cure.clone());
            let more = decision.times.saturating_sub(1);
            let same = |d: &&mut Decision| {
                d.grant == decision.grant && d.verdict == decision.verdict && d.what == decision.what
            };
            match self.decisions.iter_mut().find(same).filter(|_| self.dropped == before) {
                Some(seen) => seen.times = seen.times.saturating_add(more),
                None => self.dropped = self.dropped.saturating_add(more),
            }
        }
        self.dropped = self.dropped.saturating_add(other.dropped);
    }

    /// Notes what a person could allow, so that the same call would get further.
    pub fn ask(&mut self, consent: Consent) {
        if self.asks.len() < MAX_TRAIL && !self.asks.contains(&consent) {
            self.asks.push(consent);
        }
    }

    /// What a person could allow, in the order in which it was missed.
    pub fn asks(&self) -> &[Consent] {
        &self.asks
    }

    /// What was decided, in the order of first occurrence.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// The first decision with this verdict.
    pub fn first(&self, verdict: Verdict) -> Option<&Decision> {
        self.decisions.iter().find(|d| d.verdict == verdict)
    }
}
