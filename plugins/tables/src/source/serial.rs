//! Dates and times of spreadsheets: numbers of days, which a number format shows as a moment.

use jiff::civil::DateTime;
use jiff::{SignedDuration, ToSpan as _};

use crate::cell::Value;

/// What a number format makes of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Number,
    Moment,
    Duration,
}

/// The value of a number with this form.
pub(crate) fn value(number: f64, form: Form, is_1904: bool) -> Value {
    match form {
        Form::Number => Value::of_float(number),
        Form::Moment => moment(number, is_1904).map_or_else(|| Value::of_float(number), Value::Moment),
        Form::Duration => duration(number).map_or_else(|| Value::of_float(number), Value::Moment),
    }
}

/// A moment in ISO 8601: a date if the time is midnight, a time if there is no day, or a date with a time. Days before
/// 1900 have negative numbers, as in LibreOffice. `None` for a number outside the calendar.
fn moment(serial: f64, is_1904: bool) -> Option<String> {
    let milliseconds = ((serial - serial.floor()) * 86_400_000.0).round();
    if !(-700_000.0..=2_958_466.0).contains(&serial) {
        return None;
    }
    let (mut day, milliseconds) = (serial.floor() as i64, milliseconds as i64);
    let epoch =
        if is_1904 { DateTime::constant(1904, 1, 1, 0, 0, 0, 0) } else { DateTime::constant(1899, 12, 30, 0, 0, 0, 0) };
    // The calendar of Excel has a day 1900-02-29, which never was.
    if !is_1904 && (1.0..60.0).contains(&serial) {
        day += 1;
    }
    let moment = epoch.checked_add(day.days()).ok()?.checked_add(SignedDuration::from_millis(milliseconds)).ok()?;
    if moment.year() > 9999 || moment.year() < 1 {
        return None;
    }
    let (date, time) = (moment.date(), moment.time());
    Some(if (0.0..1.0).contains(&serial) && milliseconds < 86_400_000 {
        clock(time)
    } else if time == jiff::civil::Time::midnight() {
        date.to_string()
    } else {
        format!("{date}T{}", clock(time))
    })
}

fn clock(time: jiff::civil::Time) -> String {
    let fraction = match time.millisecond() {
        0 => String::new(),
        milliseconds => format!(".{milliseconds:03}"),
    };
    format!("{:02}:{:02}:{:02}{fraction}", time.hour(), time.minute(), time.second())
}

/// A duration in ISO 8601, in hours. `None` for one that is not sensible.
fn duration(serial: f64) -> Option<String> {
    let milliseconds = (serial.abs() * 86_400_000.0).round();
    let all = if milliseconds < 1e15 { milliseconds as u64 } else { return None };
    let (seconds, rest) = (all / 1000, all % 1000);
    let sign = if serial < 0.0 { "-" } else { "" };
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    Some(format!("{sign}PT{}H{}M{}{fraction}S", seconds / 3600, seconds / 60 % 60, seconds % 60))
}

/// What a built-in number format makes of a number.
pub(crate) fn built_in(id: u32) -> Form {
    match id {
        14..=22 | 27..=36 | 45 | 47 | 50..=58 => Form::Moment,
        46 => Form::Duration,
        _ => Form::Number,
    }
}

/// What a number format makes of a number: letters for parts of a date outside of quotes and brackets make a moment, and hours,
/// minutes or seconds in brackets a duration. Only the format of positive numbers counts.
pub(crate) fn form(format: &str) -> Form {
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match c {
            // The next character is shown as it is, or sets a width.
            '\\' | '_' | '*' => {
                rest.next();
            }
            '"' => while rest.next().is_some_and(|c| c != '"') {},
            '[' => {
                let inside: String = rest.by_ref().take_while(|c| *c != ']').collect::<String>().to_ascii_lowercase();
                let is_count = |letter: char| !inside.is_empty() && inside.chars().all(|c| c == letter);
                if is_count('h') || is_count('m') || is_count('s') {
                    return Form::Duration;
                }
            }
            ';' => return Form::Number,
            'd' | 'm' | 'h' | 'y' | 's' | 'D' | 'M' | 'H' | 'Y' | 'S' => return Form::Moment,
            // `General` has no letter of a date, but `E+` has none either.
            _ => {}
        }
    }
    Form::Number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_iso() {
        for (serial, form, text) in [
            (45_943.0, Form::Moment, "2025-10-13"),
            (45_943.5, Form::Moment, "2025-10-13T12:00:00"),
            (0.25, Form::Moment, "06:00:00"),
            (0.0, Form::Moment, "00:00:00"),
            (45_943.541, Form::Moment, "2025-10-13T12:59:02.400"),
            (1.0, Form::Moment, "1900-01-01"),
            (59.0, Form::Moment, "1900-02-28"),
            (61.0, Form::Moment, "1900-03-01"),
            (-1.0, Form::Moment, "1899-12-29"),
            (-0.5, Form::Moment, "1899-12-29T12:00:00"),
            (-100_000.25, Form::Moment, "1626-03-15T18:00:00"),
            (2_958_465.0, Form::Moment, "9999-12-31"),
            (3e6, Form::Moment, "3000000"),
            (-1e9, Form::Moment, "-1000000000"),
            (1.5, Form::Duration, "PT36H0M0S"),
            (-0.5, Form::Duration, "-PT12H0M0S"),
        ] {
            assert_eq!(value(serial, form, false).as_text(), text);
        }
        assert_eq!(value(1.0, Form::Moment, true).as_text(), "1904-01-02");
        assert_eq!(value(f64::NAN, Form::Moment, true).as_text(), "NaN");
    }

    #[test]
    fn formats_of_dates_have_their_letters() {
        for (format, expected) in [
            ("yyyy-mm-dd", Form::Moment),
            ("[$-409]h:mm AM/PM", Form::Moment),
            ("[h]:mm:ss", Form::Duration),
            ("[Red]0.00", Form::Number),
            ("0.00\"days\"", Form::Number),
            ("General", Form::Number),
            ("#,##0;[Red]-#,##0", Form::Number),
            ("0\\d", Form::Number),
            ("_-d", Form::Moment),
        ] {
            assert_eq!(form(format), expected, "{format}");
        }
    }
}
