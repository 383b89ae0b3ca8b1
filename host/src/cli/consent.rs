//! belljar's own question, on the terminal: whether a call may use what its mount was not granted.

use std::io::{BufRead, IsTerminal, Read as _, Write};

use crate::config::Config;
use crate::gateway::consent::{ConsentAnswer, ConsentQuestion};
use crate::model::text;
use crate::server::failure::Failure;
use crate::server::log;

/// The longest line that is read from the terminal, in bytes. Every valid answer is shorter.
const MAX_LINE_BYTES: u64 = 1024;

/// How often the question is repeated after an invalid answer, before the answer is "deny".
const MAX_TRIES: usize = 10;

/// True if a person can be asked: standard input and standard error are a terminal.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a consent on the terminal. Repeats the question after an invalid answer; the end of input means "deny".
pub(super) fn ask(question: &ConsentQuestion, config: &Config) -> Result<ConsentAnswer, Failure> {
    log::flush();
    let mut out = std::io::stderr().lock();
    writeln!(out, "{question}")?;
    // A local user may see the host path. A client gets only the guest path.
    let granted = config.mounts.get(&question.mount);
    if let Some(place) = granted.and_then(|own| own.grants.host_path(&question.wanted, &config.ambient)) {
        writeln!(out, "On this machine that is \"{}\".", text::excerpt(&place.to_string_lossy(), 500))?;
    }
    let always = if question.can_be_permanent { ", always" } else { "" };
    for _ in 0..MAX_TRIES {
        write!(out, "[once{always}, deny] ")?;
        out.flush()?;
        let mut line = String::new();
        if std::io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line)? == 0 {
            break;
        }
        if let Some(choice) = typed(&line, question.can_be_permanent) {
            return Ok(choice);
        }
        let always = if question.can_be_permanent { "\"always\" (or \"a\") for good, " } else { "" };
        writeln!(
            out,
            "That is not an answer: type \"once\" (or \"o\", \"yes\") for this request, {always}\"deny\" (or \"d\", \"no\")."
        )?;
    }
    writeln!(out, "No answer: denied.")?;
    Ok(ConsentAnswer::Deny)
}

/// Parses an answer: a word or its beginning, in upper or lower case. "yes" means "once". `can_last`: "always" is
/// allowed.
fn typed(line: &str, can_last: bool) -> Option<ConsentAnswer> {
    let word = line.trim().to_lowercase();
    let choices = [
        ("once", ConsentAnswer::Once),
        ("yes", ConsentAnswer::Once),
        ("always", ConsentAnswer::Always),
        ("deny", ConsentAnswer::Deny),
        ("no", ConsentAnswer::Deny),
    ];
    let fits = |(whole, choice): &&(&str, ConsentAnswer)| {
        whole.starts_with(&word) && (can_last || *choice != ConsentAnswer::Always)
    };
    choices.iter().find(fits).filter(|_| !word.is_empty()).map(|(_, choice)| *choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_and_their_beginnings_are_answers() {
        for (line, last, choice) in [
            ("once\n", true, Some(ConsentAnswer::Once)),
            ("o\n", false, Some(ConsentAnswer::Once)),
            ("Y\n", false, Some(ConsentAnswer::Once)),
            (" yes \r\n", true, Some(ConsentAnswer::Once)),
            ("a\n", true, Some(ConsentAnswer::Always)),
            ("alw\n", true, Some(ConsentAnswer::Always)),
            ("always\n", false, None),
            ("a\n", false, None),
            ("n\n", true, Some(ConsentAnswer::Deny)),
            ("NO\n", true, Some(ConsentAnswer::Deny)),
            ("d\n", true, Some(ConsentAnswer::Deny)),
            ("\n", true, None),
            ("oncee\n", true, None),
            ("ja\n", true, None),
        ] {
            assert_eq!(typed(line, last), choice, "{line:?}");
        }
    }
}
