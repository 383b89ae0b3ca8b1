//! What no compiler would make: code that runs before or beside a call, memory in many places, answers that are no
//! answers. Each ends in its own mount, and the witness answers.

use std::time::Duration;

use belljar_tests::Site;
use serde_json::Value;

use crate::component::{Hand, assemble, deep};
use crate::place::{SLACK, attack_by_read, kind, reached, serve, site, witness};

/// A site with a mount `hand` in it, with these limits.
fn place(hand: &Hand<'_>, limits: &str) -> Site {
    let site = site(&format!("[mounts.hand.limits]\n{limits}\n"));
    hand.mount(&site, "hand");
    site
}

/// Grows the first memory by so many MiB, one after the other, and traps when it is refused.
fn grow(mib: usize) -> String {
    "(if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) ".repeat(mib)
}

/// Memories and tables apart from the first one, each in an instance of its own: what a component defines for that, and
/// what the first module takes of it.
struct Apart {
    before: String,
    with: String,
    imports: String,
}

/// So many of them, each empty. `(call $grow0)` grows a memory by a MiB, `(call $widen0 (i32.const N))` a table by N.
fn apart(count: usize) -> Apart {
    let all = |text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let module = "(core module $apart (memory 0) (table $t 0 funcref)
        (func (export \"grow\") (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)))
        (func (export \"widen\") (param i32)
          (if (i32.eq (table.grow $t (ref.null func) (local.get 0)) (i32.const -1)) (then unreachable))))";
    let import = |n: usize| {
        format!("(import \"a{n}\" \"grow\" (func $grow{n})) (import \"a{n}\" \"widen\" (func $widen{n} (param i32))) ")
    };
    Apart {
        before: module.to_owned() + &all(&|n| format!("(core instance $a{n} (instantiate $apart)) ")),
        with: all(&|n| format!("(with \"a{n}\" (instance $a{n})) ")),
        imports: all(&import),
    }
}

impl Apart {
    /// A provider that has them, and whose read does `read`.
    fn hand<'a>(&'a self, read: &'a str) -> Hand<'a> {
        Hand { before: &self.before, with: &self.with, imports: &self.imports, read, ..Hand::default() }
    }
}

/// A provider whose read does `read`.
fn reads(read: &str) -> Hand<'_> {
    Hand { read, ..Hand::default() }
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

#[test]
fn each_limit_is_met_wherever_the_code_runs() {
    let start = |body: &str| format!("(func $start {body}) (start $start)");
    let (time, fuel, memory) = ("time = \"500ms\"", "fuel = 1_000_000", "memory = \"4MiB\"");
    let forever = "(loop $l (br $l))";
    let (start_forever, start_grow) = (start(forever), start(&grow(5)));
    let after = "(func (export \"after\") (param i32) (loop $l (br $l)))";
    let (one, three) = (apart(1), apart(3));
    // Each of them is below the limit, and all together are not.
    let two_memories = grow(3) + &"(call $grow0)".repeat(3);
    let four_memories = grow(1) + &"(call $grow0) (call $grow1) (call $grow2)".repeat(2);
    let widen = "(call $widen0 (i32.const 900000))";
    let mixed = "(call $widen0 (i32.const 200000)) (call $widen1 (i32.const 200000))".to_owned() + &grow(2);
    let large = "(core module $m (memory 48)) (core instance (instantiate $m)) (core instance (instantiate $m))";
    let (shallow, wide) = (deep(0), deep(3000));
    let recurse = "(call $deep (i32.const 0))";
    let own = "(type $r (resource (rep i32))) (core func $new (canon resource.new $r))
        (core instance $host (export \"new\" (func $new)))";
    let resources = Hand {
        before: own,
        with: "(with \"host\" (instance $host))",
        imports: "(import \"host\" \"new\" (func $new (param i32) (result i32)))",
        ..reads("(loop $l (drop (call $new (i32.const 1))) (br $l))")
    };
    for (what, limits, limit, hand) in [
        ("a loop", fuel, "fuel", reads(forever)),
        ("a loop in the start function", time, "time", has(&start_forever)),
        ("a loop in the start function", fuel, "fuel", has(&start_forever)),
        (
            "a loop where the argument is put",
            time,
            "time",
            Hand { realloc: "(loop $l (br $l)) unreachable", ..Hand::default() },
        ),
        (
            "a loop after the answer",
            time,
            "time",
            Hand { lift: "(post-return (core func $main \"after\"))", ..has(after) },
        ),
        ("growth of one memory", memory, "memory", reads(&grow(5))),
        ("growth of one memory in the start function", memory, "memory", has(&start_grow)),
        ("growth of two memories", memory, "memory", one.hand(&two_memories)),
        ("growth of four memories", memory, "memory", three.hand(&four_memories)),
        ("growth of a table", memory, "memory", one.hand(widen)),
        ("growth of a memory and two tables", memory, "memory", three.hand(&mixed)),
        (
            "a memory that begins large",
            memory,
            "memory",
            Hand { memory: "(memory (export \"memory\") 100)", ..Hand::default() },
        ),
        ("memories that begin large together", memory, "memory", Hand { before: large, ..Hand::default() }),
        ("a table that begins large", memory, "memory", has("(table $t 900000 funcref)")),
        ("deep recursion", "", "stack", Hand { read: recurse, ..has(&shallow) }),
        ("recursion with large frames", "", "stack", Hand { read: recurse, ..has(&wide) }),
        ("resources of its own", "", "handles", resources),
    ] {
        let site = place(&hand, limits);
        let mut client = serve(&site);
        let attack = attack_by_read(&mut client, "belljar://hand/x");
        let error = attack.answer.expect_err(what);
        assert_eq!(reached(&error, "hand").limit, limit, "{what}: {error}");
        assert!(attack.took < Duration::from_secs(5) + SLACK, "{what} took {:?}", attack.took);
        if limit == "time" {
            assert!(attack.witnessed > 0, "{what}: the witness did not answer before it was over");
        }
    }
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

/// What the host reads from a guest's memory is checked before it is believed.
#[test]
fn an_answer_that_is_none_is_a_trap() {
    let store = |at: u32, value: u32| format!("(i32.store (i32.const {at}) (i32.const {value}))");
    let text = |bytes: &str| format!("(data (i32.const 224) \"{bytes}\")");
    let length = |bytes: u32| store(188, bytes);
    for (what, fields, read) in [
        ("no UTF-8", text("\\ff\\fe\\fd\\fc"), String::new()),
        ("half a character", text("\\e2\\82\\ac\\e2"), String::new()),
        ("a surrogate", text("\\ed\\a0\\80x"), String::new()),
        ("an overlong character", text("\\c0\\af\\c0\\af"), String::new()),
        ("text beyond the memory", String::new(), length(0x7fff_ffff)),
        ("text across the end of the memory", String::new(), store(184, 65_530) + &length(100)),
        ("an address and a length that wrap", String::new(), store(184, 0xffff_fff0) + &length(32)),
        ("contents beyond the memory", String::new(), store(136, 0x0fff_ffff)),
        ("contents at an odd address", String::new(), store(132, 161)),
        ("a kind of body that does not exist", String::new(), store(180, 7)),
        ("neither a result nor an error", String::new(), store(128, 9)),
    ] {
        let site = place(&Hand { fields: &fields, read: &read, ..Hand::default() }, "");
        let mut client = serve(&site);
        let error = attack_by_read(&mut client, "belljar://hand/x").answer.expect_err(what);
        assert_eq!(kind(&error), "trap", "{what}: {error}");
        assert_eq!(error.data["mount"], "hand", "{what}: {error}");
    }
}

/// An answer that claims more than is there, but no more than there could be, is a limit: the host does not take the
/// memory that it names.
#[test]
fn an_answer_that_claims_to_be_large_takes_no_memory() {
    let hand = Hand {
        memory: "(memory (export \"memory\") 1024)",
        read: "(i32.store (i32.const 136) (i32.const 1600000))",
        ..Hand::default()
    };
    let site = place(&hand, "");
    let mut client = serve(&site);
    let before = client.wire().process.peak_memory();
    let error = attack_by_read(&mut client, "belljar://hand/x").answer.expect_err("an error");
    assert_eq!(reached(&error, "hand").limit, "result", "{error}");
    let grown = client.wire().process.peak_memory() - before;
    assert!(grown < 96 << 20, "{grown} bytes");
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

/// Memory that an earlier call wrote is not seen by a later one, of the same mount or another.
#[test]
fn memory_is_new_in_every_call() {
    let dirty = "(drop (memory.grow (i32.const 64)))
        (local.set $a (i32.const 65536))
        (loop $l
          (local.set $b (i32.or (local.get $b) (i32.load (local.get $a))))
          (i32.store (local.get $a) (i32.const 0x5a5a5a5a))
          (local.set $a (i32.add (local.get $a) (i32.const 4)))
          (br_if $l (i32.lt_u (local.get $a) (i32.const 4194304))))
        (if (local.get $b) (then (i32.store (i32.const 224) (i32.const 0x74726964))))";
    let hand = Hand { read: dirty, fields: "", ..Hand::default() };
    let site = site("[mounts.one]\ncomponent = \"hand.wasm\"\n[mounts.two]\ncomponent = \"hand.wasm\"\n");
    hand.mount(&site, "hand");
    let mut client = serve(&site);
    for _ in 0..50 {
        let ids: Vec<u64> = ["one", "two", "one", "two"]
            .iter()
            .map(|mount| client.send("resources/read", serde_json::json!({ "uri": format!("belljar://{mount}/x") })))
            .collect();
        for id in ids {
            let answer = client.wait(id).unwrap();
            assert_eq!(answer["contents"][0]["text"], "fine", "memory of another call: {answer}");
        }
    }
    witness(&mut client);
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
        assert_eq!(kind(&error), "not-found", "{name}: {error}");
        let log = client.wire().process.stderr();
        assert!(
            log.lines().any(|line| line.contains(&format!("\"{name}.wasm\" is not served")) && line.contains(why)),
            "{name}: {log}"
        );
    }
    assert_eq!(told.len(), refused.len());
    witness(&mut client);
}
