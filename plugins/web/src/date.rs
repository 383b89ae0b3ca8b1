//! Parses the dates of feeds, which often violate their standards. The feed library parses them with regular expressions.
//! Compiling these costs more than parsing the rest of a feed, and each call runs in a new sandbox.

use chrono::{DateTime, NaiveDate, Utc};

/// Parses a date of RSS (RFC 822 and its successors) or Atom (RFC 3339), and common deviations.
pub(crate) fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if text.as_bytes().get(4) == Some(&b'-') { iso(text) } else { mail(text) }
}

/// Parses `2026-07-28T12:30:00.5+02:00`; also with a space, without seconds, colon or zone, and a date alone.
fn iso(text: &str) -> Option<DateTime<Utc>> {
    let Some((day, time)) = text.split_once(['T', 't', ' ']) else {
        return Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc());
    };
    let time = time.trim().replace(['Z', 'z'], "+00:00").replace(' ', "");
    let time = if time.contains(['+', '-']) { time } else { time + "+00:00" };
    let formats = ["%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%dT%H:%M%z"];
    let text = format!("{day}T{time}");
    formats.iter().find_map(|format| DateTime::parse_from_str(&text, format).ok()).map(|time| time.to_utc())
}

/// Parses `Tue, 28 Jul 2026 12:30:00 GMT`; also with a wrong or unknown weekday, a long month name, month before day, and
/// with `UTC`, `Z` or no zone.
fn mail(text: &str) -> Option<DateTime<Utc>> {
    let text = text.split_once(',').map_or(text, |(before, after)| {
        // In "July 28, 2026 ...", the comma does not end a weekday.
        if before.contains(char::is_numeric) { text } else { after }
    });
    let mut words = text.split([' ', ',', '\t', '\n']).filter(|word| !word.is_empty());
    let (mut day, mut month) = (words.next()?, words.next()?);
    if day.starts_with(char::is_alphabetic) {
        (day, month) = (month, day);
    }
    let year = words.next()?;
    let time = words.next().unwrap_or("00:00:00");
    let time = match time.split_once(':') {
        Some(("24", rest)) => format!("00:{rest}"),
        Some((hour, rest)) if hour.len() == 1 => format!("0{hour}:{rest}"),
        _ => time.to_owned(),
    };
    let zone = match words.next() {
        None | Some("UTC" | "Z" | "-0000") => "+0000",
        Some(zone) => zone,
    };
    let month = month.get(..3)?;
    DateTime::parse_from_rfc2822(&format!("{day} {month} {year} {time} {zone}")).ok().map(|time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_dates_are_parsed() {
        for text in [
            "2026-07-28T12:30:00Z",
            "2026-07-28T14:30:00+02:00",
            "2026-07-28t14:30:00.000+0200",
            "2026-07-28 12:30",
            "2026-07-28 12:30:00 +00:00",
            "2026-07-28T05:30:00-07:00",
            "Tue, 28 Jul 2026 12:30:00 GMT",
            "Tue, 28 Jul 2026 14:30:00 +0200",
            "28 Jul 26 12:30 UT",
            "28 July 2026 12:30:00 UTC",
            "Mon, 28 Jul 2026 12:30:00 Z",
            "Dienstag, 28 Jul 2026 12:30:00 -0000",
            "Tues, Jul 28 2026 8:30:00 EDT",
            "July 28, 2026 12:30:00",
        ] {
            assert_eq!(parse(text).map(|time| time.timestamp()), Some(1_785_241_800), "{text}");
        }
        assert_eq!(parse("2026-07-28").map(|time| time.timestamp()), Some(1_785_196_800));
        assert_eq!(parse("28 Jul 2026").map(|time| time.timestamp()), Some(1_785_196_800));
        assert_eq!(parse("Mon, 27 Jul 2026 24:00:00 GMT").map(|time| time.timestamp()), Some(1_785_110_400));
    }

    #[test]
    fn other_texts_give_none() {
        for text in
            ["", "never", "28", "2026-", "2026-13-45", "2026-07-28Tea", "32 Jul 2026 99:99:99 GMT", "é é é é é", "a, b"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
