//! The list of revoked versions beside a source. A list can only take versions back, so nobody needs to sign it. A list that is
//! there and cannot be read is a failure: otherwise whoever damages it would bring the versions back.

use belljar_fetch_protocol::{
    Failure, FailureKind, REVOKED_TAG, REVOKED_TYPE, RevokedEntry, RevokedList, RevokedVersions,
};
use http::StatusCode;
use serde::Deserialize;

use crate::artifact::Document;
use crate::digest::Sha256;
use crate::failure::{Outcome, failure};
use crate::http::{Call, Client};
use crate::registry::{MAX_DOCUMENT, Registry};
use crate::source::File;
use crate::text;

/// The most entries of a list. One entry with a range stands for many versions.
const MAX_ENTRIES: usize = 256;

/// The most characters of a version, or of a range.
const MAX_VERSION: usize = 100;

/// What lies behind the path of a file's URL.
const BESIDE: &str = ".revoked.json";

/// The list on the wire. Unknown keys are ignored, so that later versions can add some.
#[derive(Deserialize)]
struct WrittenList {
    revoked: Vec<WrittenEntry>,
}

#[derive(Deserialize)]
struct WrittenEntry {
    manifest: Option<String>,
    component: Option<String>,
    version: Option<String>,
    reason: Option<String>,
    instead: Option<String>,
}

/// The list under the tag `revoked` of a repository.
pub(crate) async fn of_repository(registry: &mut Registry) -> Outcome<RevokedList> {
    let Some(fetched) = registry.manifest_if_there(REVOKED_TAG).await? else { return Ok(RevokedList::default()) };
    let Document::Manifest(manifest) = fetched.document else {
        return Err(wrong(&format!("the tag \"{REVOKED_TAG}\" is an index")));
    };
    let [layer] = manifest.layers.as_slice() else {
        return Err(wrong(&format!("its artifact has {} layers, expected 1", manifest.layers.len())));
    };
    if manifest.artifact_type.as_deref() != Some(REVOKED_TYPE) || layer.media_type != REVOKED_TYPE {
        let kind = text::clean(manifest.artifact_type.as_deref().unwrap_or(&layer.media_type), text::NAME);
        return Err(wrong(&format!("its type is \"{kind}\", expected \"{REVOKED_TYPE}\"")));
    }
    parse(&registry.document(layer, "the list of revoked versions").await?)
}

/// The list beside a file.
pub(crate) async fn of_file(client: &mut Client, file: &File) -> Outcome<RevokedList> {
    let url = file.url.beside(BESIDE);
    let mut answer = client.send(Call::get(url, "application/json")).await?;
    match answer.status {
        StatusCode::OK => parse(&answer.body(MAX_DOCUMENT, "the list of revoked versions").await?),
        // Stores of files answer 403 for what is not there.
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN => Ok(RevokedList::default()),
        other => {
            let problem = format!("\"{}\" answers {}", answer.url.shown(), other.as_u16());
            Err(failure(FailureKind::Network, problem, "try again later"))
        }
    }
}

fn parse(bytes: &[u8]) -> Outcome<RevokedList> {
    let list: WrittenList = serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()))?;
    if list.revoked.len() > MAX_ENTRIES {
        let problem = format!("it has {} entries, at most {MAX_ENTRIES} are read", list.revoked.len());
        return Err(wrong(&problem));
    }
    let entries = list.revoked.into_iter().enumerate().map(|(at, entry)| {
        entry.checked().ok_or_else(|| {
            let one = "expected one of \"manifest\", \"component\" (sha256:HEX) and \"version\"";
            wrong(&format!("entry {}: {one}", at + 1))
        })
    });
    Ok(RevokedList { is_there: true, entries: entries.collect::<Outcome<_>>()? })
}

impl WrittenEntry {
    /// The entry with cleaned texts. `None` if it does not say which versions it is about.
    fn checked(self) -> Option<RevokedEntry> {
        let digest = |digest: String| Some(digest.parse::<Sha256>().ok()?.to_string());
        let what = match (self.manifest, self.component, self.version) {
            (Some(manifest), None, None) => RevokedVersions::Manifest(digest(manifest)?),
            (None, Some(component), None) => RevokedVersions::Component(digest(component)?),
            (None, None, Some(version)) => {
                let is_clean = !version.is_empty() && text::clean(&version, MAX_VERSION) == version;
                RevokedVersions::Version(is_clean.then_some(version)?)
            }
            _ => return None,
        };
        let clean = |words: Option<String>, max| words.and_then(|words| text::clean_some(&words, max));
        Some(RevokedEntry { what, reason: clean(self.reason, text::NAME), instead: clean(self.instead, MAX_VERSION) })
    }
}

fn wrong(problem: &str) -> Box<Failure> {
    let problem = format!("the list of revoked versions cannot be read: {problem}");
    failure(FailureKind::Content, problem, "ask the publisher to correct it: a list that is there must be readable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_one_thing_and_its_texts_are_cleaned() {
        let digest = Sha256::of(b"x").to_string();
        let list = serde_json::json!({ "made": [1], "revoked": [
            { "version": "<1.4.2", "reason": "leaks\n\u{1b}[31m keys\u{202e}", "instead": "1.4.2", "severity": 9 },
            { "manifest": digest }, { "component": digest, "reason": "\u{200b}" },
        ] });
        let list = parse(list.to_string().as_bytes()).unwrap();
        let entry = |what, reason: Option<&str>, instead: Option<&str>| RevokedEntry {
            what,
            reason: reason.map(str::to_owned),
            instead: instead.map(str::to_owned),
        };
        assert_eq!(
            list.entries,
            [
                entry(RevokedVersions::Version("<1.4.2".into()), Some("leaks [31m keys"), Some("1.4.2")),
                entry(RevokedVersions::Manifest(digest.clone()), None, None),
                entry(RevokedVersions::Component(digest), None, None),
            ]
        );
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (list, why) in [
            ("", "EOF"),
            ("[]", "invalid"),
            ("{}", "missing field `revoked`"),
            (r#"{"revoked":{}}"#, "invalid type"),
            (r#"{"revoked":[{}]}"#, "entry 1: expected one of"),
            (r#"{"revoked":[{"version":"1"},{"digest":"sha256:00"}]}"#, "entry 2: expected one of"),
            (r#"{"revoked":[{"version":"1","manifest":"sha256:00"}]}"#, "entry 1"),
            (r#"{"revoked":[{"manifest":"sha256:00"}]}"#, "entry 1"),
            (r#"{"revoked":[{"version":""}]}"#, "entry 1"),
            (r#"{"revoked":[{"version":"1\u0000"}]}"#, "entry 1"),
            (r#"{"revoked":[{"version":1}]}"#, "invalid type"),
            (r#"{"revoked":[{"version":"1","reason":{}}]}"#, "invalid type"),
        ] {
            let error = parse(list.as_bytes()).unwrap_err();
            assert!(error.problem.contains(why), "{list}: {error:?}");
        }
        let many = vec![r#"{"version":"1"}"#; MAX_ENTRIES + 1].join(",");
        assert!(parse(format!("{{\"revoked\":[{many}]}}").as_bytes()).unwrap_err().problem.contains("257 entries"));
    }
}
