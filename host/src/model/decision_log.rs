//! The log of decisions about grants in one call, and the consents that would help.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::text;
use super::upstream_span::UpstreamSpan;

/// The result of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DecisionKind {
    /// A grant allowed it.
    Allowed,
    /// No grant allowed it, or none can.
    Denied,
    /// A grant allows it, but the granted object is not available now.
    Unavailable,
}

/// One use of a grant that was allowed, or refused because no grant allows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The kind of grant: `fs`, `http`, ...
    pub grant: Cow<'static, str>,
    /// The object of the request in the guest's terms (guest paths, never host paths), sanitised.
    pub target: String,
    /// The result.
    pub verdict: DecisionKind,
    /// For a refusal: the command that would allow it, or the reason why none can.
    pub cure: Option<String>,
    /// How often the same decision was made in the call.
    pub times: u32,
}

/// A permission that a person may give for one call, beyond the grants of the mount.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Consent {
    /// The kind of grant: `fs`, `http`, ...
    pub grant: Cow<'static, str>,
    /// The allowed object as the kind of grant names it: an origin, a guest path. Never a guest's own words.
    pub target: String,
}

/// Every decision of one call, in order of first occurrence; repeated ones are counted. The configuration bounds the
/// number of different allowed decisions, so all are kept. A guest can invent refusals, so only the first
/// [`MAX_REFUSALS`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionLog {
    decisions: Vec<Decision>,
    requested: Vec<Consent>,
    upstreams: Vec<UpstreamSpan>,
    /// Number of refusals that were not kept.
    pub dropped: u32,
    /// True if a request was sent that may have changed something. Then the call is never made again, and nobody is asked.
    pub has_acted: bool,
}

/// How many different refusals a [`DecisionLog`] keeps: enough to explain a call, too few to flood a log.
pub const MAX_REFUSALS: usize = 32;

/// How many requests to upstream servers a [`DecisionLog`] keeps for a trace.
const MAX_UPSTREAMS: usize = 64;

impl DecisionLog {
    /// Adds a decision, or counts it if it is already in the log.
    pub fn add(
        &mut self,
        grant: impl Into<Cow<'static, str>>,
        target: &str,
        verdict: DecisionKind,
        cure: impl FnOnce() -> Option<String>,
    ) {
        let grant = grant.into();
        let target = text::excerpt(target, 200);
        let same = |d: &&mut Decision| d.grant == grant && d.verdict == verdict && d.target == target;
        if let Some(seen) = self.decisions.iter_mut().find(same) {
            seen.times = seen.times.saturating_add(1);
        } else if verdict == DecisionKind::Allowed || self.refusals() < MAX_REFUSALS {
            self.decisions.push(Decision { grant, target, verdict, cure: cure(), times: 1 });
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Number of different refusals.
    fn refusals(&self) -> usize {
        self.decisions.iter().filter(|d| d.verdict != DecisionKind::Allowed).count()
    }

    /// Adds the decisions of another call.
    pub fn merge(&mut self, other: &Self) {
        for decision in &other.decisions {
            let before = self.dropped;
            self.add(decision.grant.clone(), &decision.target, decision.verdict, || decision.cure.clone());
            let more = decision.times.saturating_sub(1);
            let same = |d: &&mut Decision| {
                d.grant == decision.grant && d.verdict == decision.verdict && d.target == decision.target
            };
            match self.decisions.iter_mut().find(same).filter(|_| self.dropped == before) {
                Some(seen) => seen.times = seen.times.saturating_add(more),
                None => self.dropped = self.dropped.saturating_add(more),
            }
        }
        other.upstreams.iter().for_each(|upstream| self.add_upstream(upstream.clone()));
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.has_acted |= other.has_acted;
    }

    /// Adds a request to an upstream server. Only the first ones of a call are kept.
    pub fn add_upstream(&mut self, upstream: UpstreamSpan) {
        if self.upstreams.len() < MAX_UPSTREAMS {
            self.upstreams.push(upstream);
        }
    }

    /// The requests to upstream servers, if the call is traced.
    pub fn upstreams(&self) -> &[UpstreamSpan] {
        &self.upstreams
    }

    /// Adds a consent that would let the same call get further.
    pub fn request_consent(&mut self, consent: Consent) {
        if self.requested.len() < MAX_REFUSALS && !self.requested.contains(&consent) {
            self.requested.push(consent);
        }
    }

    /// The consents that would help, in the order in which they were missed.
    pub fn requested(&self) -> &[Consent] {
        &self.requested
    }

    /// The decisions, in order of first occurrence.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// The first decision with this result.
    pub fn first(&self, verdict: DecisionKind) -> Option<&Decision> {
        self.decisions.iter().find(|d| d.verdict == verdict)
    }
}
