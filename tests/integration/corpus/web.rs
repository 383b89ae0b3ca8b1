//! `plugins/web` over feeds of every version, compared with feedparser.

use std::collections::HashSet;

use belljar_tests::{Client, Era, Stdio};
use belljar_upstream::{Upstream, answer};
use serde_json::Value;

use super::{cases, judge_all};
use crate::providers::support;

#[test]
fn feeds_agree_with_feedparser() {
    let folder = support::empty_directory("corpus-web");
    let Some(cases) = cases("web", &folder) else { return };
    let served = folder.clone();
    let upstream = Upstream::plain(move |asked| {
        let name = asked.path().rsplit('/').next().unwrap_or_default();
        let Ok(file) = std::fs::read(served.join(name)) else { return answer("404 Not Found", "", "") };
        let line = file.iter().position(|byte| *byte == b'\n').expect("a line with the content type");
        let media = String::from_utf8_lossy(&file[..line]);
        answer("200 OK", &format!("content-type: {media}\r\n"), &file[line + 1..])
    });
    let host = upstream.address();
    let site = support::site(
        "web",
        &format!(
            "env = {{ WEB = \"\"\"\n[feed]\nurl = \"http://{host}/feeds/{{+path}}\"\n\
         kind = \"feed\"\n\"\"\" }}\n\n[[mounts.web.http]]\norigin = \"http://{host}\"\nnetworks = [\"127.0.0.1\"]\n"
        ),
    );
    let mut client = site.stdio(Era::Stateless);
    judge_all("web", &cases, |case| {
        let read = |client: &mut Client<Stdio>, reference: &str| {
            let read = client.read(&format!("belljar://web/{reference}")).map_err(|error| error.to_string())?;
            Ok::<String, String>(read["contents"][0]["text"].as_str().unwrap_or_default().to_owned())
        };
        let overview = read(&mut client, &case.reference)?;
        let mut items = Vec::new();
        for link in overview.split("[text](").skip(1) {
            items.push(read(&mut client, &format!("feed/{}", link.split(')').next().unwrap_or_default()))?);
        }
        let expected = case.expected.as_array().expect("entries");
        if items.len() != expected.len() {
            return Err(format!("{} items, expected {}", items.len(), expected.len()));
        }
        for entry in expected {
            let differences = items.iter().map(|item| difference(entry, item, &host.to_string()));
            if let Some(fewest) = differences.min_by_key(Vec::len).filter(|fewest| !fewest.is_empty()) {
                return Err(format!("no item has {}, of {items:?}", fewest.join(" and ")));
            }
        }
        Ok(())
    });
    client.close();
}

/// What of an entry is not in the text of an item.
fn difference(entry: &Value, item: &str, host: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |key: &str| entry[key].as_array().into_iter().flatten();
    let mut missing = Vec::new();
    let title = text(&entry["title"]);
    let shown = item.lines().next().unwrap_or_default();
    if !title.is_empty() && joined(&title) != joined(shown) {
        missing.push(format!("the title {title:?}"));
    }
    let has = |what: &str| item.contains(&what.replace("corpus.example", host));
    let exact = list("dates").chain(list("enclosures")).map(text).chain([text(&entry["link"])]);
    missing.extend(exact.filter(|what| !has(what)).map(|what| format!("{what:?}")));
    let whole = joined(item);
    let names = list("categories").map(text).chain([text(&entry["author"])]);
    missing.extend(names.filter(|name| !whole.contains(&joined(name))).map(|name| format!("{name:?}")));
    let words: HashSet<String> = words(item).into_iter().collect();
    let is_in = |content: &Value| content.as_array().unwrap().iter().all(|word| words.contains(&text(word)));
    if !list("words").any(is_in) {
        missing.push(format!("the words {}", entry["words"]));
    }
    missing
}

/// The words of a Markdown text, without its links and escapes.
fn words(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut pieces = text.split("](");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        plain.push(' ');
        plain.push_str(piece.split_once(')').map_or("", |(_, after)| after));
    }
    let plain = plain.replace('\\', "");
    plain.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn joined(text: &str) -> String {
    words(text).concat().to_lowercase()
}
