//! Completion of template variables in the real server. The values come from the provider, or from its list if it
//! exports no completion. belljar refuses wrong requests without a call of the provider.

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Wire, wait_until};
use serde_json::{Value, json};

use crate::support::{assert_clean, attack, kind, reached, serve, site};

const INVALID_PARAMS: i64 = -32602;

/// The parameters of a completion, with the known values of other variables.
fn params(template: &str, name: &str, value: &str, known: Value) -> Value {
    json!({
        "ref": { "type": "ref/resource", "uri": template },
        "argument": { "name": name, "value": value },
        "context": { "arguments": known }
    })
}

fn complete<W: Wire>(client: &mut Client<W>, template: &str, name: &str, value: &str) -> Result<Value, RpcError> {
    let result = client.request("completion/complete", params(template, name, value, json!({})))?;
    Ok(result["completion"].clone())
}

fn values(completion: &Value) -> Vec<&str> {
    completion["values"].as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
}

/// A site with two providers: `fixture`, which exports completion, and `sized`, which does not.
fn two_providers(config: &str) -> Site {
    let site = site(&format!("list-time = \"60s\"\n[mounts.fixture]\nuri = \"test://\"\n{config}"));
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_sized", "sized.wasm");
    site
}

/// A template of `fixture`.
const FIXTURE: &str = "test://template/{id}/data";
/// A template of `sized`.
const SIZED: &str = "belljar://sized/{kind}/{bytes}";

/// Completes with both providers, and sends wrong requests.
fn check<W: Wire>(client: &mut Client<W>) {
    let capabilities = &client.greeting["capabilities"];
    assert!(capabilities["completions"].is_object(), "{}", client.greeting);

    // Values from the provider.
    let all = complete(client, FIXTURE, "id", "").unwrap();
    assert_eq!((values(&all).len(), &all["total"], &all["hasMore"]), (100, &json!(150), &json!(true)));
    let some = complete(client, FIXTURE, "id", "12").unwrap();
    assert_eq!((values(&some).len(), &some["hasMore"]), (10, &json!(false)), "{some}");

    // Values from the list.
    let kinds = complete(client, SIZED, "kind", "").unwrap();
    assert_eq!(kinds, json!({ "values": ["blob", "text"], "total": 2, "hasMore": false }));
    assert_eq!(values(&complete(client, SIZED, "kind", "T").unwrap()), ["text"]);
    for (known, expected) in [
        (json!({ "kind": "text" }), &["1024", "1048576"][..]),
        (json!({ "kind": "blob" }), &["1048576"]),
        (json!({ "kind": "nothing" }), &[]),
        (json!({ "another": "text" }), &["1024", "1048576"]),
    ] {
        let result = client.request("completion/complete", params(SIZED, "bytes", "10", known.clone())).unwrap();
        assert_eq!(values(&result["completion"]), expected, "{known}");
    }

    for (template, name, expected) in [
        (FIXTURE, "ID", "\"id\""),
        (SIZED, "", "\"kind\", \"bytes\""),
        ("test://template/{other}/data", "other", "\"test://template/{other}/data\""),
        ("belljar://nowhere/{x}", "x", "\"belljar://nowhere/{x}\""),
        ("belljar://sized/text/1024", "x", "resources/templates/list"),
        ("{+any}", "any", "\"{+any}\""),
        ("", "x", "\"\""),
    ] {
        let error = complete(client, template, name, "").unwrap_err();
        assert_eq!(error.code, INVALID_PARAMS, "{template} {name}: {error}");
        assert!(error.message.contains(expected), "{template} {name}: {error}");
    }
    let prompt = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "x", "value": "" } });
    for (bad, expected) in [
        (prompt, "there is no prompt \"x\""),
        (json!({}), "ref/resource"),
        (
            json!({ "ref": { "type": "ref/tool", "uri": "x" }, "argument": { "name": "x", "value": "" } }),
            "ref/resource",
        ),
        (
            json!({ "ref": { "type": "ref/resource", "uri": FIXTURE }, "argument": { "name": "id", "value": 5 } }),
            "argument",
        ),
        (json!({ "ref": { "type": "ref/resource", "uri": FIXTURE } }), "argument"),
    ] {
        let error = client.request("completion/complete", bad.clone()).unwrap_err();
        assert_eq!(error.code, INVALID_PARAMS, "{bad}: {error}");
        assert!(error.message.contains(expected), "{bad}: {error}");
    }
}

#[test]
fn completion_works_in_both_eras_over_both_transports() {
    let site = two_providers("");
    let server = site.http();
    for era in Era::ALL {
        check(&mut site.stdio(era));
        check(&mut server.client(era));
    }
}

/// If the list is longer than the bounds of the search, or has more values than an answer, `hasMore` is true.
#[test]
fn a_long_listing_is_completed_within_bounds() {
    for (count, shown, total) in [(150, 100, json!(150)), (30_000, 100, Value::Null)] {
        let site = two_providers(&format!("[mounts.sized]\nenv = {{ SIZED_COUNT = \"{count}\" }}\n"));
        let mut client = serve(&site);
        // On a busy machine, the first search may examine fewer entries within its time.
        let all = wait_until("a completion from the whole listing", || {
            let all = complete(&mut client, "belljar://sized/n/{number}", "number", "").unwrap();
            let is_whole = (values(&all).len(), &all["total"], &all["hasMore"]) == (shown, &total, &json!(true));
            if is_whole { Ok(all) } else { Err(all.to_string()) }
        });
        assert_eq!(values(&all)[..2], ["000001", "000002"]);
        let few = complete(&mut client, "belljar://sized/n/{number}", "number", "00014").unwrap();
        assert_eq!(values(&few).len(), 10, "{few}");
        assert_eq!(few["hasMore"], json!(count == 30_000), "{few}");
    }
}

/// A site with a hostile guest whose completion misbehaves as `how` says.
fn hostile_guest(how: &str, more: &str) -> Site {
    site(&format!(
        "list-time = \"60s\"\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_TEMPLATES = \"verbs\", HOSTILE_COMPLETE = {how:?} }}\n{more}"
    ))
}

/// A template of the hostile guest.
const TEMPLATE: &str = "belljar://hostile/text/{length}";

#[test]
fn a_provider_that_hangs_or_fails_is_stopped_and_reported() {
    for how in ["loop", "sleep"] {
        let site = hostile_guest(how, "[mounts.hostile.limits]\ntime = \"1s\"\nfuel = 1_000_000_000_000\n");
        let mut client = serve(&site);
        let attacked = attack(&mut client, "completion/complete", params(TEMPLATE, "length", "", json!({})));
        assert_eq!(reached(&attacked.answer.unwrap_err(), "hostile").limit, "time", "{how}");
    }
    for (how, expected) in [("trap", "trap"), ("failed", "failed")] {
        let mut client = serve(&hostile_guest(how, ""));
        let error = complete(&mut client, TEMPLATE, "length", "").unwrap_err();
        assert_eq!(
            (error.code, kind(&error), &error.data["mount"]),
            (INTERNAL, expected, &json!("hostile")),
            "{error}"
        );
    }
}

#[test]
fn suggestions_are_cleaned_counted_and_cut() {
    for how in ["many", "boast", "modest", "long", "controls", "twice", "echo"] {
        let mut client = serve(&hostile_guest(how, ""));
        let all = match complete(&mut client, TEMPLATE, "length", "v") {
            Ok(all) => all,
            // These suggestions have more bytes than an answer may have.
            Err(error) => {
                assert_eq!((how, kind(&error)), ("long", "limit"), "{error}");
                continue;
            }
        };
        let values = values(&all);
        assert!(values.len() <= 100, "{how}: {}", values.len());
        values.iter().for_each(|value| assert_clean(value));
        assert!(values.iter().all(|value| value.chars().count() <= 2048), "{how}");
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), values.len(), "{how}: {values:?}");
        if let Some(total) = all["total"].as_u64() {
            assert!(total >= values.len() as u64, "{how}: {all}");
        }
    }
}

/// belljar refuses a completion for a template that the provider does not list. The record contains each call.
#[test]
fn a_provider_completes_only_listed_templates() {
    let site = hostile_guest("echo", "");
    let mut client = serve(&site);
    for (template, name) in [("belljar://hostile/secret/{x}", "x"), ("belljar://hostile/text/{length}", "other")] {
        complete(&mut client, template, name, "").unwrap_err();
    }
    complete(&mut client, TEMPLATE, "length", "1").unwrap();
    client.close();
    let completed = site.audit().into_iter().filter(|record| record["operation"] == "complete").count();
    assert_eq!(completed, 1);
}

/// If the list of templates fails, the error is "unavailable", not "no such template".
#[test]
fn templates_that_cannot_be_listed_are_unavailable() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_TEMPLATES = \"trap\" }\n");
    let mut client = serve(&site);
    let error = complete(&mut client, TEMPLATE, "length", "").unwrap_err();
    assert_eq!((error.code, kind(&error)), (INTERNAL, "unavailable"), "{error}");
}
