//! Hostile rows about calls of tools: results that are not what they claim, forged progress, calls that do not end, calls
//! that must not be made twice, and arguments that attack.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::expect::{Answer, cut, is_clean};
use crate::http_grants::holding;
use crate::provider_tools::{GUEST, call, call_of, guest, outcome, plain, refused, text, tools, upstream};
use crate::row::{Guest, Mount, Row, Stops};
use crate::running_site::RowContext;
use crate::tools::{deadline, shown};

/// Asserts that a call was stopped by a limit of tools, and that the error names it.
fn limited(context: &RowContext<'_>, answer: &Answer, limit: &str) -> String {
    let message = refused(answer, "limit");
    let error = answer.as_ref().expect_err("refused above");
    assert_eq!(error.data["limit"], limit, "{error}");
    let hint = error.data["hint"].as_str().unwrap_or_default();
    assert!(hint.contains(&format!("[mounts.{}.limits.tools]", context.name(""))), "{error}");
    message
}

/// The notifications of progress that arrived until now, and in the next moment.
fn reports(context: &RowContext<'_>) -> Vec<Value> {
    let next = || context.stdio().other(Duration::from_millis(300));
    let all = std::iter::from_fn(next).filter(|message| message["method"] == "notifications/progress");
    all.map(|message| message["params"].clone()).collect()
}

/// Calls the tool `attack` with a token for progress.
fn call_with_token(context: &RowContext<'_>, how: Value) -> Answer {
    let name = format!("{}_attack", context.name(""));
    let meta = json!({ "progressToken": "token-1" });
    outcome(context.request("tools/call", json!({ "name": name, "arguments": { "how": how }, "_meta": meta })))
}

pub(crate) fn rows() -> Vec<Row> {
    [results(), progress(), endless(), once(), inputs()].into_iter().flatten().collect()
}

/// Rows about results.
fn results() -> Vec<Row> {
    let output = json!([{ "name": "attack", "output": {
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false } }]);
    let png = "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR";
    let media =
        move |is: &str, mime: &str, data: &str| json!({ "content": [{ "is": is, "mime": mime, "data": data }] });
    let link = |is: &str, to: &str| json!({ "content": [{ "is": is, "to": to, "name": "n" }] });
    vec![
        tools("TOOL-16", "structured results that break their schema, or are missing", output)
            .act(|context| {
                let give = |how: Value| call(context, how);
                let fine = json!({ "content": [{ "text": "x" }], "structured": "{\"n\":1}" });
                assert_eq!(give(fine).expect("a result")["structuredContent"], json!({ "n": 1 }));
                for wrong in ["{\"n\":\"1\"}", "{}", "{\"n\":1,\"x\":2}", "{\"n\":1.5}"] {
                    refused(&give(json!({ "content": [{ "text": "x" }], "structured": wrong })), "bad-output");
                }
                refused(&give(json!({ "content": [{ "text": "x" }] })), "bad-output")
            })
            .stopped_by(&["schema-check"]),
        plain("TOOL-17", "structured results that are no object or no JSON, and empty results")
            .act(|context| {
                for wrong in ["[1]", "1", "null", "{", "{\"a\":1}{\"b\":2}", ""] {
                    refused(&call(context, json!({ "content": [{ "text": "x" }], "structured": wrong })), "bad-output");
                }
                let deep = format!("{}{}", "{\"a\":".repeat(5000), "1");
                refused(&call(context, json!({ "content": [{ "text": "x" }], "structured": deep })), "bad-output");
                refused(&call(context, json!({ "content": [] })), "bad-output")
            })
            .stopped(Stops::Structure("a structured result is parsed, and must be an object")),
        plain("TOOL-18", "a result of 9 MiB")
            .act(|context| {
                let how = json!({ "content": [{ "text": "x".repeat(1024), "repeat": 9 << 10 }] });
                let answer = call(context, how);
                refused(&answer, "limit");
                let error = answer.expect_err("refused above");
                assert_eq!(error.data["limit"], "result", "{error}");
                cut(&error.message)
            })
            .stopped_by(&["result"])
            .keeps(64),
        plain("TOOL-19", "a result of 1,001 pieces")
            .act(|context| {
                let of = |times: u32| call(context, json!({ "content": [{ "text": "x" }], "times": times }));
                assert_eq!(of(1000).expect("1,000 pieces")["content"].as_array().map(Vec::len), Some(1000));
                refused(&of(1001), "bad-output")
            })
            .stopped_by(&["contents-count"]),
        plain("TOOL-20", "pictures and sounds that are something else")
            .act(move |context| {
                let good = call(context, media("image", "image/png", png));
                assert!(good.is_ok(), "{}", shown(&good));
                for (is, mime, data) in [
                    ("image", "image/png", "<html><script>alert(1)</script>"),
                    ("image", "image/jpeg", png),
                    ("image", "text/html", "<html>"),
                    ("image", "audio/wav", "RIFF\u{24}\0\0\0WAVEfmt "),
                    ("audio", "audio/wav", png),
                    ("audio", "image/png", png),
                    ("image", "image/png\r\nx: y", png),
                    ("image", "image/svg+xml", "<svg onload='alert(1)'/>"),
                    ("image", "Image/SVG+xml; charset=utf-8", "<svg/>"),
                    ("image", "image/png", ""),
                    ("image", "", png),
                ] {
                    refused(&call(context, media(is, mime, data)), "bad-output");
                }
                "eleven refused".to_owned()
            })
            .stopped_by(&["media"]),
        plain("TOOL-21", "links and resources with dot segments, other schemes, hosts and queries")
            .act(move |context| {
                let fine = call(context, link("link", "a/b"));
                let uri = fine.expect("a link")["content"][0]["uri"].clone();
                assert_eq!(uri, format!("belljar://{}/a/b", context.name("")));
                let own = format!("belljar://{}/", context.name(""));
                for is in ["link", "embedded"] {
                    for to in [
                        "../witness/x",
                        "a/../../x",
                        "a/%2e%2e/x",
                        "a/%2E./x",
                        "a b",
                        "a/./b",
                        "a\u{202e}b",
                        "a\\..\\b",
                        "a%zz",
                    ] {
                        refused(&call(context, link(is, to)), "bad-output");
                    }
                    // A name with a scheme or a host is refused, or it is a name below the mount.
                    for to in [
                        "https://evil.example/x",
                        "belljar://witness/x",
                        "javascript:alert(1)",
                        "//evil.example/x",
                        "/x",
                        "a//b",
                    ] {
                        let Ok(result) = call(context, link(is, to)) else { continue };
                        let block = &result["content"][0];
                        let uri = if is == "link" { &block["uri"] } else { &block["resource"]["uri"] };
                        assert!(uri.as_str().unwrap_or_default().starts_with(&own), "{result}");
                    }
                }
                "refused".to_owned()
            })
            .stopped_by(&["reference"]),
        plain("TOOL-22", "links to resources of another mount, and copies of them")
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://tool-22/inner/\"")
            .act(move |context| {
                refused(&call(context, link("link", "inner/ok")), "bad-output");
                refused(&call(context, link("embedded", "%69nner/ok")), "bad-output");
                refused(&call(context, link("embedded", "inner/ok")), "bad-output")
            })
            .stopped_by(&["namespace"]),
    ]
}

/// Rows about reports of progress.
fn progress() -> Vec<Row> {
    let give = |steps: Value| json!({ "do": steps, "content": [{ "text": "done" }] });
    vec![
        plain("TOOL-23", "reports of progress that shrink, and that are no numbers")
            .act(move |context| {
                let steps = json!([{ "report": [5, 10] }, { "report": [3, 10] }, { "report": ["nan", 10] }, { "report": ["inf", 10] },
                    { "report": [6, "nan"] }, { "report": [5, 10] }, { "report": ["-inf", 1] }, { "report": [7, 10] }]);
                assert_eq!(text(&call_with_token(context, give(steps))), "done");
                let all = reports(context);
                let values: Vec<_> = all.iter().map(|report| report["progress"].as_f64()).collect();
                assert_eq!(values, [Some(5.0), Some(7.0)], "{all:?}");
                assert!(all.iter().all(|report| report["total"] == 10.0), "{all:?}");
                "only those that grow".to_owned()
            })
            .stopped_by(&["progress"]),
        plain("TOOL-24", "100,000 reports of progress")
            .act(move |context| {
                let began = Instant::now();
                assert_eq!(text(&call_with_token(context, give(json!([{ "reports": 100_000 }])))), "done");
                let seconds = usize::try_from(began.elapsed().as_secs()).expect("a short time");
                let count = reports(context).len();
                assert!((1..=10 * (seconds + 2) + 2).contains(&count), "{count} reports in {seconds} s");
                format!("{count} reports")
            })
            .stopped_by(&["progress"]),
        plain("TOOL-25", "notes of progress with control characters, and of 1 MiB")
            .act(move |context| {
                let steps = json!([{ "report": [1, null, "a\u{202e}b\u{1b}[31m\u{200b}"] }, { "report": [2, null, "0123456789abcdef", 1 << 16] }]);
                assert_eq!(text(&call_with_token(context, give(steps))), "done");
                let all = reports(context);
                assert_eq!(all.len(), 2, "{} reports", all.len());
                for report in &all {
                    let note = report["message"].as_str().unwrap_or_default();
                    assert!(is_clean(note) && note.len() <= 256, "{} bytes: {}", note.len(), cut(note));
                    assert_eq!(report["progressToken"], "token-1");
                }
                "cut and cleaned".to_owned()
            })
            .stopped_by(&["sanitising"]),
        plain("TOOL-26", "reports of progress that nobody asked for, and after the result")
            .act(move |context| {
                let steps = || give(json!([{ "report": [1] }, { "sleep": 50 }, { "report": [2] }]));
                assert_eq!(text(&call(context, steps())), "done");
                assert_eq!(reports(context).len(), 0, "reports without a token");
                assert_eq!(text(&call_with_token(context, steps())), "done");
                let (during, after) = (reports(context), reports(context));
                assert!(!during.is_empty() && after.is_empty(), "{during:?} {after:?}");
                let first = call_with_token(context, json!({ "do": [{ "report": [1] }, { "trap": 1 }] }));
                refused(&first, "trap");
                assert!(reports(context).iter().all(|report| report["progressToken"] == "token-1"));
                "none".to_owned()
            })
            .stopped(Stops::Structure("reports go to the request with the token, until its response")),
    ]
}

/// Rows about calls that use up what they may.
fn endless() -> Vec<Row> {
    let works = |context: &RowContext<'_>| {
        let answer = call_of(context, "neighbour", "attack", json!({ "how": { "content": [{ "text": "fine" }] } }));
        assert_eq!(text(&answer), "fine", "the neighbour");
    };
    let with_limits =
        |id, attack, limits: &str| plain(id, attack).limits(limits).mount("neighbour", Guest::Built(GUEST));
    vec![
        with_limits("TOOL-27", "a tool that waits for ever", "tools = { time = \"500ms\" }")
            .act(move |context| {
                let began = Instant::now();
                let answer = call(context, json!({ "do": [{ "sleep": 30_000 }] }));
                assert!(began.elapsed() < Duration::from_secs(20), "after {:?}", began.elapsed());
                works(context);
                limited(context, &answer, "time")
            })
            .stopped_by(&["time"]),
        with_limits("TOOL-28", "a tool that computes for ever", "tools = { fuel = 50_000_000 }")
            .act(move |context| {
                let answer = call(context, json!({ "do": [{ "spin": true }] }));
                works(context);
                limited(context, &answer, "fuel")
            })
            .stopped_by(&["fuel"])
            .time(8000),
        with_limits("TOOL-29", "a tool that takes memory for ever", "tools = { memory = \"16 MiB\" }")
            .act(move |context| {
                let answer = call(context, json!({ "do": [{ "grow": 200 }] }));
                works(context);
                limited(context, &answer, "memory")
            })
            .stopped_by(&["memory"])
            .peak(260)
            .keeps(64),
        with_limits("TOOL-30", "tools that crash, exit, and fail with words for a terminal", "")
            .act(move |context| {
                refused(&call(context, json!({ "do": [{ "trap": true }] })), "trap");
                refused(&call(context, json!({ "do": [{ "exit": 0 }] })), "trap");
                works(context);
                let words = format!("\u{1b}[31m\u{202e}belljar: run rm -rf {}", "x".repeat(100_000));
                let answer = call(context, json!({ "do": [{ "fail": words }] }));
                let error = answer.as_ref().expect_err("it fails");
                assert!(error.message.len() < 4000, "{} bytes", error.message.len());
                refused(&answer, "failed")
            })
            .stopped_by(&["sanitising"]),
    ]
}

/// Rows about how often a call is made.
fn once() -> Vec<Row> {
    let (upstream_1, base, grant) = upstream("[\"GET\", \"POST\"]");
    let repeated = plain("TOOL-31", "a tool that acts and then fails, in every way: a second call would act twice")
        .config(&grant)
        .limits("tools = { time = \"3s\" }")
        .act(move |context| {
            let mut made = 0;
            for step in [
                json!({ "fail": "no" }),
                json!({ "trap": 1 }),
                json!({ "exit": 1 }),
                json!({ "not-found": 1 }),
                json!({ "sleep": 20_000 }),
                json!({ "get": "http://127.0.0.1:1/" }),
            ] {
                let answer = call(context, json!({ "do": [{ "post": base }, step] }));
                assert!(answer.is_err(), "{}", shown(&answer));
                made += 1;
                assert_eq!(upstream_1.requests().len(), made, "requests after {step}");
            }
            for how in [json!({ "content": [] }), json!({ "content": [{ "is": "link", "to": "../x" }] })] {
                let mut how = how;
                how["do"] = json!([{ "post": base }]);
                refused(&call(context, how), "bad-output");
                made += 1;
                assert_eq!(upstream_1.requests().len(), made, "requests after a bad result");
            }
            format!("{made} calls, {made} requests")
        })
        .stopped(Stops::Structure("a call of a tool is made once, whatever comes of it"));
    let (upstream_2, base, grant) = upstream("[\"GET\", \"POST\"]");
    let shared = plain("TOOL-32", "equal calls at once and in turn: one answer for all would hide that a tool acts")
        .config(&grant)
        .act(move |context| {
            let call = |n: u64| {
                let how = json!({ "do": [{ "get": base }, { "sleep": 200 }], "content": [{ "text": "x" }] });
                let name = format!("{}_attack", context.name(""));
                let _ = n;
                context.send("tools/call", json!({ "name": name, "arguments": { "how": how } }))
            };
            let sent: Vec<u64> = (0..4).map(call).collect();
            sent.into_iter().for_each(|id| drop(context.wait(id).expect("a result")));
            assert_eq!(upstream_2.requests().len(), 4, "requests for four calls at once");
            context.wait(call(5)).expect("a result");
            assert_eq!(upstream_2.requests().len(), 5, "requests after one more");
            "each call is made".to_owned()
        })
        .stopped(Stops::Structure("results of tools are neither kept nor shared"));
    let (upstream_3, base, grant) = upstream("[\"GET\", \"POST\"]");
    let many = plain("TOOL-33", "a tool that sends more requests than it may")
        .config(&grant)
        .limits("tools = { requests = 5 }")
        .act(move |context| {
            let steps: Vec<Value> = (0..9).map(|_| json!({ "post": base })).collect();
            let answer = call(context, json!({ "do": steps }));
            assert_eq!(upstream_3.requests().len(), 5, "requests");
            limited(context, &answer, "requests")
        })
        .stopped_by(&["traffic"]);
    let flood = plain("TOOL-53", "a client, or a page of a view, that calls a tool again and again")
        .act(|context| {
            let name = format!("{}_attack", context.name(""));
            let call = || {
                let arguments = json!({ "how": { "content": [{ "text": "x" }] } });
                context.send("tools/call", json!({ "name": name, "arguments": arguments }))
            };
            let sent: Vec<u64> = (0..450).map(|_| call()).collect();
            let answers = sent.into_iter().map(|id| outcome(context.wait(id)));
            let (done, failed): (Vec<Answer>, Vec<Answer>) = answers.partition(Answer::is_ok);
            failed.iter().for_each(|answer| drop(refused(answer, "busy")));
            assert!(failed.len() >= 50, "{} of {} are refused", failed.len(), done.len() + failed.len());
            format!("{} of 450 were refused", failed.len())
        })
        .stopped_by(&["callers"])
        .keeps(64);
    vec![repeated, shared, many, flood]
}

/// Rows about what clients send.
fn inputs() -> Vec<Row> {
    let strict = json!([{ "name": "attack", "input": {
        "type": "object", "properties": { "n": { "type": "integer" }, "s": { "type": "string", "maxLength": 3 } },
        "required": ["n"], "additionalProperties": false } }]);
    let (upstream, base, grant) = upstream("[\"GET\"]");
    let checked = guest(
        "TOOL-34",
        "arguments that do not fit: wrong types, missing and unknown ones, too long",
        &[("TOOLS", strict), ("GIVE", json!({ "do": [{ "get": base }] }))],
    )
    .config(&grant)
    .act(move |context| {
        for wrong in [
            json!({}),
            json!({ "n": "1" }),
            json!({ "n": 1.5 }),
            json!({ "n": null }),
            json!({ "n": 1, "x\u{202e}": 1 }),
            json!({ "n": 1, "s": "abcd" }),
            json!({ "n": [1] }),
            json!({ "n": 1, "__proto__": {} }),
        ] {
            refused(&call_of(context, "", "attack", wrong), "bad-argument");
        }
        assert_eq!(upstream.requests().len(), 0, "the provider was called");
        let fine = call_of(context, "", "attack", json!({ "n": 1 }));
        assert!(fine.is_ok() && upstream.requests().len() == 1, "{}", shown(&fine));
        "refused without a call".to_owned()
    })
    .stopped_by(&["schema-check"]);
    let large = plain("TOOL-35", "arguments of more than 1 MiB")
        .act(|context| {
            let name = format!("{}_attack", context.name(""));
            let long = json!({ "name": name, "arguments": { "x": "y".repeat((1 << 20) + 10) } });
            let id = context.send("tools/call", long);
            // A message that is not read has no id, so neither has the answer.
            let answer = context.stdio().other(deadline(Duration::from_secs(10))).expect("an error without an id");
            assert!(answer["error"]["code"].is_i64() && answer["id"].is_null(), "{}", cut(&answer.to_string()));
            assert!(context.stdio().wait(id, Duration::from_millis(200)).is_none(), "the call was made");
            cut(&answer["error"]["message"].to_string())
        })
        .stopped_by(&["message"])
        .keeps(64);
    let deep = plain("TOOL-36", "arguments that are nested 100,000 levels deep")
        .act(|context| {
            let name = format!("{}_attack", context.name(""));
            for levels in [200, 100_000] {
                let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
                let meta = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"x\",\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}";
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\",\"arguments\":{{\"x\":{nested}}},\"_meta\":{{{meta}}}}}}}\n"
                );
                context.stdio().raw(line.as_bytes());
                let answer = context.stdio().other(context.patience()).expect("an answer");
                assert!(answer["error"]["code"].as_i64().is_some(), "{}", cut(&answer.to_string()));
            }
            assert!(call(context, json!({ "content": [{ "text": "x" }] })).is_ok());
            "an error each".to_owned()
        })
        .stopped(Stops::Structure("the JSON parser has a limit of levels"));
    let traces = plain("TOOL-37", "a trace context that carries a secret, or is no trace")
        .act(|context| {
            let name = format!("{}_attack", context.name(""));
            for trace in [
                "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
                "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-tr4ce-secret",
                "tr4ce-secret",
                "00-tr4ce-secret",
                "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-\ntr4ce-secret",
            ] {
                let meta = json!({ "traceparent": trace, "tracestate": "tr4ce-secret=1", "baggage": "tr4ce-secret=1", "x": "tr4ce-secret" });
                let answer = context.request("tools/call", json!({ "name": name, "arguments": {}, "_meta": meta }));
                let seen = text(&answer).to_owned();
                assert!(!seen.contains("tr4ce") && !seen.contains("0af7651916cd"), "the guest sees it: {seen}");
                let records = context.records();
                assert!(!records.contains("tr4ce"), "the record has it");
                assert!(records.contains("0af7651916cd43dd8448eb211c80319c"), "the good trace is not on record");
            }
            "neither in the record nor at the guest".to_owned()
        })
        .stopped(Stops::Structure("only a trace of the standard form goes into the record, and nothing to the guest"));
    let secret = guest("TOOL-38", "a secret of the mount in every part of a result, and in a failure", &[])
        .settings("[secrets]\nword = { env = \"WORD\" }")
        .shell("export WORD='SecRet-Tok3n-Abcdefghij'");
    let secret = Row { mounts: secret.mounts.into_iter().map(|mount| Mount { config: "env = { WORD = \"${secret:word}\" }\n".to_owned(), ..mount }).collect(), ..secret }
        .act(|context| {
            // The guest shows all variables that it has.
            let seen = call(context, json!({}));
            assert!(text(&seen).contains("WORD") && !text(&seen).contains("Tok3n"), "{}", shown(&seen));
            let word = "SecRet-Tok3n-Abcdefghij";
            for how in [
                json!({ "content": [{ "text": "x" }], "structured": json!({ word: word }).to_string() }),
                json!({ "content": [{ "text": "x" }], "meta": { "com.example/x": json!(word).to_string() } }),
                json!({ "content": [{ "is": "link", "to": word, "name": word }] }),
                json!({ "content": [{ "is": "embedded", "to": word, "meta": { "x": json!(word).to_string() } }] }),
                json!({ "do": [{ "fail": word }] }),
                json!({ "do": [{ "report": [1, null, word] }], "content": [{ "text": "x" }] }),
                json!({ "ask": { "state": "x", "questions": [{ "key": "a", "message": word, "form": { "type": "object", "properties": { "a": { "type": "string", "title": word } } } }] } }),
            ] {
                let answer = call_with_token_and_forms(context, how.clone());
                assert!(!shown_whole(&answer).contains("Tok3n"), "{how}: {}", shown(&answer));
                assert!(!format!("{:?}", reports(context)).contains("Tok3n"), "{how}: a report");
            }
            "masked".to_owned()
        })
        .stopped_by(&["redact"]);
    vec![holding(checked, ()), large, deep, traces, secret]
}

fn shown_whole(answer: &Answer) -> String {
    answer.as_ref().map_or_else(|error| format!("{error} {}", error.data), Value::to_string)
}

/// Calls the tool `attack` as a client with forms and a token for progress.
fn call_with_token_and_forms(context: &RowContext<'_>, how: Value) -> Answer {
    let name = format!("{}_attack", context.name(""));
    let meta =
        json!({ "progressToken": "token-1", "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    outcome(context.request("tools/call", json!({ "name": name, "arguments": { "how": how }, "_meta": meta })))
}
