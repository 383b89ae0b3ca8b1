//! For how long an answer may be served again (RFC 9111), as a private cache sees it: all calls of a mount ask with the
//! same rights. Nothing is guessed: what states no time is not kept.

use std::time::{Duration, SystemTime};

use crate::http::Headers;

/// What a header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stated {
    /// For this long.
    For(Duration),
    /// Not at all.
    Never,
    /// Nothing.
    Nothing,
}

/// What `headers` state at the time `now`.
pub(crate) fn stated(headers: &Headers, now: SystemTime) -> Stated {
    let mut max_age = None;
    let directives = headers.all("cache-control").flat_map(|value| value.split(','));
    for directive in directives {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            // `no-cache="field"` is about a field alone.
            "no-store" => return Stated::Never,
            "no-cache" if value.is_empty() => return Stated::Never,
            // The first one counts; one that is no number is stale (section 4.2.1).
            "max-age" if max_age.is_none() => max_age = Some(value.trim().trim_matches('"').parse().unwrap_or(0)),
            _ => {}
        }
    }
    if headers.all("vary").any(|fields| fields.split(',').any(|field| field.trim() == "*")) {
        return Stated::Never;
    }
    let age = headers.get("age").and_then(|age| age.parse().ok()).unwrap_or(0);
    let lifetime = match (max_age, headers.get("expires")) {
        (Some(seconds), _) => Duration::from_secs(seconds),
        (None, Some(expires)) => {
            let date = headers.get("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
            let left = httpdate::parse_http_date(expires).ok().and_then(|expires| expires.duration_since(date).ok());
            // A time that is past, or no time (`Expires: 0`), is: stale.
            left.unwrap_or_default()
        }
        (None, None) if headers.get("pragma").is_some_and(|value| value.contains("no-cache")) => return Stated::Never,
        (None, None) => return Stated::Nothing,
    };
    match lifetime.saturating_sub(Duration::from_secs(age)) {
        Duration::ZERO => Stated::Never,
        left => Stated::For(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Stated {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        // Tue, 28 Jul 2026 12:30:00 GMT
        stated(&Headers::new(fields), SystemTime::UNIX_EPOCH + Duration::from_secs(1_785_241_800))
    }

    fn seconds(time: u64) -> Stated {
        Stated::For(Duration::from_secs(time))
    }

    #[test]
    fn max_age_counts_less_the_age() {
        assert_eq!(of(&[("Cache-Control", "public, max-age=300")]), seconds(300));
        assert_eq!(of(&[("cache-control", "max-age=\"300\", must-revalidate"), ("age", "100")]), seconds(200));
        assert_eq!(of(&[("cache-control", "max-age=300"), ("age", "300")]), Stated::Never);
        assert_eq!(of(&[("cache-control", "private"), ("cache-control", "MAX-AGE=5")]), seconds(5));
        assert_eq!(of(&[("cache-control", "max-age=lots")]), Stated::Never);
        // A private cache: `s-maxage` is for others.
        assert_eq!(of(&[("cache-control", "s-maxage=9, max-age=5")]), seconds(5));
    }

    #[test]
    fn expires_counts_from_the_date() {
        let expires = ("expires", "Tue, 28 Jul 2026 13:00:00 GMT");
        assert_eq!(of(&[expires]), seconds(1800));
        assert_eq!(of(&[expires, ("date", "Tue, 28 Jul 2026 12:59:00 GMT")]), seconds(60));
        assert_eq!(of(&[expires, ("cache-control", "max-age=7")]), seconds(7));
        assert_eq!(of(&[("expires", "0")]), Stated::Never);
        assert_eq!(of(&[("expires", "Tue, 28 Jul 2026 12:00:00 GMT")]), Stated::Never);
    }

    #[test]
    fn what_may_not_be_kept_is_not() {
        assert_eq!(of(&[("cache-control", "max-age=300, no-store")]), Stated::Never);
        assert_eq!(of(&[("cache-control", "no-cache, max-age=300")]), Stated::Never);
        assert_eq!(of(&[("cache-control", "no-cache=\"set-cookie\", max-age=300")]), seconds(300));
        assert_eq!(of(&[("cache-control", "max-age=300"), ("vary", "accept, *")]), Stated::Never);
        assert_eq!(of(&[("pragma", "no-cache")]), Stated::Never);
        assert_eq!(of(&[("etag", "\"a\"")]), Stated::Nothing);
        assert_eq!(of(&[]), Stated::Nothing);
    }
}
