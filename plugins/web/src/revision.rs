//! Whether something changed, as cheaply as upstream allows: by its validators, asked for by HEAD; by its contents where
//! there are none.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_guest::{Error, Result};
use url::Url;

use crate::address::Place;
use crate::config::Entry;
use crate::feed::hash;
use crate::http::{self, Answer, Method, Request, Upstream};
use crate::{present, request};

/// Something whose revision is wanted.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) place: Place,
}

/// The revisions of all of `wanted`, in order. Each place is asked once, however often it is wanted.
pub(crate) fn of(upstream: &dyn Upstream, wanted: &[Wanted<'_>], within: Option<Duration>) -> Vec<Result<String>> {
    let mut heads: BTreeMap<String, Request> = BTreeMap::new();
    let mut gets: BTreeMap<String, Request> = BTreeMap::new();
    for one in wanted {
        // Whether an item is still there, only the feed itself tells.
        let (method, queue) =
            if one.place.item.is_some() { (Method::Get, &mut gets) } else { (Method::Head, &mut heads) };
        queue.insert(key(one), request(one.entry, method, one.place.url.clone()));
    }
    heads.retain(|key, _| !gets.contains_key(key));
    let mut known: BTreeMap<String, Result<Known>> = BTreeMap::new();
    let answers = http::fetch(upstream, heads.values().cloned().collect(), within);
    for ((key, head), answer) in heads.into_iter().zip(answers) {
        match answer.ok().and_then(|answer| validators(&answer)) {
            Some(revision) => {
                known.insert(key, Ok(Known { revision, answer: None }));
            }
            // Many know no HEAD, or say something else to it. What GET says counts.
            None => {
                gets.insert(key, Request { method: Method::Get, ..head });
            }
        }
    }
    let answers = http::fetch(upstream, gets.values().cloned().collect(), within);
    for ((key, _), answer) in gets.into_iter().zip(answers) {
        let answer = answer.map(|answer| {
            let revision = validators(&answer).unwrap_or_else(|| contents(&answer.body));
            Known { revision, answer: Some(answer) }
        });
        known.insert(key, answer);
    }
    wanted.iter().map(|one| revision(one, known.get(&key(one)))).collect()
}

/// What is known of a place.
#[derive(Debug)]
struct Known {
    revision: String,
    answer: Option<Answer>,
}

/// What makes two requests the same.
fn key(wanted: &Wanted<'_>) -> String {
    format!("{} {:?} {:?}", wanted.place.url, wanted.entry.kind, wanted.entry.headers)
}

fn revision(wanted: &Wanted<'_>, known: Option<&Result<Known>>) -> Result<String> {
    let known = known.ok_or_else(|| Error::failed("it was not asked for"))?.as_ref().map_err(Clone::clone)?;
    let Some(id) = &wanted.place.item else {
        return Ok(known.revision.clone());
    };
    let answer = known.answer.as_ref().ok_or_else(|| Error::failed("the feed was not asked for"))?;
    let feed = present::feed(answer)?;
    let item = feed.items.iter().find(|item| item.id == *id).ok_or(Error::NotFound)?;
    Ok(contents(item.text(&answer.url)?.as_bytes()))
}

/// The revision by what upstream says of it. Where it came from is part of it: two places may share a tag.
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
