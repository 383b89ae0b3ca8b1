//! Computes the lifetime of a cached answer (RFC 9111). The cache is private: all calls of a mount have the same rights.
//! There is no heuristic lifetime: an answer without an explicit lifetime is not cached.

use std::time::{Duration, SystemTime};

use crate::http::Headers;

/// The lifetime that headers state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatedLifetime {
    /// The answer may be cached for this time.
    For(Duration),
    /// The answer must not be cached.
    Never,
    /// The headers state nothing.
    Nothing,
}

/// The lifetime that `headers` state at the time `now`.
pub(crate) fn stated_lifetime(headers: &Headers, now: SystemTime) -> StatedLifetime {
    let mut max_age = None;
    let directives = headers.all("cache-control").flat_map(|value| value.split(','));
    for directive in directives {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            // `no-cache="field"` applies only to that field.
            "no-store" => return StatedLifetime::Never,
            "no-cache" if value.is_empty() => return StatedLifetime::Never,
            // The first `max-age` counts; a malformed one means stale (section 4.2.1).
            "max-age" if max_age.is_none() => max_age = Some(value.trim().trim_matches('"').parse().unwrap_or(0)),
            _ => {}
        }
    }
    if headers.all("vary").any(|fields| fields.split(',').any(|field| field.trim() == "*")) {
        return StatedLifetime::Never;
    }
    let age = headers.get("age").and_then(|age| age.parse().ok()).unwrap_or(0);
    let lifetime = match (max_age, headers.get("expires")) {
        (Some(seconds), _) => Duration::from_secs(seconds),
        (None, Some(expires)) => {
            let date = headers.get("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
            let left = httpdate::parse_http_date(expires).ok().and_then(|expires| expires.duration_since(date).ok());
            // A past or malformed time (`Expires: 0`) means stale.
            left.unwrap_or_default()
        }
        (None, None) if headers.get("pragma").is_some_and(|value| value.contains("no-cache")) => {
            return StatedLifetime::Never;
        }
        (None, None) => return StatedLifetime::Nothing,
    };
    match lifetime.saturating_sub(Duration::from_secs(age)) {
        Duration::ZERO => StatedLifetime::Never,
        left => StatedLifetime::For(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime_of(fields: &[(&str, &str)]) -> StatedLifetime {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        // Tue, 28 Jul 2026 12:30:00 GMT
        stated_lifetime(&Headers::new(fields), SystemTime::UNIX_EPOCH + Duration::from_secs(1_785_241_800))
    }

    fn seconds(time: u64) -> StatedLifetime {
        StatedLifetime::For(Duration::from_secs(time))
    }

    #[test]
    fn the_age_is_subtracted_from_max_age() {
        assert_eq!(lifetime_of(&[("Cache-Control", "public, max-age=300")]), seconds(300));
        assert_eq!(lifetime_of(&[("cache-control", "max-age=\"300\", must-revalidate"), ("age", "100")]), seconds(200));
        assert_eq!(lifetime_of(&[("cache-control", "max-age=300"), ("age", "300")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("cache-control", "private"), ("cache-control", "MAX-AGE=5")]), seconds(5));
        assert_eq!(lifetime_of(&[("cache-control", "max-age=lots")]), StatedLifetime::Never);
        // A private cache ignores `s-maxage`.
        assert_eq!(lifetime_of(&[("cache-control", "s-maxage=9, max-age=5")]), seconds(5));
    }

    #[test]
    fn the_date_is_subtracted_from_expires() {
        let expires = ("expires", "Tue, 28 Jul 2026 13:00:00 GMT");
        assert_eq!(lifetime_of(&[expires]), seconds(1800));
        assert_eq!(lifetime_of(&[expires, ("date", "Tue, 28 Jul 2026 12:59:00 GMT")]), seconds(60));
        assert_eq!(lifetime_of(&[expires, ("cache-control", "max-age=7")]), seconds(7));
        assert_eq!(lifetime_of(&[("expires", "0")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("expires", "Tue, 28 Jul 2026 12:00:00 GMT")]), StatedLifetime::Never);
    }

    #[test]
    fn uncacheable_answers_are_not_cached() {
        assert_eq!(lifetime_of(&[("cache-control", "max-age=300, no-store")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("cache-control", "no-cache, max-age=300")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("cache-control", "no-cache=\"set-cookie\", max-age=300")]), seconds(300));
        assert_eq!(lifetime_of(&[("cache-control", "max-age=300"), ("vary", "accept, *")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("pragma", "no-cache")]), StatedLifetime::Never);
        assert_eq!(lifetime_of(&[("etag", "\"a\"")]), StatedLifetime::Nothing);
        assert_eq!(lifetime_of(&[]), StatedLifetime::Nothing);
    }
}
