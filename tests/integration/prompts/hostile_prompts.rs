//! Hostile rows about prompts: messages that are not what they claim, arguments that no prompt has, and prompts that
//! policy hides.

use serde_json::{Value, json};

use crate::expect::{Answer, INVALID_PARAMS, cut, is_clean};
use crate::http_grants::holding;
use crate::provider_tools::{GUEST, guest, names, notices, refused, upstream};
use crate::row::{Guest, Row, Stops};
use crate::running_site::RowContext;
use crate::tools::{listed, shown};

/// A row whose mount has these prompts. Each call of a prompt does what `how` says.
fn prompts(id: &'static str, attack: &'static str, prompts: Value) -> Row {
    guest(id, attack, &[("PROMPTS", prompts)])
}

/// The prompt `talk`, whose argument `how` says what it does.
fn talk() -> Value {
    json!([{ "name": "talk", "arguments": [{ "name": "how", "required": true }, { "name": "more" }] }])
}

/// Gets the prompt `name` of the row's mount.
fn get(context: &RowContext<'_>, name: &str, arguments: Value) -> Answer {
    let name = format!("{}_{name}", context.name(""));
    context.request("prompts/get", json!({ "name": name, "arguments": arguments }))
}

/// Gets the prompt `talk`, which does what `how` says.
fn give(context: &RowContext<'_>, how: Value) -> Answer {
    get(context, "talk", json!({ "how": how.to_string() }))
}

/// The prompts of the row's mount.
fn own(context: &RowContext<'_>) -> Vec<Value> {
    let all = listed(context.stdio(), "prompts/list", "prompts", 9);
    all.into_iter().filter(|prompt| prompt["_meta"]["dev.belljar/mount"] == *context.name("")).collect()
}

pub(crate) fn rows() -> Vec<Row> {
    let (upstream, base, grant) = upstream("[\"GET\"]");
    let arguments = guest(
        "PROMPT-01",
        "arguments that a prompt does not have, or lacks, or that are no texts",
        &[
            ("PROMPTS", json!([{ "name": "talk", "arguments": [{ "name": "a", "required": true }, { "name": "b" }] }])),
            ("GIVE", json!({ "do": [{ "get": base }], "content": [{ "text": "hello" }] })),
        ],
    )
    .config(&grant)
    .act(move |context| {
        for wrong in [
            json!({}),
            json!({ "b": "1" }),
            json!({ "a": "1", "c\u{202e}": "2" }),
            json!({ "A": "1" }),
            json!({ "a": 1 }),
            json!({ "a": null }),
            json!({ "a": ["x"] }),
            json!({ "a": { "x": "y" } }),
        ] {
            let error = get(context, "talk", wrong.clone()).expect_err("wrong arguments");
            assert_eq!(error.code, INVALID_PARAMS, "{wrong}: {error}");
            assert!(is_clean(&error.message), "{error}");
        }
        assert_eq!(upstream.requests().len(), 0, "the provider was called");
        let fine = get(context, "talk", json!({ "a": "1" }));
        assert!(fine.is_ok() && upstream.requests().len() == 1, "{}", shown(&fine));
        "refused without a call".to_owned()
    })
    .stopped(Stops::Structure("arguments are compared with the definition before the call"));
    let png = "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR";
    vec![
        holding(arguments, ()),
        prompts("PROMPT-02", "a prompt of 1,001 messages, and one of none", talk())
            .act(|context| {
                let of = |times: u32| give(context, json!({ "content": [{ "text": "x" }], "times": times }));
                assert_eq!(of(1000).expect("1,000 messages")["messages"].as_array().map(Vec::len), Some(1000));
                refused(&of(0), "bad-output");
                refused(&of(1001), "bad-output")
            })
            .stopped_by(&["contents-count"]),
        prompts("PROMPT-03", "a message that links to a resource of another mount", talk())
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://prompt-03/inner/\"")
            .act(|context| {
                for is in ["embedded", "link"] {
                    let message = json!({ "content": [{ "is": is, "to": "inner/ok", "name": "n" }] });
                    refused(&give(context, message), "bad-output");
                }
                "refused".to_owned()
            })
            .stopped_by(&["namespace"]),
        prompts("PROMPT-04", "messages with pictures that are none, and names with dot segments", talk())
            .act(move |context| {
                let good = give(context, json!({ "content": [{ "is": "image", "mime": "image/png", "data": png }] }));
                assert!(good.is_ok(), "{}", shown(&good));
                refused(&give(context, json!({ "content": [{ "is": "link", "to": "../witness/x", "name": "n" }] })), "bad-output");
                refused(&give(context, json!({ "content": [{ "is": "image", "mime": "image/png", "data": "<html>" }] })), "bad-output")
            })
            .stopped_by(&["media"]),
        prompts(
            "PROMPT-05",
            "names and texts of prompts with hidden characters, and the same name or argument twice",
            json!([
                { "name": "\u{440}rompt" }, { "name": "a b" }, { "name": "" }, { "name": "x\u{202e}" }, { "name": "y".repeat(60) },
                { "name": "twins", "arguments": [{ "name": "a" }, { "name": "a" }] },
                { "name": "strange", "arguments": [{ "name": "a\u{200b}" }] },
                { "name": "many", "arguments": (0..33).map(|n| json!({ "name": format!("a{n}") })).collect::<Vec<_>>() },
                { "name": "same", "title": "t\u{202e}\u{1b}[31m", "description": "d\u{200b}\u{e0041}",
                  "arguments": [{ "name": "a", "title": "x\u{2066}", "description": "y\u{1b}[31m" }] },
                { "name": "same" },
            ]),
        )
        .act(|context| {
            let all = own(context);
            assert_eq!(names(&all), [format!("{}_same", context.name(""))]);
            assert!(is_clean(&all[0].to_string()) && all[0]["title"].is_string(), "{}", all[0]);
            let said = notices(context, "prompts/list");
            assert!(is_clean(&said), "{said}");
            cut(&said)
        })
        .stopped_by(&["tool-name", "sanitising"]),
        prompts("PROMPT-06", "more prompts than a mount may have, and suggestions without end", json!([{ "name": "p", "times": 10_000 }]))
            .mount("other", Guest::Built(GUEST))
            .config("env = { COMPLETE = \"100000\", PROMPTS = \"[{\\\"name\\\":\\\"talk\\\",\\\"arguments\\\":[{\\\"name\\\":\\\"a\\\"}]}]\" }")
            .act(|context| {
                assert_eq!(own(context).len(), 0, "prompts of the crowd");
                let said = notices(context, "prompts/list");
                assert!(said.contains("the limit is 128"), "{said}");
                let to = json!({ "type": "ref/prompt", "name": format!("{}_talk", context.name("other")) });
                let asked = json!({ "ref": to, "argument": { "name": "a", "value": "" } });
                let answer = context.request("completion/complete", asked);
                let values = answer.as_ref().map_or(0, |given| given["completion"]["values"].as_array().map_or(0, Vec::len));
                assert!(values <= 100, "{values} values");
                cut(&said)
            })
            .stopped_by(&["entries"])
            .keeps(64),
        prompts("PROMPT-07", "`_meta` in the names of the protocol, and a prompt that crashes", json!([
            { "name": "talk", "arguments": [{ "name": "how" }], "meta": {
                "ui": { "resourceUri": "ui://victim/x" }, "traceparent": "1", "dev.belljar/mount": "\"victim\"", "com.example/x": "1" } }]))
            .act(|context| {
                let wanted = json!({ "com.example/x": 1, "dev.belljar/mount": context.name("") });
                assert_eq!(own(context)[0]["_meta"], wanted);
                refused(&give(context, json!({ "do": [{ "trap": 1 }] })), "trap");
                let meta = json!({ "ui": { "csp": {} }, "dev.belljar/mount": "\"victim\"" });
                let given = give(context, json!({ "content": [{ "is": "embedded", "to": "x", "meta": meta }] })).expect("a message");
                let meta = &given["messages"][0]["content"]["resource"]["_meta"];
                assert!(meta["ui"].is_null() && meta["dev.belljar/mount"] == *context.name(""), "{given}");
                "dropped".to_owned()
            })
            .stopped_by(&["fields"]),
        prompts("PROMPT-08", "a prompt that policy hides", json!([{ "name": "open" }, { "name": "hidden", "arguments": [{ "name": "a" }] }]))
            .settings(
                "[[allow]]\nwho = { user = \"local\" }\nwhat = \"belljar://**\"\n[[deny]]\nwho = { user = \"local\" }\nwhat = \"belljar://prompt-08/hidden\"\ndo = [\"prompt\"]",
            )
            .act(|context| {
                assert_eq!(names(&own(context)), [format!("{}_open", context.name(""))]);
                let answer = |name: &str| {
                    let get = get(context, name, json!({ "a": 1 })).expect_err(name);
                    let again = self::get(context, name, json!({ "b": "1" })).expect_err(name);
                    let to = json!({ "type": "ref/prompt", "name": format!("{}_{name}", context.name("")) });
                    let complete = context.request("completion/complete", json!({ "ref": to, "argument": { "name": "a", "value": "" } }));
                    format!("{get} {} {again} {} {}", get.data, again.data, shown(&complete)).replace(name, "NAME")
                };
                assert_eq!(answer("hidden"), answer("absent"));
                cut(&answer("hidden"))
            })
            .stopped_by(&["policy"]),
    ]
}
