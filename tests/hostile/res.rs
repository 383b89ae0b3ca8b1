//! Results: what a provider answers that is not its to say, too much of it, or what would steer whoever shows it.

use serde_json::Value;

use crate::expect::{Answer, Expect, bad_output, error_of, is_clean, limit, text, that};
use crate::row::{Row, Stops, Way, imp};

/// What the imp says to steer a terminal, reorder what is read, or hide.
const CONTROLS: &str = "visible\x1b[31m\x07\x00\u{9b}2J\r\n\u{202e}desrever\u{2066}\u{feff}\u{fe0f}\u{3164}\u{34f}\u{200d}\u{e0041}\u{e0042}\u{2028}end";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("RES-01", "an answer claims to be another resource than was asked for")
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
        imp("RES-02", "an answer of more bytes than anyone can read")
            .limits("memory = \"200MiB\"")
            .read("blob/100000000", limit("result"))
            .read("blob/1000000000", limit("memory"))
            .slow_witness("one instruction fills 100 MB, which nothing interrupts, on the thread that reads this client's requests")
            .stopped_by(&["result"]),
        imp("RES-02", "the same on a connection of its own, while others read")
            .way(Way::Http)
            .limits("memory = \"200MiB\"")
            // The first call of a mount is taken for a quick one.
            .read("blob/100000000", limit("result"))
            .stopped_by(&["result"]),
        imp("RES-03", "an answer without contents, for a resource that there is not")
            .read("empty", bad_output())
            .read("many/0", bad_output())
            .stopped_by(&["contents-count"]),
        imp("RES-04", "an answer of a million contents that are empty")
            .limits("memory = \"200MiB\"")
            .read(
                "many/10000",
                that(|answer| match answer {
                    Ok(result) if result["contents"].as_array().is_some_and(|all| all.len() == 10_000) => {
                        Ok("ten thousand".to_owned())
                    }
                    _ => Err("not the ten thousand that are allowed".to_owned()),
                }),
            )
            .read("many/10001", bad_output())
            .read("many/1000000", limit("result"))
            .stopped_by(&["contents-count", "result"]),
        imp("RES-05", "a MIME type that carries a header of its own, reserved metadata")
            .read("dressed", that(undressed))
            .stopped_by(&["mime"]),
        imp("RES-06", "text that would end a line of the protocol, or steer a terminal")
            .read(
                "dressed",
                that(|answer| {
                    // Contents are data: passed on whole, and escaped by whoever writes JSON.
                    match text(answer) {
                        Some(text) if text == CONTROLS => Ok("the text, as data in one line of JSON".to_owned()),
                        _ => Err(format!("{answer:?}")),
                    }
                }),
            )
            .stopped(Stops::Structure(
                "all that is written to the client is made by one JSON encoder, which escapes it",
            )),
        imp("RES-07", "an error of a megabyte, with what steers a terminal in it; a trap after half of the work")
            .read("errors/failed/controls", that(|answer| said(answer, "failed")))
            .read("errors/invalid/long", that(|answer| said(answer, "invalid")))
            .read("errors/denied/long", that(|answer| said(answer, "denied")))
            .read("errors/unavailable/long", that(|answer| said(answer, "unavailable")))
            .read("count-trap", Expect::Kind(&["trap"]))
            .stopped_by(&["words"]),
        imp("RES-08", "an answer that is another one each time")
            .act(|scene| {
                let [one, other] = ["tick", "tick"].map(|reference| text(&scene.read(reference)).map(str::to_owned));
                assert!(one.is_some() && one != other, "{one:?} {other:?}");
                "each answer, as it is given".to_owned()
            })
            .stopped(Stops::Structure("that content is true, or stays the same, is not promised")),
        imp("RES-09", "a provider says that its answer may be kept for ever, by anyone")
            .read("fresh", that(private))
            .stopped_by(&["fresh"]),
    ]
}

/// What breaks a rule is gone, and the rest is there.
fn undressed(answer: &Answer) -> Result<String, String> {
    let contents = answer.as_ref().ok().and_then(|result| result.pointer("/contents/0"));
    let contents = contents.ok_or_else(|| format!("{answer:?}"))?;
    if contents.get("mimeType").is_some() {
        return Err(format!("its MIME type is passed on: {contents}"));
    }
    let keys = contents["_meta"].as_object().map(|meta| meta.keys().map(String::as_str).collect::<Vec<_>>());
    if keys.as_deref() != Some(&["com.example/fine", "dev.belljar/digest", "dev.belljar/mount"]) {
        return Err(format!("other metadata than its own and belljar's: {contents}"));
    }
    Ok("the text, without MIME type and false metadata".to_owned())
}

/// A provider's words, cut, clean, and told as its words.
fn said(answer: &Answer, kind: &str) -> Result<String, String> {
    let error = answer.as_ref().err().ok_or_else(|| format!("{answer:?}"))?;
    error_of(error, error.data["mount"].as_str().unwrap_or_default(), &[kind])?;
    if error.message.chars().count() > 1200 {
        return Err(format!("a message of {} characters", error.message.chars().count()));
    }
    if !error.message.contains("the provider") {
        return Err(format!("not told as the provider's words: {}", error.message));
    }
    if let Some(text) =
        error.data.as_object().into_iter().flatten().filter_map(|(_, v)| v.as_str()).find(|t| !is_clean(t))
    {
        return Err(format!("not clean: {text:?}"));
    }
    Ok(kind.to_owned())
}

/// Nothing in an answer lets anyone keep it for others, or for long.
fn private(answer: &Answer) -> Result<String, String> {
    let result = answer.as_ref().map_err(ToString::to_string)?;
    let long = |value: &Value| value.as_u64().is_some_and(|ms| ms > 3_600_000);
    if result.to_string().contains("public") || long(&result["ttlMs"]) || long(&result["_meta"]["ttlMs"]) {
        return Err(format!("others may keep it: {result}"));
    }
    Ok("the text, for the one who asked, and for an hour".to_owned())
}
