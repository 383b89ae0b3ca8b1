//! Warnings about rules that apply to nobody, or to nothing. A slip in a `[[deny]]` leaves open what it should close.

use crate::auth::key_store::KeyStore;
use crate::catalog::Snapshot;
use crate::config::Config;
use crate::policy::{Rule, RuleSet};

/// The most names that a warning lists.
const SHOWN: usize = 10;

/// The warnings, one for each slip. `keys`: the API keys, with `[auth]`.
pub(super) fn rule_warnings(config: &Config, keys: Option<&KeyStore>, snapshot: &Snapshot) -> Vec<String> {
    let rules = RuleSet::new(config.rules.clone());
    let bases: Vec<_> = snapshot.all_bases().collect();
    let mut warnings = Vec::new();
    // A mount that is refused has no base, so nothing can be said about its rules.
    if snapshot.refused().is_empty() && !bases.is_empty() {
        let names: Vec<_> = bases.iter().map(|(name, base)| format!("{name} ({base})")).collect();
        let mounts = listed(&names);
        let of_rule = |rule: &Rule| format!("{} is about no resource of any mount: {rule}; {mounts}", rule.origin);
        warnings.extend(rules.about_nothing(&bases).map(of_rule));
    }
    for rule in rules.rules() {
        for name in rule.who.keys.iter().filter(|name| keys.is_none_or(|keys| keys.identity(name).is_none())) {
            warnings.push(format!("{} names the API key \"{name}\", and there is no such key", rule.origin));
        }
        let issuers = || config.auth.iter().flat_map(|auth| &auth.issuers).map(|issuer| issuer.issuer.as_str());
        for name in rule.who.issuers.iter().filter(|name| !issuers().any(|issuer| issuer == name.as_str())) {
            warnings.push(format!("{} names the issuer \"{name}\", and [auth] has no such issuer", rule.origin));
        }
    }
    if config.auth.is_some() && config.serve.http.is_none() && config.serve.tls.is_some() {
        warnings
            .push("[serve] has  tls  and no  http  address; without --http, belljar serves standard input".to_owned());
    }
    warnings
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0..=SHOWN => format!("the mounts are {shown}"),
        more => format!("the mounts are {shown} and {} more", more - SHOWN),
    }
}
