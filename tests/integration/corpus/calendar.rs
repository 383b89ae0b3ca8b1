//! `plugins/calendar` compared with recurring_ical_events: generated rules, and the forms of real files.

use serde_json::Value;

use super::{Case, compare};

#[test]
fn calendars_are_read_as_the_native_library_reads_them() {
    compare("calendar", "env = { ZONE = \"Europe/Berlin\" }", judge);
}

/// The events of an answer are the expected ones, and its problems are named: all expected ones, and none if none are.
fn judge(case: &Case, answer: Result<&str, &str>) -> Result<(), String> {
    let answer: Value = serde_json::from_str(answer?).map_err(|error| error.to_string())?;
    let of = |event: &Value| ["summary", "start", "end"].map(|key| event[key].as_str().unwrap_or_default().to_owned());
    let mut found: Vec<_> = answer["events"].as_array().into_iter().flatten().map(of).collect();
    found.sort();
    let (events, problems) = match &case.expected {
        Value::Object(expected) => (&expected["events"], expected["problems"].as_array().cloned().unwrap_or_default()),
        events => (events, Vec::new()),
    };
    let expected: Vec<[String; 3]> = serde_json::from_value(events.clone()).map_err(|error| error.to_string())?;
    if found != expected {
        return Err(format!("expected {expected:?}, got {found:?}"));
    }
    let named: Vec<&str> = answer["problems"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for words in problems.iter().filter_map(Value::as_str) {
        if !named.iter().any(|text| text.contains(words)) {
            return Err(format!("no problem with the words {words:?} in {named:?}"));
        }
    }
    if problems.is_empty() && !named.is_empty() {
        return Err(format!("unexpected problems {named:?}"));
    }
    Ok(())
}
