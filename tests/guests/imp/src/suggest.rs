//! Completes the templates that `IMP_TEMPLATES=verbs` gives: honestly, when nothing is set, and each setting is one way
//! to abuse it.

use std::time::Duration;

use belljar_guest::{Argument, Error, Result, Suggestions};

use crate::{burn, speech};

/// How many values `many` gives; clients are given 100.
const MANY: usize = 100_000;

/// `complete`, as `IMP_COMPLETE` says.
pub(crate) fn complete(how: &str, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            Suggestions::default()
        }
        "failed" => return Err(Error::failed("the imp does not complete")),
        "many" => Suggestions::new((0..MANY).map(|n| format!("value-{n:06}"))),
        // Fewer than it says there are, and more.
        "boast" => Suggestions::new(["one"]).total(u32::MAX),
        "modest" => Suggestions::new(["one", "two", "three"]).total(1),
        "long" => Suggestions::new((0..200).map(|n| format!("{n}{}", "v".repeat(10_000)))),
        "controls" => Suggestions::new([speech::CONTROLS, "plain", speech::CONTROLS]),
        "below" => Suggestions::new(["below/x/q", "b%65low/x/q", "below/x", "own"]),
        "twice" => Suggestions::new(["twice", "twice", "twice"]),
        // What it was asked, so that a test can see it.
        "echo" => Suggestions::new([format!("{template} {argument:?} {resolved:?}")]),
        // It crashes at one value, and at no other.
        "picky" if argument.value == "crash" => burn::trap(),
        _ => honest(template, argument, resolved)?,
    })
}

fn honest(template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
    let value = argument.value.as_str();
    Ok(match (template, argument.name.as_str()) {
        ("errors/{kind}/{words}", "kind") => {
            Suggestions::starting_with(value, ["denied", "failed", "invalid", "not-found", "unavailable"])
        }
        // That there is no such resource is said without words.
        ("errors/{kind}/{words}", "words") if resolved.iter().any(|one| one.value == "not-found") => {
            Suggestions::default()
        }
        ("errors/{kind}/{words}", "words") => Suggestions::starting_with(value, ["controls", "env", "long", "plain"]),
        ("text/{length}", "length") => Suggestions::starting_with(value, (1..=150).map(|n| n.to_string())),
        (template, name) => {
            return Err(Error::invalid(format_args!("no variable \"{name}\" in \"{template}\"")));
        }
    })
}
