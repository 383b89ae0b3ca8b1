//! Rows of the hostile table (`tests/integration/hostile`) about results: contents of other resources, too much
//! content, and text that would control a terminal.

use serde_json::Value;

use crate::expect::{Answer, Expect, bad_output, check_error, is_clean, limit, matching, text};
use crate::row::{Row, RunMode, Stops, hostile_guest};

/// The text of the hostile guest with characters that control a terminal, or reorder or hide text.
const CONTROLS: &str = "visible\x1b[31m\x07\x00\u{9b}2J\r\n\u{202e}desrever\u{2066}\u{feff}\u{fe0f}\u{3164}\u{34f}\u{200d}\u{e0041}\u{e0042}\u{2028}end";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("RES-01", "an answer claims to be another resource than the requested one")
            .read("spoof/other", bad_output())
            .read("spoof/%252e%252e%2Fwitness%2Fstatic-text", bad_output())
            .read("spoof/belljar:%2F%2Fwitness%2Fstatic-text", bad_output())
            .read("spoof/%2F%2Fwitness%2Fstatic-text", bad_output())
            .read("spoof/file:%2F%2F%2Fetc%2Fpasswd", bad_output())
            .read("spoof/%2Fwitness%2Fstatic-text", bad_output())
            .read("spoof/spoof", bad_output())
            .read("spoof/a%20b", bad_output())
            .read("spoof/a%23b", bad_output())
            .read("spoof/", bad_output())
            .stopped_by(&["contents-name"]),
        hostile_guest("RES-02", "an answer of 100 MB or 1 GB")
            .limits("memory = \"200MiB\"")
            .read("blob/100000000", limit("result"))
            .read("blob/1000000000", limit("memory"))
            .slow_witness(
                "one instruction fills 100 MB without interruption, on the thread that reads this client's requests",
            )
            .stopped_by(&["result"]),
        hostile_guest("RES-02", "an answer of 100 MB on one connection, while other connections read")
            .run_mode(RunMode::Http)
            .limits("memory = \"200MiB\"")
            // belljar treats the first call of a mount as a short one.
            .read("blob/100000000", limit("result"))
            .stopped_by(&["result"]),
        hostile_guest("RES-03", "an answer without contents, for a resource that does not exist")
            .read("empty", bad_output())
            .read("many/0", bad_output())
            .stopped_by(&["contents-count"]),
        hostile_guest("RES-04", "an answer of a million empty contents")
            .limits("memory = \"200MiB\"")
            .read(
                "many/10000",
                matching(|answer| match answer {
                    Ok(result) if result["contents"].as_array().is_some_and(|all| all.len() == 10_000) => {
                        Ok("ten thousand".to_owned())
                    }
                    _ => Err("not the allowed ten thousand contents".to_owned()),
                }),
            )
            .read("many/10001", bad_output())
            .read("many/1000000", limit("result"))
            .stopped_by(&["contents-count", "result"]),
        hostile_guest("RES-05", "a MIME type with an injected header; reserved metadata")
            .read("dressed", matching(has_only_valid_fields))
            .stopped_by(&["mime"]),
        hostile_guest("RES-06", "text that would end a line of the protocol, or control a terminal")
            .read(
                "dressed",
                matching(|answer| {
                    // Contents are data: belljar passes them on unchanged, and the JSON encoder escapes them.
                    match text(answer) {
                        Some(text) if text == CONTROLS => Ok("the text, as data in one line of JSON".to_owned()),
                        _ => Err(format!("{answer:?}")),
                    }
                }),
            )
            .stopped(Stops::Structure("one JSON encoder writes and escapes all output to the client")),
        hostile_guest("RES-07", "an error of a megabyte that would control a terminal; a trap in the middle of a call")
            .read("errors/failed/controls", matching(|answer| is_cleaned_error(answer, "failed")))
            .read("errors/invalid/long", matching(|answer| is_cleaned_error(answer, "invalid")))
            .read("errors/denied/long", matching(|answer| is_cleaned_error(answer, "denied")))
            .read("errors/unavailable/long", matching(|answer| is_cleaned_error(answer, "unavailable")))
            .read("count-trap", Expect::Kind(&["trap"]))
            .stopped_by(&["sanitising"]),
        hostile_guest("RES-08", "an answer that differs each time")
            .act(|context| {
                let [one, other] = ["tick", "tick"].map(|reference| text(&context.read(reference)).map(str::to_owned));
                assert!(one.is_some() && one != other, "{one:?} {other:?}");
                "each answer unchanged".to_owned()
            })
            .stopped(Stops::Structure("belljar does not promise that content is true or stays the same")),
        hostile_guest("RES-09", "a provider says that everyone may cache its answer for ever")
            .read("fresh", matching(is_private))
            .stopped_by(&["fresh"]),
    ]
}

/// Accepts contents without the invalid fields, and with the valid ones.
fn has_only_valid_fields(answer: &Answer) -> Result<String, String> {
    let contents = answer.as_ref().ok().and_then(|result| result.pointer("/contents/0"));
    let contents = contents.ok_or_else(|| format!("{answer:?}"))?;
    if contents.get("mimeType").is_some() {
        return Err(format!("the invalid MIME type is passed on: {contents}"));
    }
    let mut keys: Vec<&str> =
        contents["_meta"].as_object().into_iter().flat_map(|meta| meta.keys()).map(String::as_str).collect();
    keys.sort_unstable();
    if keys != ["com.example/fine", "dev.belljar/digest", "dev.belljar/mount"] {
        return Err(format!("the metadata has other keys than expected: {contents}"));
    }
    Ok("the text, without the MIME type and the reserved metadata".to_owned())
}

/// Accepts an error of `kind` whose message is short, clean, and attributed to the provider.
fn is_cleaned_error(answer: &Answer, kind: &str) -> Result<String, String> {
    let error = answer.as_ref().err().ok_or_else(|| format!("{answer:?}"))?;
    check_error(error, error.data["mount"].as_str().unwrap_or_default(), &[kind])?;
    if error.message.chars().count() > 1200 {
        return Err(format!("a message of {} characters", error.message.chars().count()));
    }
    if !error.message.contains("the provider") {
        return Err(format!("the message does not name the provider as its source: {}", error.message));
    }
    if let Some(text) =
        error.data.as_object().into_iter().flatten().filter_map(|(_, v)| v.as_str()).find(|t| !is_clean(t))
    {
        return Err(format!("the data is not clean: {text:?}"));
    }
    Ok(kind.to_owned())
}

/// Accepts an answer that clients may cache only for the requesting user, and for at most an hour.
fn is_private(answer: &Answer) -> Result<String, String> {
    let result = answer.as_ref().map_err(ToString::to_string)?;
    let long = |value: &Value| value.as_u64().is_some_and(|ms| ms > 3_600_000);
    if result.to_string().contains("public") || long(&result["ttlMs"]) || long(&result["_meta"]["ttlMs"]) {
        return Err(format!("the answer may be cached for others, or for too long: {result}"));
    }
    Ok("the text, private and fresh for at most an hour".to_owned())
}
