//! Attacks through revisions. Each value of `HOSTILE_REVISIONS` selects one; without a value, the revisions are true.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use belljar_guest::{Body, Result};

use crate::{burn, listing, reading, setting, speech};

/// The length of a revision that is too long: at most 256 bytes are allowed.
const LONG: usize = 10_000;

/// The number of results of `many`, for any number of references.
const MANY: usize = 100_000;

/// `catalog-revision`, as `HOSTILE_CATALOG` says, or `HOSTILE_REVISIONS` where that is not set.
pub(crate) fn catalog(how: &str) -> Result<String> {
    wrong_revision(how).unwrap_or_else(honest_catalog)
}

/// The revision of one resource, as `HOSTILE_REVISIONS` says.
pub(crate) fn resource(how: &str, reference: &str) -> Result<String> {
    wrong_revision(how).unwrap_or_else(|| honest(reference))
}

/// `resource-revisions`, as `HOSTILE_REVISIONS` says. Some attacks return a wrong number of results.
pub(crate) fn resources(how: &str, references: &[String]) -> Vec<Result<String>> {
    match how {
        "short" => references.iter().skip(1).map(|reference| honest(reference)).collect(),
        "none" => Vec::new(),
        "many" => (0..MANY).map(|n| Ok(n.to_string())).collect(),
        // Every second result is an error.
        "half" => {
            let half =
                |(n, reference): (usize, &String)| if n % 2 == 0 { honest(reference) } else { failure("failed") };
            references.iter().enumerate().map(half).collect()
        }
        _ => references.iter().map(|reference| resource(how, reference)).collect(),
    }
}

/// The wrong revision that `how` selects. `None` for a true one.
fn wrong_revision(how: &str) -> Option<Result<String>> {
    Some(match how {
        "same" => Ok("same".to_owned()),
        "change" => Ok(listing::nanoseconds().to_string()),
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            failure("failed")
        }
        "long" => Ok("r".repeat(LONG)),
        "controls" => Ok(speech::CONTROLS.to_owned()),
        "not-found" | "unavailable" | "failed" => failure(how),
        _ => return None,
    })
}

/// The error of this kind.
fn failure(kind: &str) -> Result<String> {
    Err(speech::error(kind))
}

/// A true revision: a hash of the result of a read.
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

/// A true revision of the lists: a hash of the settings. For a list in a file it includes the file, and for a changing
/// list the time.
fn honest_catalog() -> Result<String> {
    let (list, templates) = (setting("HOSTILE_LIST"), setting("HOSTILE_TEMPLATES"));
    let more = match list.as_str() {
        "changing" => listing::nanoseconds().to_string(),
        path if path.starts_with('/') => listing::lines(path)?,
        _ => String::new(),
    };
    let mut hasher = DefaultHasher::new();
    (list, templates, more).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}
