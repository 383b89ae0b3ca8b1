//! What no compiler would make: code that runs before or beside a call, memory in many places, answers that are no
//! answers. Each ends in its own mount, and the witness answers.

use belljar_tests::Site;
use serde_json::Value;

use crate::component::{Hand, apart, assemble, grow};
use crate::place::{attack_by_read, kind, serve, site, witness};

/// A site with a mount `hand` in it, with these limits.
fn place(hand: &Hand<'_>, limits: &str) -> Site {
    let site = site(&format!("[mounts.hand.limits]\n{limits}\n"));
    hand.mount(&site, "hand");
    site
}

/// A provider with these definitions.
fn has(fields: &str) -> Hand<'_> {
    Hand { fields, ..Hand::default() }
}

#[test]
fn a_plain_one_is_served() {
    let site = place(&Hand::default(), "");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://hand/any/thing"), "fine");
    assert_eq!(client.uris(), ["belljar://clock/utc"]);
}

/// The sum is what it is: just below the limit everything passes, however often.
#[test]
fn what_stays_below_its_limits_passes() {
    let three = apart(3);
    let read = grow(3) + &"(call $grow0) (call $grow1) (call $grow2)".repeat(3);
    let site = place(&three.hand(&read), "memory = \"13MiB\"");
    let mut client = serve(&site);
    for _ in 0..5 {
        assert_eq!(client.text("belljar://hand/x"), "fine");
    }
}

#[test]
fn traps_are_told_as_traps() {
    for (what, hand) in [
        ("in a call", Hand { read: "unreachable", ..Hand::default() }),
        ("at the start", Hand { fields: "(func $s unreachable) (start $s)", ..Hand::default() }),
        ("by a division", Hand { read: "(drop (i32.div_s (i32.const 1) (i32.const 0)))", ..Hand::default() }),
        ("by an address", Hand { read: "(drop (i32.load (i32.const 0x7fffffff)))", ..Hand::default() }),
        // Its name is in the component, and is the component's word.
        (
            "in a function with a name",
            Hand { read: "(call $evil)", ..has(r#"(func $evil (@name "EVIL\1b[31m") unreachable)"#) },
        ),
        ("by a place for the argument that is none", Hand { realloc: "(i32.const -1)", ..Hand::default() }),
    ] {
        let site = place(&hand, "");
        let mut client = serve(&site);
        let error = attack_by_read(&mut client, "belljar://hand/x").answer.expect_err(what);
        assert_eq!((kind(&error), &error.data["mount"]), ("trap", &Value::from("hand")), "{what}: {error}");
        // Neither a backtrace, nor a path of the host's, nor the component's own words.
        let told = error.message.replace("belljar://hand/x", "");
        assert!(!told.contains(['/', '\n']) && !told.contains("0x") && !told.contains("EVIL"), "{what}: {error}");
        assert!(told.len() < 300, "{what}: {error}");
    }
}

/// Components that cannot be mounted are told with the reason, and keep nothing else from being served.
#[test]
fn what_does_not_fit_is_not_served() {
    let other = r#"(component
        (core module $m (func (export "read") (result i32) (i32.const 1)))
        (core instance $m (instantiate $m))
        (func $read (result u32) (canon lift (core func $m "read")))
        (instance $i (export "read" (func $read)))
        (export "belljar:provider/resource-provider@0.1.0" (instance $i)))"#;
    let hollow = r#"(component (instance $i) (export "belljar:provider/resource-provider@0.1.0" (instance $i)))"#;
    let later = r#"(component (instance $i) (export "belljar:provider/resource-provider@0.2.0" (instance $i)))"#;
    let foreign = r#"(component
        (import "evil:host/shell@0.1.0" (instance $e))
        (export "belljar:provider/resource-provider@0.1.0" (instance $e)))"#;
    let many = |module: &str| format!("(core module $m {module})") + &"(core instance (instantiate $m))".repeat(100);
    let (instances, memories, tables) = (many(""), many("(memory 1)"), many("(table 1 funcref)"));
    let before = |before| Hand { before, ..Hand::default() }.assemble();
    let site = site("");
    let refused = [
        ("other", assemble(other), "does not fit the interface"),
        ("hollow", assemble(hollow), "does not fit the interface"),
        ("later", assemble(later), "resource-provider@0.2.0"),
        ("foreign", assemble(foreign), "evil:host/shell@0.1.0"),
        ("instances", before(&instances), "instances"),
        ("memories", before(&memories), "maximum of"),
        ("tables", before(&tables), "maximum of"),
    ];
    for (name, bytes, _) in &refused {
        site.drop_in(&format!("{name}.wasm"), bytes);
    }
    let mut client = serve(&site);
    let listed = site.run_json(&["list"]);
    let told = listed["refused"].as_array().unwrap();
    for (name, _, why) in &refused {
        let told = told.iter().find(|told| told["name"] == *name).unwrap_or_else(|| panic!("{name} is served"));
        let reason = told["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{name}: {reason}");
        let error = client.read(&format!("belljar://{name}/x")).expect_err(name);
        assert_eq!(kind(&error), "unavailable", "{name}: {error}");
        let log = client.wire().process.stderr();
        assert!(
            log.lines().any(|line| line.contains(&format!("\"{name}\" is not served")) && line.contains(why)),
            "{name}: {log}"
        );
    }
    assert_eq!(told.len(), refused.len());
    witness(&mut client);
}
