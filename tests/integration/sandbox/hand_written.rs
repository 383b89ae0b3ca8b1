//! Hand-written components that no compiler would produce, in the real binary: code that runs before a call, many memories,
//! malformed answers. Each failure affects only its own mount, and reads of the witness (a harmless mount) succeed.

use belljar_tests::Site;
use serde_json::Value;

use crate::support::component::{HandWritten, assemble, extra_memories, grow};
use crate::support::{attack_by_read, kind, serve, site, witness};

/// A site with the component mounted as `hand`, with these limits.
fn mounted(hand: &HandWritten<'_>, limits: &str) -> Site {
    let site = site(&format!("[mounts.hand.limits]\n{limits}\n"));
    hand.mount(&site, "hand");
    site
}

/// A provider whose core module has these additional definitions.
fn with_fields(fields: &str) -> HandWritten<'_> {
    HandWritten { fields, ..HandWritten::default() }
}

#[test]
fn a_plain_component_is_served() {
    let site = mounted(&HandWritten::default(), "");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://hand/any/thing"), "fine");
    assert_eq!(client.uris(), ["belljar://clock/utc"]);
}

/// The limit is for the sum of all memories of one call. Calls just below the limit succeed any number of times.
#[test]
fn memory_below_the_limit_passes() {
    let three = extra_memories(3);
    let read = grow(3) + &"(call $grow0) (call $grow1) (call $grow2)".repeat(3);
    let site = mounted(&three.with_read(&read), "memory = \"13MiB\"");
    let mut client = serve(&site);
    for _ in 0..5 {
        assert_eq!(client.text("belljar://hand/x"), "fine");
    }
}

#[test]
fn traps_are_reported_as_traps() {
    for (case, hand) in [
        ("in a call", HandWritten { read: "unreachable", ..HandWritten::default() }),
        ("at the start", HandWritten { fields: "(func $s unreachable) (start $s)", ..HandWritten::default() }),
        (
            "by a division",
            HandWritten { read: "(drop (i32.div_s (i32.const 1) (i32.const 0)))", ..HandWritten::default() },
        ),
        ("by an address", HandWritten { read: "(drop (i32.load (i32.const 0x7fffffff)))", ..HandWritten::default() }),
        // The component contains the name of the function, so the name is untrusted.
        (
            "in a function with a name",
            HandWritten { read: "(call $evil)", ..with_fields(r#"(func $evil (@name "EVIL\1b[31m") unreachable)"#) },
        ),
        ("by an invalid address for the argument", HandWritten { realloc: "(i32.const -1)", ..HandWritten::default() }),
    ] {
        let site = mounted(&hand, "");
        let mut client = serve(&site);
        let error = attack_by_read(&mut client, "belljar://hand/x").answer.expect_err(case);
        assert_eq!((kind(&error), &error.data["mount"]), ("trap", &Value::from("hand")), "{case}: {error}");
        // The message has no backtrace, no path of the host, and no text of the component.
        let message = error.message.replace("belljar://hand/x", "");
        assert!(
            !message.contains(['/', '\n']) && !message.contains("0x") && !message.contains("EVIL"),
            "{case}: {error}"
        );
        assert!(message.len() < 300, "{case}: {error}");
    }
}

/// belljar reports components that cannot be mounted with the reason, and serves the others. Rows LIF-08 and LIF-09 of the
/// hostile table test imports and exports that are not of the interface. Row MEM-04 tests too many instances.
#[test]
fn components_that_do_not_fit_are_not_served() {
    let later = r#"(component (instance $i) (export "belljar:provider/resource-provider@0.2.0" (instance $i)))"#;
    let many = |module: &str| format!("(core module $m {module})") + &"(core instance (instantiate $m))".repeat(100);
    let (memories, tables) = (many("(memory 1)"), many("(table 1 funcref)"));
    let before = |before| HandWritten { before, ..HandWritten::default() }.assemble();
    let site = site("");
    let refused = [
        ("later", assemble(later), "resource-provider@0.2.0"),
        ("memories", before(&memories), "maximum of"),
        ("tables", before(&tables), "maximum of"),
    ];
    for (name, bytes, _) in &refused {
        site.drop_in(&format!("{name}.wasm"), bytes);
    }
    let mut client = serve(&site);
    let listed = site.run_json(&["list"]);
    let reported = listed["refused"].as_array().unwrap();
    for (name, _, why) in &refused {
        let refusal = reported.iter().find(|one| one["name"] == *name).unwrap_or_else(|| panic!("{name} is served"));
        let reason = refusal["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{name}: {reason}");
        let error = client.read(&format!("belljar://{name}/x")).expect_err(name);
        assert_eq!(kind(&error), "unavailable", "{name}: {error}");
        let log = client.wire().process.stderr();
        assert!(
            log.lines().any(|line| line.contains(&format!("\"{name}\" is not served")) && line.contains(why)),
            "{name}: {log}"
        );
    }
    assert_eq!(reported.len(), refused.len());
    witness(&mut client);
}
