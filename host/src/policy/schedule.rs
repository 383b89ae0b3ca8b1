//! When a rule applies: days, hours and a time zone. Reads no clock.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::model::text;

/// The days, Monday first.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// All days, as bits.
const ALL_DAYS: u8 = 0b111_1111;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// The first minute of the year 10000. Later times count as this one.
const LAST_MINUTE: u64 = 253_402_300_800 / 60;

/// The least similarity of two names of time zones (Jaro-Winkler, 0 to 1) for which one is suggested in place of the
/// other.
const MIN_SIMILARITY: f64 = 0.9;

/// The times at which a rule applies, such as `Mon-Fri 08:00-18:00 Europe/Berlin`. Precise to the minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    windows: Vec<Window>,
}

/// One part of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    /// Bit 0 is Monday. The day on which hours begin.
    days: u8,
    /// Begin and end in minutes of the day. An end before the begin is on the next day.
    hours: Vec<(u16, u16)>,
    zone: Tz,
}

/// A minute since 1970 in UTC: the time for which policy decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Minute(u64);

impl Minute {
    /// The minute that `at` belongs to. Times before 1970 count as 1970.
    pub(super) fn of(at: SystemTime) -> Self {
        let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self((seconds / 60).min(LAST_MINUTE))
    }

    /// The begin of the minute.
    pub(super) fn start(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0 * 60)
    }
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A part is empty.
    #[error(
        "a schedule has days, hours or both, and a time zone; for example \"Mon-Fri 08:00-18:00 Europe/Berlin\"; several are separated by \";\""
    )]
    Empty,
    /// A word is neither days nor hours nor a time zone.
    #[error("\"{word}\" is neither days such as \"Mon-Fri\" nor hours such as \"08:00-18:00\" nor a time zone such as \"Europe/Berlin\"{}", suggestion(.nearest))]
    Word {
        /// The word, safe to print.
        word: String,
        /// A time zone that is spelt almost alike.
        nearest: Option<&'static str>,
    },
    /// Hours are malformed.
    #[error(
        "\"{0}\" are not hours; expected hours such as \"08:00-18:00\", from 00:00 to 24:00; several are separated by \",\""
    )]
    Hours(String),
    /// Hours end when they begin.
    #[error("\"{0}\" ends when it begins; for the whole day write 00:00-24:00")]
    NoTime(String),
    /// A part names the same thing twice.
    #[error("\"{0}\": each part has its days, its hours and its time zone once; several parts are separated by \";\"")]
    Twice(String),
    /// Some parts have a time zone and others have none.
    #[error("one part names a time zone and another does not; name it in each part; without any, the time is UTC")]
    Zone,
}

/// `; did you mean "ZONE"?`
fn suggestion(nearest: &Option<&str>) -> String {
    nearest.map(|zone| format!("; did you mean \"{zone}\"?")).unwrap_or_default()
}

impl Schedule {
    /// True if the rule applies in this minute.
    pub(super) fn contains(&self, minute: Minute) -> bool {
        self.windows.iter().any(|window| window.contains(minute))
    }
}

impl Window {
    fn contains(&self, Minute(minute): Minute) -> bool {
        let seconds = i64::try_from(minute * 60).unwrap_or_default();
        let Some(time) = DateTime::from_timestamp(seconds, 0) else { return false };
        let local = time.with_timezone(&self.zone);
        let today = local.weekday().num_days_from_monday();
        let now = u16::try_from(local.hour() * 60 + local.minute()).unwrap_or_default();
        let is_day = |day: u32| self.days & (1 << day) != 0;
        self.hours.iter().any(|(begin, end)| match begin < end {
            true => is_day(today) && (*begin..*end).contains(&now),
            // Over midnight. The hours belong to the day on which they begin.
            false => (is_day(today) && now >= *begin) || (is_day((today + 6) % 7) && now < *end),
        })
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let parts: Vec<(Window, bool)> = text.split(';').map(window).collect::<Result<_, _>>()?;
        let has_zone = parts.iter().any(|(_, has_zone)| *has_zone);
        if parts.iter().any(|(_, own)| *own != has_zone) {
            return Err(ScheduleError::Zone);
        }
        let windows = parts.into_iter().map(|(window, _)| window).collect();
        Ok(Self { text: text.split_whitespace().collect::<Vec<_>>().join(" "), windows })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One part of a schedule, and whether it names a time zone.
fn window(text: &str) -> Result<(Window, bool), ScheduleError> {
    let (mut days, mut hours, mut zone) = (None, None, None);
    for word in text.split_whitespace() {
        let is_new = if word.starts_with(|c: char| c.is_ascii_digit()) {
            hours.replace(parse_hours(word)?).is_none()
        } else if let Some(parsed) = parse_days(word) {
            days.replace(parsed).is_none()
        } else {
            zone.replace(parse_zone(word)?).is_none()
        };
        if !is_new {
            return Err(ScheduleError::Twice(text::excerpt(word, 80)));
        }
    }
    // A time zone alone would say nothing.
    if days.is_none() && hours.is_none() {
        return Err(ScheduleError::Empty);
    }
    let window = Window {
        days: days.unwrap_or(ALL_DAYS),
        hours: hours.unwrap_or_else(|| vec![(0, DAY)]),
        zone: zone.unwrap_or(Tz::UTC),
    };
    Ok((window, zone.is_some()))
}

/// The days in `Mon-Fri,Sun`, as bits. `None`: these are no days.
fn parse_days(word: &str) -> Option<u8> {
    let day = |name: &str| DAYS.iter().position(|day| day.eq_ignore_ascii_case(name));
    let mut days = 0;
    for range in word.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (mut at, last) = (day(first)?, day(last)?);
        days |= 1 << at;
        while at != last {
            at = (at + 1) % DAYS.len();
            days |= 1 << at;
        }
    }
    Some(days)
}

/// The begins and ends in `08:00-12:00,13:00-18:00`, in minutes of the day.
fn parse_hours(word: &str) -> Result<Vec<(u16, u16)>, ScheduleError> {
    let minute = |time: &str| {
        let (hour, minute) = time.split_once(':')?;
        let number = |text: &str| match text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u16>().ok(),
            false => None,
        };
        let (hour, minute) = (number(hour)?, number(minute)?);
        (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
    };
    let ranges = word.split(',').map(|range| {
        let wrong = || ScheduleError::Hours(text::excerpt(range, 80));
        let (begin, end) = range.split_once('-').ok_or_else(wrong)?;
        let (begin, end) = minute(begin).zip(minute(end)).ok_or_else(wrong)?;
        match begin == end || begin == DAY {
            true => Err(ScheduleError::NoTime(text::excerpt(range, 80))),
            false => Ok((begin, end)),
        }
    });
    ranges.collect()
}

fn parse_zone(word: &str) -> Result<Tz, ScheduleError> {
    word.parse().map_err(|_| {
        let similarity =
            |zone: &Tz| strsim::jaro_winkler(&word.to_ascii_lowercase(), &zone.name().to_ascii_lowercase());
        let nearest = TZ_VARIANTS.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        let nearest = nearest.filter(|zone| similarity(zone) >= MIN_SIMILARITY).map(|zone| zone.name());
        ScheduleError::Word { word: text::excerpt(word, 80), nearest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minute of a time in UTC.
    fn minute(time: &str) -> Minute {
        Minute::of(humantime::parse_rfc3339_weak(time).unwrap())
    }

    #[test]
    fn schedules_contain_their_times() {
        // 2026-11-23 is a Monday. Berlin is at UTC+1 in winter and at UTC+2 in summer.
        for (schedule, inside, outside) in [
            (
                "Mon-Fri 08:00-18:00 Europe/Berlin",
                &["2026-11-23 07:00:00", "2026-11-27 16:59:59", "2026-07-01 06:00:00"][..],
                &["2026-11-23 06:59:59", "2026-11-23 17:00:00", "2026-11-28 10:00:00", "2026-07-01 05:59:00"][..],
            ),
            (
                "Sat,sun",
                &["2026-11-28 00:00:00", "2026-11-29 23:59:59"],
                &["2026-11-27 23:59:59", "2026-11-30 00:00:00"],
            ),
            (
                "Fri-Mon",
                &["2026-11-27 00:00:00", "2026-11-30 23:59:00"],
                &["2026-11-24 00:00:00", "2026-11-26 23:59:00"],
            ),
            (
                "22:00-06:00",
                &["2026-11-23 22:00:00", "2026-11-23 05:59:59"],
                &["2026-11-23 06:00:00", "2026-11-23 21:59:00"],
            ),
            (
                "Fri 22:00-06:00",
                &["2026-11-27 22:00:00", "2026-11-28 05:59:00"],
                &["2026-11-27 05:00:00", "2026-11-28 22:00:00", "2026-11-28 06:00:00"],
            ),
            ("00:00-24:00", &["2026-11-23 00:00:00", "2026-11-23 23:59:59"], &[]),
            ("20:00-24:00", &["2026-11-23 23:59:59"], &["2026-11-23 00:00:00"]),
            ("20:00-00:00", &["2026-11-23 23:59:59"], &["2026-11-23 00:00:00"]),
            ("08:00-12:00,13:00-18:00", &["2026-11-23 11:59:00", "2026-11-23 13:00:00"], &["2026-11-23 12:30:00"]),
            (
                "Mon 08:00-09:00; Tue 10:00-11:00",
                &["2026-11-23 08:30:00", "2026-11-24 10:30:00"],
                &["2026-11-23 10:30:00"],
            ),
            // The hour from 02:00 to 03:00 comes twice on this day, and both count.
            ("02:00-03:00 Europe/Berlin", &["2026-10-25 00:30:00", "2026-10-25 01:30:00"], &["2026-10-25 02:30:00"]),
        ] {
            let parsed: Schedule = schedule.parse().unwrap();
            for (time, expected) in
                inside.iter().map(|time| (time, true)).chain(outside.iter().map(|time| (time, false)))
            {
                assert_eq!(parsed.contains(minute(time)), expected, "{schedule} {time}");
            }
        }
    }

    #[test]
    fn wrong_schedules_are_refused() {
        for (schedule, words) in [
            ("", "has days, hours or both"),
            ("Europe/Berlin", "has days, hours or both"),
            ("Mon;", "has days, hours or both"),
            ("Mon-Fry", "\"Mon-Fry\" is neither"),
            ("Monday", "\"Monday\" is neither"),
            ("Mon 8:00-18:00", "\"8:00-18:00\" are not hours"),
            ("Mon 08:00", "\"08:00\" are not hours"),
            ("08:60-09:00", "are not hours"),
            ("08:00-24:01", "are not hours"),
            ("08:00-+9:00", "are not hours"),
            ("08:00-08:00", "ends when it begins"),
            ("24:00-08:00", "ends when it begins"),
            ("Mon Tue", "\"Tue\": each part"),
            ("08:00-09:00 10:00-11:00", "each part"),
            ("Mon UTC UTC", "each part"),
            ("Mon Europe/Berlni", "did you mean \"Europe/Berlin\"?"),
            ("Mon 08:00-09:00 UTC; Tue", "name it in each part"),
        ] {
            let error = schedule.parse::<Schedule>().unwrap_err().to_string();
            assert!(error.contains(words), "{schedule}: {error}");
        }
        assert!(!"Mon Mars/Base".parse::<Schedule>().unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn any_time_has_a_minute() {
        let schedule: Schedule = "00:00-24:00 Asia/Tokyo".parse().unwrap();
        let far = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 50);
        let early = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1 << 20);
        assert!([far, early].into_iter().all(|at| schedule.contains(Minute::of(at))));
    }
}
