//! Parses the dates of feeds, which often violate their standards.
//!
//! No regular expressions: compiling them costs more than parsing the rest of a feed, and each call runs in a new sandbox.

/// Seconds since 1970, in UTC.
type Seconds = i64;

const DAY: Seconds = 24 * 3600;

/// Months in English, and the beginnings of those in Greek and Hungarian that differ.
const MONTHS: [(&str, i64); 39] = [
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
    ("ιαν", 1),
    ("φεβ", 2),
    ("μάρ", 3),
    ("μαρ", 3),
    ("μάώ", 3),
    ("μαώ", 3),
    ("απρ", 4),
    ("μάι", 5),
    ("μαϊ", 5),
    ("μαι", 5),
    ("ιού", 6),
    ("ιου", 6),
    ("ιον", 6),
    ("ιολ", 7),
    ("αύγ", 8),
    ("αυγ", 8),
    ("σεπ", 9),
    ("οκτ", 10),
    ("νοέ", 11),
    ("νοε", 11),
    ("δεκ", 12),
    ("már", 3),
    ("ápr", 4),
    ("máj", 5),
    ("jún", 6),
    ("júl", 7),
    ("sze", 9),
]; // rustfmt would put each pair on its own line.

/// Zones by name, in hours from UTC.
const ZONES: [(&str, i64); 24] = [
    ("adt", -3),
    ("ast", -4),
    ("at", -4),
    ("edt", -4),
    ("est", -5),
    ("et", -5),
    ("cdt", -5),
    ("cst", -6),
    ("ct", -6),
    ("mdt", -6),
    ("mst", -7),
    ("mt", -7),
    ("pdt", -7),
    ("pst", -8),
    ("pt", -8),
    ("met", 1),
    ("mest", 2),
    ("cet", 1),
    ("cest", 2),
    ("bst", 1),
    ("eet", 2),
    ("eest", 3),
    ("msk", 3),
    ("jst", 9),
];

/// Parses a date of RSS (RFC 822 and its successors) or Atom (RFC 3339 and ISO 8601), and common deviations.
pub(crate) fn parse(text: &str) -> Option<Seconds> {
    let text = text.trim().to_lowercase();
    iso(&text).or_else(|| mail(&text)).or_else(|| korean(&text))
}

/// The time in RFC 3339. `None` if it has a year that RFC 3339 cannot write.
pub(crate) fn rfc3339(time: Seconds) -> Option<String> {
    let (days, rest) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    (0..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// The days from 1970 to a day of the Gregorian calendar. `None` if there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at the end.
    let (year_from_march, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

/// The day of the Gregorian calendar that is `days` after 1970 began.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let (era, of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + carry, month, day)
}

/// A number of at most `most` digits.
fn number(text: &str, most: usize) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// `12:30`, `12:30:05.5` or `24:00:00`, in seconds.
fn clock(text: &str) -> Option<Seconds> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = parts.next().map_or(Some(0), |minute| number(minute, 2))?;
    let second = parts.next().map_or(Some(0), |second| {
        let (whole, fraction) = second.split_once(['.', ',']).unwrap_or((second, ""));
        fraction.bytes().all(|byte| byte.is_ascii_digit()).then(|| number(whole, 2)).flatten()
    })?;
    let is_time = (hour < 24 || (hour == 24 && minute == 0 && second == 0)) && minute < 60 && second < 61;
    (is_time && parts.next().is_none()).then_some(hour * 3600 + minute * 60 + second.min(59))
}

/// `+02:00`, `-0530`, `z`, `gmt+2` or the name of a zone, in seconds. Unknown names are UTC.
fn zone(text: &str) -> Option<Seconds> {
    let text = text.trim().trim_matches(['(', ')']);
    let text = text.strip_prefix("etc/").unwrap_or(text);
    let offset = text.strip_prefix("gmt").or_else(|| text.strip_prefix("utc")).unwrap_or(text);
    let (sign, digits) = match offset.chars().next() {
        Some('+') => (1, offset.get(1..)?),
        Some('-' | '\u{2212}') => (-1, offset.trim_start_matches(['-', '\u{2212}'])),
        _ => return Some(ZONES.iter().find(|(name, _)| *name == text).map_or(0, |(_, hours)| hours * 3600)),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    Some(sign * (number(hours, 2)? * 3600 + number(minutes, 2)? * 60))
}

/// Parses `2026-07-28T12:30:00.5+02:00`; also with a space, without seconds, colon or zone, a date, month or year alone, and
/// without hyphens.
fn iso(text: &str) -> Option<Seconds> {
    let (date, time) = text.split_once(['t', ' ']).unwrap_or((text, ""));
    let date = date.trim_end_matches('z');
    let mut parts = date.split(['-', '/']);
    let first = parts.next()?;
    let (second, third) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let days = match (first.len(), second, third) {
        (4, None, None) => days(number(first, 4)?, 1, 1),
        // The day of the year.
        (4, Some(of_year), None) if of_year.len() == 3 => {
            Some(days(number(first, 4)?, 1, 1)? + number(of_year, 3).filter(|day| (1..=366).contains(day))? - 1)
        }
        (4, Some(month), None) => days(number(first, 4)?, number(month, 2)?, 1),
        (4, Some(month), Some(day)) => {
            let month = number(month, 2).or_else(|| month_of(month))?;
            days(number(first, 4)?, month, number(day, 2)?)
        }
        (8, None, None) => days(number(first.get(..4)?, 4)?, number(first.get(4..6)?, 2)?, number(first.get(6..)?, 2)?),
        _ => None,
    }?;
    let time = time.trim();
    if time.is_empty() {
        return Some(days * DAY);
    }
    let end = time.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.' | ',')).unwrap_or(time.len());
    let (clock_text, zone_text) = time.split_at_checked(end)?;
    let compact;
    let clock_text = match clock_text.split_once('.').map_or(clock_text, |(whole, _)| whole) {
        six if six.len() == 6 && !six.contains(':') => {
            compact = format!("{}:{}:{}", six.get(..2)?, six.get(2..4)?, six.get(4..)?);
            &compact
        }
        _ => clock_text,
    };
    Some(days * DAY + clock(clock_text)? - zone(zone_text)?)
}

fn month_of(word: &str) -> Option<i64> {
    let start: String = word.chars().take(3).collect();
    let found = MONTHS.iter().find(|(name, _)| *name == start).map(|(_, month)| *month)?;
    // In Greek, June and July begin alike.
    Some(if matches!(start.as_str(), "ιού" | "ιου") && word.contains('λ') { 7 } else { found })
}

/// Parses `Tue, 28 Jul 2026 12:30:00 GMT`; also with a wrong or unknown weekday, month before day, the year at the end, a
/// time in am and pm, and without zone or time.
fn mail(text: &str) -> Option<Seconds> {
    let (mut day, mut month, mut year, mut time, mut offset, mut afternoon) = (None, None, None, None, None, None);
    let words = text.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty());
    for word in words {
        if time.is_none() && word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit()) {
            let end = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(word.len());
            let (clock_text, rest) = word.split_at_checked(end)?;
            time = Some(clock(clock_text)?);
            match rest {
                "" => {}
                "am" | "pm" => afternoon = Some(rest == "pm"),
                rest => offset = Some(zone(rest)?),
            }
        } else if time.is_some() && matches!(word, "am" | "pm") {
            afternoon = Some(word == "pm");
        } else if word.len() == 10 && day.is_none() && word.split(['/', '-']).count() == 3 && word.contains('/') {
            // `Fri, 2006/09/15 08:19:53 EDT`.
            let found = iso(word)?.div_euclid(DAY);
            let (found_year, found_month, found_day) = civil(found);
            (year, month, day) = (Some(found_year), Some(found_month), Some(found_day));
        } else if month.is_none() && word.contains('-') && word.starts_with(|c: char| c.is_ascii_digit()) {
            // `28-Jul-2026`.
            let mut parts = word.split('-');
            (day, month) = (number(parts.next()?, 2), parts.next().and_then(month_of));
            year = parts.next().and_then(year_of);
        } else if let Some(value) = number(word.trim_end_matches(['.', 't', 'h', 's', 'n', 'd', 'r']), 5) {
            if day.is_none() && word.len() <= 4 && value <= 31 {
                day = Some(value);
            } else if year.is_none() {
                year = year_of(word);
            } else if offset.is_none() && time.is_some() && word.len() == 4 {
                // A zone without a sign is UTC.
                offset = Some(0);
            }
        } else if month.is_none() {
            month = month_of(word);
        } else if time.is_some() && offset.is_none() {
            offset = Some(zone(word)?);
        }
    }
    let days = days(year?, month?, day?)?;
    let time = match (time.unwrap_or_default(), afternoon) {
        (time, Some(true)) if time < DAY / 2 => time + DAY / 2,
        (time, Some(false)) if time >= DAY / 2 => time - DAY / 2,
        (time, _) => time,
    };
    Some(days * DAY + time - offset.unwrap_or_default())
}

/// A year of two or four digits.
fn year_of(word: &str) -> Option<i64> {
    let year = number(word, 4)?;
    Some(match word.len() {
        1 | 2 if year < 90 => 2000 + year,
        1 | 2 => 1900 + year,
        _ => year,
    })
}

/// Parses `2004년 05월 28일 01:31:15` and `2004-05-25 오후 11:23:17`, in Korean time.
fn korean(text: &str) -> Option<Seconds> {
    if !text.contains(['년', '오']) {
        return None;
    }
    let plain = text.replace("년", "-").replace("월", "-").replace("일", " ");
    let plain = plain.replace("- ", "-");
    let mut words = plain.split_whitespace();
    let date = iso(words.next()?)?;
    let (mut time, mut afternoon) = (0, None);
    for word in words {
        match word {
            "오전" => afternoon = Some(false),
            "오후" => afternoon = Some(true),
            word => time = clock(word)?,
        }
    }
    let time = if afternoon == Some(true) && time < DAY / 2 { time + DAY / 2 } else { time };
    Some(date + time - 9 * 3600)
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
            "2026-07-28T08:30:00 EDT",
            "20260728T123000Z",
            "2026-209T12:30Z",
            "2026/07/28 12:30:00",
            "Tue, 28 Jul 2026 12:30:00 GMT",
            "Tue, 28 Jul 2026 14:30:00 +0200",
            "Tue, 28 Jul 2026 14:30:00 GMT+2",
            "Tue, 28 Jul 2026 14:30:00 +02:00",
            "28 Jul 26 12:30 UT",
            "28 July 2026 12:30:00 UTC",
            "28-Jul-2026 12:30:00",
            "Mon, 28 Jul 2026 12:30:00 Z",
            "Dienstag, 28 Jul 2026 12:30:00 -0000",
            "Tues, Jul 28 2026 8:30:00 EDT",
            "July 28, 2026 12:30:00",
            "July 28th, 2026 12:30 PM",
            "Tue Jul 28 12:30:00 2026",
            "Tue Jul 28 14:30:00 +0200 2026",
            "Tue, 2026/07/28 08:30:00 EDT",
            "Τρι, 28 Ιουλ 2026 12:30:00 UTC",
            "2026-július-28T12:30+00:00",
            "2026년 07월 28일 21:30:00",
            "2026-07-28 오후 09:30:00",
        ] {
            assert_eq!(parse(text), Some(1_785_241_800), "{text}");
        }
        for text in ["2026-07-28", "28 Jul 2026", "20260728"] {
            assert_eq!(parse(text), Some(1_785_196_800), "{text}");
        }
        assert_eq!(parse("Mon, 27 Jul 2026 24:00:00 GMT"), parse("2026-07-28"));
        assert_eq!(parse("2026-07").and_then(rfc3339).as_deref(), Some("2026-07-01T00:00:00Z"));
        assert_eq!(parse("1950-02-03T00:00:01Z").and_then(rfc3339).as_deref(), Some("1950-02-03T00:00:01Z"));
    }

    #[test]
    fn other_texts_give_none() {
        for text in [
            "",
            "never",
            "28",
            "2026-",
            "2026-13-45",
            "2026-07-28Tea",
            "32 Jul 2026 99:99:99 GMT",
            "é é é é é",
            "a, b",
            "2026-02-30",
            "Thu, 32 Feb 2026 10:00:00 GMT",
            "0000-00-00",
            "9999999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_the_calendar_is_its_own() {
        for day in -200_000..200_000 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }
}
