//! What a provider gave is checked before anyone sees it.

use std::collections::HashSet;

use crate::catalog::listing::{meta, mime_type};
use crate::catalog::{Mount, Snapshot};
use crate::grants::Kind;
use crate::grants::needs::Need;
use crate::model::template::{Completing, expand, variables};
use crate::model::{Decision, Description, Guard, ReadError, Reading, Suggestions, Trail, Verdict, reference, text};

/// Pieces of contents in one answer.
const MAX_CONTENTS: usize = 10_000;

/// Values that a client is given at the most (MCP, completion).
pub(super) const MAX_SUGGESTIONS: usize = 100;

/// Checks a reading of `asked` and makes its references absolute.
///
/// # Errors
/// [`ReadError::BadOutput`].
pub fn reading(mut reading: Reading, asked: &str, mount: &Mount, snapshot: &Snapshot) -> Result<Reading, ReadError> {
    if reading.contents.is_empty() && Guard::ContentsCount.is_on() {
        return Err(ReadError::BadOutput(
            "read gave no contents; a resource that does not exist is not-found".to_owned(),
        ));
    }
    if reading.contents.len() > MAX_CONTENTS && Guard::ContentsCount.is_on() {
        return Err(ReadError::BadOutput(format!(
            "read gave {} contents; at most {MAX_CONTENTS} are passed on",
            reading.contents.len()
        )));
    }
    if Guard::Fresh.is_on() {
        reading.fresh_for = reading.fresh_for.map(|time| time.min(mount.cache.most));
    }
    for contents in &mut reading.contents {
        if Guard::ContentsName.is_on() {
            name(&contents.reference, asked)?;
        }
        let named = snapshot.name_in(mount, &contents.reference);
        contents.reference = named.map_err(|why| ReadError::BadOutput(format!("read gave contents, and {why}")))?;
        contents.mime_type = mime_type(contents.mime_type.take());
        contents.meta = meta(std::mem::take(&mut contents.meta));
    }
    Ok(reading)
}

/// Checks that contents named `given` may answer a read of `asked`.
fn name(given: &str, asked: &str) -> Result<(), ReadError> {
    if given == asked {
        // Checked before the call.
        return Ok(());
    }
    let shown = || text::quoted(given, 100);
    reference::check(given)
        .map_err(|why| ReadError::BadOutput(format!("read gave contents for {}, which {why}", shown())))?;
    if !reference::is_same_or_below(asked, given) {
        return Err(ReadError::BadOutput(format!(
            "read of {} gave contents for {}; contents are for what was asked or what lies below it",
            text::quoted(asked, 100),
            shown()
        )));
    }
    Ok(())
}

/// Makes a description fit to be shown.
pub(super) fn description(about: Description) -> Description {
    let clean = |text: Option<String>, max| text.map(|t| text::cleaned(t, max)).filter(|t| !t.trim().is_empty());
    Description {
        title: clean(about.title, 256),
        version: clean(about.version, 64),
        description: clean(about.description, 4096),
    }
}

/// Characters of a suggested value: as many as a URI may have.
const MAX_VALUE: usize = reference::MAX_URI;

/// Bytes of a revision, as the interface says.
const MAX_REVISION: usize = 256;

/// Makes suggestions for `asked` fit to be shown: clean, of a sensible length, each once, and none that makes another mount's
/// name of the template.
pub(super) fn suggestions(
    mut given: Suggestions,
    asked: &Completing,
    mount: &Mount,
    snapshot: &Snapshot,
) -> Suggestions {
    let mut seen = HashSet::new();
    let values = given.values.into_iter().filter(|value| value.len() <= MAX_VALUE);
    let mut others = 0;
    let is_own = |value: &String| {
        let known = |name: &str| asked.resolved.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let value_of = |name: &str| if name == asked.name { Some(value.as_str()) } else { known(name) };
        // What is not filled in yet says nothing about what stands behind it.
        let mut before = variables(&asked.template).into_iter().take_while(|name| *name != asked.name);
        before.any(|name| known(name).is_none()) || snapshot.name_in(mount, &expand(&asked.template, value_of)).is_ok()
    };
    given.values = values
        .map(|value| text::cleaned(value, MAX_VALUE))
        .filter(|value| {
            let is_own = is_own(value);
            others += usize::from(!is_own);
            is_own && seen.insert(value.clone())
        })
        .take(MAX_SUGGESTIONS + 1)
        .collect();
    if others > 0 {
        given.total = None;
    }
    given
}

/// Checks a revision.
///
/// # Errors
/// [`ReadError::BadOutput`] for one that is longer than the interface allows.
pub(super) fn revision(given: String) -> Result<String, ReadError> {
    if given.len() > MAX_REVISION && Guard::Revision.is_on() {
        let bytes = given.len();
        return Err(ReadError::BadOutput(format!("a revision of {bytes} bytes; it has at most {MAX_REVISION}")));
    }
    Ok(given)
}

/// Checks the revisions of `asked` references.
///
/// # Errors
/// [`ReadError::BadOutput`] when there are more or fewer.
pub(super) fn revisions(
    given: Vec<Result<String, ReadError>>,
    asked: usize,
) -> Result<Vec<Result<String, ReadError>>, ReadError> {
    if given.len() != asked {
        return Err(ReadError::BadOutput(format!(
            "resource-revisions gave {} results for {asked} references; one each is expected",
            given.len()
        )));
    }
    Ok(given.into_iter().map(|one| one.and_then(revision)).collect())
}

/// The kind of grant whose absence a guest sees without asking the host: it finds no directory. All others are asked for,
/// and refused on the trail.
const UNASKED: &str = "fs";

/// The grant that a provider may have missed: one that it declares, or else one that it could use.
fn missing(mount: &Mount) -> Option<Decision> {
    let decision = |kind: &Kind, need: Option<&Need>| Decision {
        grant: kind.name,
        what: need.and_then(|need| need.what.clone()).unwrap_or_default(),
        verdict: Verdict::Denied,
        cure: kind.cure(mount.name.as_str(), need).or_else(|| unknown(mount, need?)),
        times: 0,
    };
    let optional = || mount.lacks.iter().find(|need| need.kind == UNASKED);
    if let Some(need) = mount.lacks.iter().find(|need| !need.optional).or_else(optional) {
        return Some(decision(Kind::find(need.kind)?, Some(need)));
    }
    let could = mount.uses.contains(&UNASKED) && mount.needs.is_empty();
    let kind = Kind::find(UNASKED).filter(|_| could)?;
    match mount.holds.contains(&UNASKED) {
        false => Some(decision(kind, None)),
        // Advice, and no refusal: the provider may have reasons of its own.
        true => Some(Decision { verdict: Verdict::Allowed, cure: Some(other(mount)), ..decision(kind, None) }),
    }
}

/// What to do about a need that only the operator can name.
fn unknown(mount: &Mount, need: &Need) -> Option<String> {
    let why = need.why.as_ref().map(|why| format!(", for: \"{why}\"")).unwrap_or_default();
    Some(format!("the provider needs a grant of {}{why}; add it to [mounts.{}]", need.kind, mount.name))
}

/// What to do where directories were granted, and the provider does not say which it looks for.
fn other(mount: &Mount) -> String {
    let held = mount.written.granted.iter().filter(|(kind, _)| *kind == UNASKED);
    let held: Vec<&str> = held.filter_map(|(_, line)| line.split(" = ").next()).collect();
    format!(
        "the mount was granted {}; if the provider's words name another path, grant a directory as that one, in fs of [mounts.{}]",
        held.join(", "),
        mount.name
    )
}

/// Says of a denial that the operator has granted more since, which takes a restart.
pub(super) fn waiting(error: ReadError) -> ReadError {
    const CURE: &str = "its operator has granted it more since, and this belljar was started without that: restart belljar, whose second wall has to be raised anew";
    match error {
        ReadError::Denied { message, denial: Some(denial) } => {
            ReadError::Denied { message, denial: Some(Decision { cure: Some(CURE.to_owned()), ..denial }) }
        }
        other => other,
    }
}

/// Adds to a provider's words what belljar knows: what it refused during the call, what was granted and is not there, or
/// else which grant the provider may have missed.
pub(super) fn explain(error: ReadError, trail: &Trail, mount: &Mount) -> ReadError {
    let refused = trail.first(Verdict::Denied);
    let message = match error {
        ReadError::Denied { .. } | ReadError::NotFound if let Some(absent) = trail.first(Verdict::Unavailable) => {
            let cure = absent.cure.as_deref().unwrap_or_default();
            return ReadError::Unavailable(format!(
                "what was granted as {} {} cannot be opened; {cure}",
                absent.grant,
                text::quoted(&absent.what, 200)
            ));
        }
        ReadError::Denied { message, denial: None } => message,
        // Nobody knows whether it is in a directory that was withheld: only someone who is asked can tell.
        ReadError::NotFound if trail.asks().iter().any(|ask| ask.grant == "fs") => String::new(),
        // Whatever a provider calls it: what was refused to it is why, and has a cure.
        ReadError::Provider(message) | ReadError::Down(message) if refused.is_some() => message,
        other => return other,
    };
    let denial = refused.cloned().or_else(|| missing(mount));
    ReadError::Denied { message, denial }
}
