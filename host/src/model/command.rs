//! How a reader types a belljar command: the program, its words quoted for a shell, and the flags that lead to the
//! configuration in use. Every cure that names a command is made here, so that it works when it is pasted.

use std::sync::OnceLock;

/// How the program is called, and the flags that lead to the configuration.
#[derive(Clone, Debug, Default)]
pub struct Spelling {
    /// `belljar`, or the program's whole path where that name does not lead to it.
    pub program: String,
    /// `--config FILE --plugins DIR`, or `--place NAME`; empty where the working directory says it.
    pub place: Vec<String>,
}

/// Set once, before anything is served: the same for everyone whom this process answers.
static SPELLING: OnceLock<Spelling> = OnceLock::new();

/// Says how commands are typed. The first call counts.
pub fn spell(spelling: Spelling) {
    let _ = SPELLING.set(spelling);
}

/// The command line that runs belljar with `words`, on the configuration in use.
pub fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let spelling = SPELLING.get();
    let program = spelling.map_or("belljar", |spelling| spelling.program.as_str());
    let place = spelling.map(|spelling| spelling.place.as_slice()).unwrap_or_default();
    let mut line = quoted(program);
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word.as_ref()));
    }
    for word in place {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line
}

/// As a POSIX shell takes it for one word. What steers a terminal is dropped: no shell types it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:=,".contains(c);
    // A shell expands "~" at the beginning only; elsewhere it is a letter.
    let home = word.strip_prefix("~/").filter(|rest| !rest.is_empty());
    let (tilde, rest) = home.map_or(("", word), |rest| ("~/", rest));
    let later = |c: char| is_plain(c) || c == '~';
    let first = rest.chars().next();
    if first.is_some_and(is_plain) && rest.chars().all(later) {
        return word.to_owned();
    }
    let shown: String = rest.chars().filter(|c| super::text::is_shown(*c) || *c == '\n').collect();
    format!("{tilde}'{}'", shown.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for plain in
            ["a/b-c.d", "--http", "https://api.example:8443", "/mail=~/mail", "time=5s", "~/a b".get(..3).unwrap()]
        {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted("~/my notes"), "~/'my notes'");
        assert_eq!(quoted(""), "''");
        assert_eq!(line(["trust", "notes"]), "belljar trust notes");
    }

    /// What a shell makes of each is the word itself.
    #[test]
    fn a_shell_takes_each_for_one_word() {
        for word in [
            "a b", "$HOME", "`id`", "a'b\"c", "*", "#x", "!", "a;b", "a|b>c", "x\\y", "é ü", "[a]", "{a,b}", "~", "-n",
            "a~",
        ] {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{}", quoted(word));
        }
    }
}
