//! Completes the templates of `HOSTILE_TEMPLATES=verbs`. Each value of `HOSTILE_COMPLETE` selects an attack; without
//! one, the completions are honest.

use std::time::Duration;

use belljar_guest::{Argument, Error, Result, Suggestions};

use crate::{burn, speech};

/// The number of values of `many`. Clients get 100.
const MANY: usize = 100_000;

/// `complete`, as `HOSTILE_COMPLETE` says.
pub(crate) fn complete(how: &str, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            Suggestions::default()
        }
        "failed" => return Err(Error::failed("the hostile guest does not complete")),
        "many" => Suggestions::new((0..MANY).map(|n| format!("value-{n:06}"))),
        // A total that is too high, and one that is too low.
        "boast" => Suggestions::new(["one"]).total(u32::MAX),
        "modest" => Suggestions::new(["one", "two", "three"]).total(1),
        "long" => Suggestions::new((0..200).map(|n| format!("{n}{}", "v".repeat(10_000)))),
        "controls" => Suggestions::new([speech::CONTROLS, "plain", speech::CONTROLS]),
        "below" => Suggestions::new(["below/x/q", "b%65low/x/q", "below/x", "own"]),
        "twice" => Suggestions::new(["twice", "twice", "twice"]),
        // Returns the arguments of the call, so that a test can see them.
        "echo" => Suggestions::new([format!("{template} {argument:?} {resolved:?}")]),
        // Traps at one value only.
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
        // The error "not found" has no text, so there is nothing to complete.
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
