//! References, bases, routing and templates: `model::reference` and `catalog::Snapshot::route`.

use std::collections::BTreeSet;
use std::sync::Arc;

use belljar::catalog::{Mount, Snapshot};
use belljar::model::{Limits, MountName, reference};
use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateStr;
use iri_string::template::simple_context::SimpleContext;
use iri_string::types::UriAbsoluteStr;
use url::Url;

use crate::{input, oracle};

/// A mount that no call reaches.
pub(super) fn mount(name: &str, base: &str) -> Arc<Mount> {
    Arc::new(Mount::plain(MountName::new(name).unwrap(), base, Limits::default()))
}

/// belljar must accept a reference if and only if the independent rules of the oracle do. Resolving an accepted reference against
/// a base must give the base and the unchanged reference.
pub(super) fn reference(bytes: &[u8]) {
    let reference = input::text(bytes);
    let taken = reference::check(&reference);
    assert_eq!(taken.is_ok(), oracle::is_lawful(&reference), "{taken:?} for {reference:?}");
    if taken.is_ok() {
        let base = "belljar://m/x/";
        let resolved = Url::parse(base).unwrap().join(&reference);
        let resolved = resolved.unwrap_or_else(|why| panic!("{reference:?} cannot be resolved: {why}"));
        assert_eq!(resolved.as_str(), format!("{base}{reference}"));
    }
}

/// An accepted base must end at the end of a segment. With any accepted reference after it, it must be an absolute URI.
pub(super) fn base(bytes: &[u8]) {
    let base = input::text(bytes);
    if reference::check_base(&base).is_err() {
        return;
    }
    assert!(base.len() <= reference::MAX_URI / 2 && base.is_ascii() && base.ends_with(['/', ':']), "{base:?}");
    let (scheme, rest) = base.split_once(':').unwrap();
    let letters = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(b);
    assert!(scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.bytes().all(|b| letters(&b)), "{base:?}");
    assert!(!base.contains(['?', '#', '{', '}']), "{base:?}");
    let decoded = oracle::decode(rest.as_bytes()).unwrap_or_else(|| panic!("{base:?} does not decode"));
    assert!(!oracle::has_dot_segment(&decoded), "{base:?} climbs");
    oracle::assert_plain(&base, "a base");
    for reference in ["", "a", "a/b.md?c=d"] {
        let uri = format!("{base}{reference}");
        assert!(UriAbsoluteStr::new(&uri).is_ok(), "{uri:?} is not a URI");
    }
}

/// Routes the last line over the mounts of the other lines. The mount with the longest matching base must win.
pub(super) fn route(bytes: &[u8]) {
    let all = input::text(bytes);
    let (bases, uri) = all.rsplit_once('\n').unwrap_or(("", &all));
    let bases: BTreeSet<&str> = bases.lines().take(16).filter(|base| reference::check_base(base).is_ok()).collect();
    let mounts: Vec<_> = bases.iter().enumerate().map(|(at, base)| mount(&format!("m{at}"), base)).collect();
    let snapshot = Snapshot::new(mounts.clone(), Vec::new());
    let found = snapshot.route(uri).map(|(mount, rest)| (mount.base.as_str(), rest));
    let longest = bases.iter().filter(|base| uri.starts_with(**base)).max_by_key(|base| base.len());
    assert_eq!(found, longest.map(|base| (*base, &uri[base.len()..])), "{uri:?} over {bases:?}");
    // The absolute name of a reference must lead back to its mount, or to a mount with a longer base, without a loss.
    for mount in &mounts {
        if reference::check(uri).is_ok() {
            let absolute = format!("{}{uri}", mount.base);
            let (owner, rest) = snapshot.route(&absolute).expect("a mount has the base of its own reference");
            assert_eq!(format!("{}{rest}", owner.base), absolute);
            assert!(owner.base.len() >= mount.base.len(), "{absolute:?} leads to {:?}", owner.base);
        }
        let from = snapshot.mounts_from(Some(&mount.name));
        assert!(from.len() == mounts.iter().filter(|other| other.name >= mount.name).count());
    }
}

/// With plain values, an accepted template must expand to accepted references. With empty values, it must never expand to a
/// reference with `..`.
pub(super) fn template(bytes: &[u8]) {
    let template = input::text(bytes);
    if reference::check_template(&template).is_err() {
        return;
    }
    assert!(template.is_ascii() && template.len() <= reference::MAX_URI, "{template:?}");
    assert!(template.contains('{') && !template.starts_with('/'), "{template:?}");
    let parsed = UriTemplateStr::new(&template).unwrap();
    for value in [Some("v"), Some(""), None] {
        let mut context = SimpleContext::new();
        for variable in parsed.variables() {
            // Skip templates whose names of variables contain `%`: the names may be part of the expansion.
            if variable.as_str().contains('%') {
                return;
            }
            if let Some(value) = value {
                context.insert(variable.as_str(), value);
            }
        }
        let expanded = parsed.expand::<UriSpec, _>(&context).unwrap().to_string();
        if value == Some("v") && expanded.len() <= reference::MAX_URI {
            assert_eq!(reference::check(&expanded), Ok(()), "{template:?} expands to {expanded:?}");
        }
        let path = expanded.split('?').next().unwrap_or_default();
        let decoded = oracle::decode(path.as_bytes()).unwrap();
        assert!(!oracle::has_dot_segment(&decoded), "{template:?} expands to {expanded:?}, which has a segment \"..\"");
    }
}
