//! Completion: what a provider suggests, what is found in a listing where it suggests nothing, and what is refused before
//! any provider is asked.

use std::time::{Duration, Instant};

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Wire};
use serde_json::{Value, json};

use crate::place::{SLACK, assert_clean, attack, kind, reached, serve, site};

const INVALID_PARAMS: i64 = -32602;

/// The parameters of a completion, with what is known already.
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

/// A site with the fixture, which suggests, and `sized`, which does not.
fn both(config: &str) -> Site {
    let site = site(&format!("list-time = \"60s\"\n[mounts.fixture]\nuri = \"test://\"\n{config}"));
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_sized", "sized.wasm");
    site
}

const FIXTURE: &str = "test://template/{id}/data";
const SIZED: &str = "belljar://sized/{kind}/{bytes}";

fn check<W: Wire>(client: &mut Client<W>) {
    let has = &client.greeting["capabilities"];
    assert!(has["completions"].is_object(), "{}", client.greeting);

    // The provider's own.
    let all = complete(client, FIXTURE, "id", "").unwrap();
    assert_eq!((values(&all).len(), &all["total"], &all["hasMore"]), (100, &json!(150), &json!(true)));
    let some = complete(client, FIXTURE, "id", "12").unwrap();
    assert_eq!((values(&some).len(), &some["hasMore"]), (10, &json!(false)), "{some}");

    // From the listing.
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

    for (template, name, named) in [
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
        assert!(error.message.contains(named), "{template} {name}: {error}");
    }
    let prompt = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "x", "value": "" } });
    for (bad, named) in [
        (prompt, "no prompts"),
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
        assert!(error.message.contains(named), "{bad}: {error}");
    }
}

#[test]
fn in_both_eras_over_both_transports() {
    let site = both("");
    let server = site.http();
    for era in Era::ALL {
        check(&mut site.stdio(era));
        check(&mut server.client(era));
    }
}

/// More is listed than is looked at, or given: that is told.
#[test]
fn a_long_listing_is_completed_within_bounds() {
    for (count, shown, total) in [(150, 100, json!(150)), (30_000, 100, Value::Null)] {
        let site = both(&format!("[mounts.sized]\nenv = {{ SIZED_COUNT = \"{count}\" }}\n"));
        let mut client = serve(&site);
        let began = Instant::now();
        let all = complete(&mut client, "belljar://sized/n/{number}", "number", "").unwrap();
        assert!(began.elapsed() < Duration::from_secs(3) + SLACK, "{:?}", began.elapsed());
        assert_eq!((values(&all).len(), &all["total"], &all["hasMore"]), (shown, &total, &json!(true)), "{count}");
        assert_eq!(values(&all)[..2], ["000001", "000002"]);
        let few = complete(&mut client, "belljar://sized/n/{number}", "number", "00014").unwrap();
        assert_eq!(values(&few).len(), 10, "{few}");
        assert_eq!(few["hasMore"], json!(count == 30_000), "{few}");
    }
}

/// An imp that completes as `how` says.
fn imp(how: &str, more: &str) -> Site {
    site(&format!(
        "list-time = \"60s\"\n[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_TEMPLATES = \"verbs\", IMP_COMPLETE = {how:?} }}\n{more}"
    ))
}

const IMP: &str = "belljar://imp/text/{length}";

#[test]
fn a_provider_that_hangs_or_fails_is_stopped_and_told() {
    for how in ["loop", "sleep"] {
        let site = imp(how, "[mounts.imp.limits]\ntime = \"1s\"\nfuel = 1_000_000_000_000\n");
        let mut client = serve(&site);
        let attacked = attack(&mut client, "completion/complete", params(IMP, "length", "", json!({})));
        assert_eq!(reached(&attacked.answer.unwrap_err(), "imp").limit, "time", "{how}");
        assert!(attacked.took < Duration::from_secs(1) + SLACK, "{how}: {:?}", attacked.took);
    }
    for (how, expected) in [("trap", "trap"), ("failed", "failed")] {
        let mut client = serve(&imp(how, ""));
        let error = complete(&mut client, IMP, "length", "").unwrap_err();
        assert_eq!((error.code, kind(&error), &error.data["mount"]), (INTERNAL, expected, &json!("imp")), "{error}");
    }
}

#[test]
fn what_a_provider_suggests_is_cleaned_counted_and_cut() {
    for how in ["many", "boast", "modest", "long", "controls", "twice", "echo"] {
        let mut client = serve(&imp(how, ""));
        let all = match complete(&mut client, IMP, "length", "v") {
            Ok(all) => all,
            // As much as no answer may have.
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

/// Nobody puts a template before a provider that it does not list; each call that there was is on record.
#[test]
fn a_provider_is_asked_only_for_what_it_lists() {
    let site = imp("echo", "");
    let mut client = serve(&site);
    for (template, name) in [("belljar://imp/secret/{x}", "x"), ("belljar://imp/text/{length}", "other")] {
        complete(&mut client, template, name, "").unwrap_err();
    }
    complete(&mut client, IMP, "length", "1").unwrap();
    client.close();
    let completed = site.audit().into_iter().filter(|record| record["operation"] == "complete").count();
    assert_eq!(completed, 1);
}

/// A list of templates that cannot be had is no reason to say that a template does not exist.
#[test]
fn templates_that_cannot_be_listed_are_told_as_that() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { IMP_TEMPLATES = \"trap\" }\n");
    let mut client = serve(&site);
    let error = complete(&mut client, IMP, "length", "").unwrap_err();
    assert_eq!((error.code, kind(&error)), (INTERNAL, "unavailable"), "{error}");
}
