//! Explains a failed call beyond the provider's own words: the missing grant, and how to allow it.

use super::consent::is_missed_silently;
use crate::catalog::Mount;
use crate::grants::{GrantKind, KINDS, Need};
use crate::model::{Decision, DecisionKind, DecisionLog, ReadError, text};

/// The grant that a provider may lack: one that it declares, or else one that it could use.
///
/// A provider asks for most kinds of grants, and the refusal is in the decision log. The other kinds are missed
/// silently: only declarations and imports tell of them.
fn missing_grant(mount: &Mount) -> Option<Decision> {
    let decision = |kind: &GrantKind, need: Option<&Need>| Decision {
        grant: kind.name.into(),
        target: need.and_then(|need| need.name.clone()).unwrap_or_default(),
        verdict: DecisionKind::Denied,
        cure: kind.cure(mount.name.as_str(), need).or_else(|| describe_need(mount, need?)),
        times: 0,
    };
    let is_silent = |need: &&Need| GrantKind::find(need.kind).is_some_and(|kind| kind.is_missed_silently);
    let optional = || mount.missing_needs.iter().find(is_silent);
    if let Some(need) = mount.missing_needs.iter().find(|need| !need.optional).or_else(optional) {
        return Some(decision(GrantKind::find(need.kind)?, Some(need)));
    }
    let is_possible = |kind: &&GrantKind| {
        kind.is_missed_silently && mount.usable_kinds.contains(&kind.name) && mount.needs.is_empty()
    };
    let kind = KINDS.iter().find(is_possible)?;
    if !mount.granted_kinds.contains(&kind.name) {
        return Some(decision(kind, None));
    }
    let held = mount.configured_grants.granted.iter().filter(|(held, _)| *held == kind.name);
    let held: Vec<&str> = held.map(|(_, line)| line.as_str()).collect();
    let cure = Some((kind.advise_missing)(mount.name.as_str(), &held)?);
    // This is advice and no refusal: the provider may have failed for another reason.
    Some(Decision { verdict: DecisionKind::Allowed, cure, ..decision(kind, None) })
}

/// The cure for a need whose value only the operator can choose.
fn describe_need(mount: &Mount, need: &Need) -> Option<String> {
    let why = need.reason.as_ref().map(|why| format!(", for: \"{why}\"")).unwrap_or_default();
    Some(format!("the provider needs a grant of {}{why}; add it to [mounts.{}]", need.kind, mount.name))
}

/// Adds to a denial that the operator has granted more since, and that this takes a restart.
pub(super) fn needs_restart(error: ReadError) -> ReadError {
    const CURE: &str =
        "the operator has granted it more since belljar was started; restart belljar to use the new grants";
    match error {
        ReadError::Denied { message, denial: Some(denial) } => {
            ReadError::Denied { message, denial: Some(Decision { cure: Some(CURE.to_owned()), ..denial }) }
        }
        other => other,
    }
}

/// Adds belljar's own facts to the provider's words. A grant that cannot be opened comes first, then a refusal during
/// the call, then a grant that the provider may lack.
pub(super) fn explain(error: ReadError, decisions: &DecisionLog, mount: &Mount) -> ReadError {
    let refused = decisions.first(DecisionKind::Denied);
    let message = match error {
        ReadError::Denied { .. } | ReadError::NotFound
            if let Some(absent) = decisions.first(DecisionKind::Unavailable) =>
        {
            let cure = absent.cure.as_deref().unwrap_or_default();
            return ReadError::Unavailable(format!(
                "the granted {} {} cannot be opened; {cure}",
                absent.grant,
                text::quoted(&absent.target, 200)
            ));
        }
        // The provider only knows that it has no connection. belljar knows why.
        ReadError::ProviderUnavailable(_)
            if refused.is_none()
                && let Some(absent) = decisions.first(DecisionKind::Unavailable)
                && let Some(why) = &absent.cure =>
        {
            return ReadError::Unavailable(format!(
                "the granted {} {} is not available: {why}",
                absent.grant,
                text::quoted(&absent.target, 200)
            ));
        }
        ReadError::Denied { message, denial: None } => message,
        // The resource may be in the withheld grant. belljar cannot know this before a person allows the grant.
        ReadError::NotFound if decisions.requested().iter().any(is_missed_silently) => String::new(),
        // The refusal is the reason of the provider's error, and a refusal has a cure.
        ReadError::ProviderFailed(message) | ReadError::ProviderUnavailable(message) if refused.is_some() => message,
        other => return other,
    };
    let denial = refused.cloned().or_else(|| missing_grant(mount));
    ReadError::Denied { message, denial }
}
