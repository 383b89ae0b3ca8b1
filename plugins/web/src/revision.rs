//! Computes revisions as cheaply as upstream allows: from the validators of a HEAD request, or else from the contents.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_guest::{Error, Result};
use url::Url;

use crate::address::Place;
use crate::config::Entry;
use crate::feed::hash;
use crate::http::{self, Answer, Method, Request, Upstream};
use crate::{present, request};

/// A place whose revision is wanted.
#[derive(Debug)]
pub(crate) struct RevisionRequest<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) place: Place,
}

/// The revisions of `wanted`, in order. Each distinct request is sent once.
pub(crate) fn fetch_revisions(
    upstream: &dyn Upstream,
    wanted: &[RevisionRequest<'_>],
    within: Option<Duration>,
) -> Vec<Result<String>> {
    let mut heads: BTreeMap<String, Request> = BTreeMap::new();
    let mut gets: BTreeMap<String, Request> = BTreeMap::new();
    for one in wanted {
        // Only the feed itself shows whether an item still exists.
        let (method, queue) =
            if one.place.item.is_some() { (Method::Get, &mut gets) } else { (Method::Head, &mut heads) };
        queue.insert(key(one), request(one.entry, method, one.place.url.clone()));
    }
    heads.retain(|key, _| !gets.contains_key(key));
    let mut known: BTreeMap<String, Result<KnownRevision>> = BTreeMap::new();
    let answers = http::fetch(upstream, heads.values().cloned().collect(), within);
    for ((key, head), answer) in heads.into_iter().zip(answers) {
        match answer.ok().and_then(|answer| validators(&answer)) {
            Some(revision) => {
                known.insert(key, Ok(KnownRevision { revision, answer: None }));
            }
            // Many servers do not support HEAD or answer it differently, so GET decides.
            None => {
                gets.insert(key, Request { method: Method::Get, ..head });
            }
        }
    }
    let answers = http::fetch(upstream, gets.values().cloned().collect(), within);
    for ((key, _), answer) in gets.into_iter().zip(answers) {
        let answer = answer.map(|answer| {
            let revision = validators(&answer).unwrap_or_else(|| contents(&answer.body));
            KnownRevision { revision, answer: Some(answer) }
        });
        known.insert(key, answer);
    }
    wanted.iter().map(|one| revision(one, known.get(&key(one)))).collect()
}

/// The revision of a place, and the answer if a GET request was sent.
#[derive(Debug)]
struct KnownRevision {
    revision: String,
    answer: Option<Answer>,
}

/// A key that is equal for equal requests.
fn key(wanted: &RevisionRequest<'_>) -> String {
    format!("{} {:?} {:?}", wanted.place.url, wanted.entry.kind, wanted.entry.headers)
}

fn revision(wanted: &RevisionRequest<'_>, known: Option<&Result<KnownRevision>>) -> Result<String> {
    let known = known
        .ok_or_else(|| Error::failed("internal error: the place was not requested"))?
        .as_ref()
        .map_err(Clone::clone)?;
    let Some(id) = &wanted.place.item else {
        return Ok(known.revision.clone());
    };
    let answer = known.answer.as_ref().ok_or_else(|| Error::failed("internal error: the feed was not requested"))?;
    let feed = present::feed(answer)?;
    let item = feed.items.iter().find(|item| item.id == *id).ok_or(Error::NotFound)?;
    Ok(contents(item.text(&answer.url)?.as_bytes()))
}

/// The revision from the validators of an answer. Includes the URL, because two places may have the same entity tag.
fn validators(answer: &Answer) -> Option<String> {
    let url: &Url = &answer.url;
    let (kind, value) = match (answer.headers.get("etag"), answer.headers.get("last-modified")) {
        (Some(tag), _) if !tag.is_empty() => ("tag", tag),
        (_, Some(time)) if !time.is_empty() => ("time", time),
        _ => return None,
    };
    Some(format!("{kind}-{:016x}", hash(&[url.as_str(), value])))
}

fn contents(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("hash-{:016x}", hash(&[&text]))
}
