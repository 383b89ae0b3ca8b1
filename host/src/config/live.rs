//! How what changes is followed: `[watch]`, and for how long a mount's answers may be served again.

use std::time::Duration;

use super::section::{Section, Span};
use crate::model::text;

/// `[watch]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whether components and the configuration are read again when they change.
    pub reload: bool,
    /// How often the revisions of what clients watch are asked for, where a provider tells them.
    pub poll: Duration,
    /// How often what clients watch is read and compared, where a provider tells no revisions.
    pub reread: Duration,
    /// How often it is asked whether a list has changed, while a client waits for that; and how old a kept list may be.
    pub lists: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            reload: true,
            poll: Duration::from_secs(2),
            reread: Duration::from_secs(30),
            lists: Duration::from_secs(60),
        }
    }
}

/// Less is a way to keep a processor busy; more is as good as never.
const SPANS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);

pub(super) fn read_watch(mut section: Section) -> Result<Watch, String> {
    let mut watch = Watch::default();
    watch.reload = section.take("reload", "true or false")?.unwrap_or(watch.reload);
    for (key, into) in [("poll", &mut watch.poll), ("reread", &mut watch.reread), ("lists", &mut watch.lists)] {
        if let Some(Span(value)) = section.take(key, "a time such as \"2s\"")? {
            if !SPANS.contains(&value) {
                return Err(section.wrong(key, ": expected 100ms to 1day"));
            }
            *into = value;
        }
    }
    section.finish(&[])?;
    Ok(watch)
}

/// What may be done with a mount's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// For how long an answer may be served again at the most, whatever its provider proposes; zero: not at all.
    pub most: Duration,
    /// Whether what lies between belljar and its clients may serve an answer to others than the one who asked.
    pub public: bool,
}

impl Default for Cache {
    fn default() -> Self {
        Self { most: Duration::from_secs(3600), public: false }
    }
}

pub(super) fn read_cache(section: &mut Section) -> Result<Cache, String> {
    const TIMES: &str = "\"off\" or the longest time that an answer is served again, such as \"10m\"";
    const SCOPES: &str = "\"private\" or \"public\"";
    let mut cache = Cache::default();
    if let Some(word) = section.take::<String>("cache", TIMES)? {
        cache.most = match word.as_str() {
            "off" => Duration::ZERO,
            time => humantime::parse_duration(time).ok().filter(|time| time <= SPANS.end()).ok_or_else(|| {
                section.wrong("cache", format_args!(" = {:?}: expected {TIMES}, at most 1day", text::excerpt(time, 80)))
            })?,
        };
    }
    cache.public = match section.take::<String>("cache-scope", SCOPES)?.as_deref() {
        None | Some("private") => false,
        Some("public") => true,
        Some(other) => {
            let other = text::excerpt(other, 80);
            return Err(section.wrong("cache-scope", format_args!(" = {other:?}: expected {SCOPES}")));
        }
    };
    Ok(cache)
}
