//! Tells revisions: the truth, when nothing is set, and each setting is one way not to.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use belljar_guest::{Body, Result};

use crate::{burn, listing, reading, setting, speech};

/// What a revision may not be: ten thousand bytes, of which 256 are allowed.
const LONG: usize = 10_000;

/// How many results `many` gives, whatever it was asked for.
const MANY: usize = 100_000;

/// `catalog-revision`, as `IMP_CATALOG` says, or `IMP_REVISIONS` where that is not set.
pub(crate) fn catalog(how: &str) -> Result<String> {
    lie(how).unwrap_or_else(honest_catalog)
}

/// The revision of one resource, as `IMP_REVISIONS` says.
pub(crate) fn resource(how: &str, reference: &str) -> Result<String> {
    lie(how).unwrap_or_else(|| honest(reference))
}

/// `resource-revisions`: some of the lies are in the number of results.
pub(crate) fn resources(how: &str, references: &[String]) -> Vec<Result<String>> {
    match how {
        "short" => references.iter().skip(1).map(|reference| honest(reference)).collect(),
        "none" => Vec::new(),
        "many" => (0..MANY).map(|n| Ok(n.to_string())).collect(),
        // Every second one is right.
        "half" => {
            let half = |(n, reference): (usize, &String)| if n % 2 == 0 { honest(reference) } else { said("failed") };
            references.iter().enumerate().map(half).collect()
        }
        _ => references.iter().map(|reference| resource(how, reference)).collect(),
    }
}

/// What `how` has it say instead of the truth.
fn lie(how: &str) -> Option<Result<String>> {
    Some(match how {
        "same" => Ok("same".to_owned()),
        "change" => Ok(listing::nanoseconds().to_string()),
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            said("failed")
        }
        "long" => Ok("r".repeat(LONG)),
        "controls" => Ok(speech::CONTROLS.to_owned()),
        "not-found" | "unavailable" | "failed" => said(how),
        _ => return None,
    })
}

fn said(kind: &str) -> Result<String> {
    Err(speech::error(kind))
}

/// Derived from what a read gives, by reading it.
fn honest(reference: &str) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for contents in reading(reference)?.contents {
        contents.reference.hash(&mut hasher);
        contents.mime_type.hash(&mut hasher);
        contents.meta.hash(&mut hasher);
        match contents.body {
            Body::Text(text) => text.hash(&mut hasher),
            Body::Blob(bytes) => bytes.hash(&mut hasher),
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The settings decide what is listed, apart from a list that lies in a file, and from those that are not the same twice.
fn honest_catalog() -> Result<String> {
    let (list, templates) = (setting("IMP_LIST"), setting("IMP_TEMPLATES"));
    let more = match list.as_str() {
        "changing" => listing::nanoseconds().to_string(),
        path if path.starts_with('/') => listing::lines(path)?,
        _ => String::new(),
    };
    let mut hasher = DefaultHasher::new();
    (list, templates, more).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}
