//! Command lines that belljar prints for people to paste: the program, its arguments quoted for a shell, and the flags
//! that select the configuration in use. Every message that names a command takes the text from here.

use std::sync::OnceLock;

/// How the user of this process starts belljar.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// `belljar` if `PATH` finds this program under that name, otherwise its absolute path.
    pub program: String,
    /// `--config FILE --plugins DIR`, or `--place NAME`. Empty if the working directory already selects the
    /// configuration.
    pub flags: Vec<String>,
}

/// Set once, before the first request is served.
static INVOCATION: OnceLock<Invocation> = OnceLock::new();

/// Sets how command lines are printed. Only the first call has an effect.
pub fn set_invocation(invocation: Invocation) {
    let _ = INVOCATION.set(invocation);
}

/// The command line that runs belljar with `words` on the configuration in use.
pub fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let invocation = INVOCATION.get();
    let program = invocation.map_or("belljar", |invocation| invocation.program.as_str());
    let flags = invocation.map(|invocation| invocation.flags.as_slice()).unwrap_or_default();
    let mut line = shell_quoted(program);
    for word in words {
        line.push(' ');
        line.push_str(&shell_quoted(word.as_ref()));
    }
    for word in flags {
        line.push(' ');
        line.push_str(&shell_quoted(word));
    }
    line
}

/// `word` as one word of a POSIX shell. Control characters and other invisible ones are dropped: they could steer a
/// terminal.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:=,".contains(c);
    // A shell expands "~" only at the beginning of a word.
    let home = word.strip_prefix("~/").filter(|rest| !rest.is_empty());
    let (tilde, rest) = home.map_or(("", word), |rest| ("~/", rest));
    let later = |c: char| is_plain(c) || c == '~';
    let first = rest.chars().next();
    if first.is_some_and(is_plain) && rest.chars().all(later) {
        return word.to_owned();
    }
    let shown: String = rest.chars().filter(|c| super::text::is_visible(*c) || *c == '\n').collect();
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
            assert_eq!(shell_quoted(plain), plain);
        }
        assert_eq!(shell_quoted("it's here"), "'it'\\''s here'");
        assert_eq!(shell_quoted("~/my notes"), "~/'my notes'");
        assert_eq!(shell_quoted(""), "''");
        assert_eq!(line(["trust", "notes"]), "belljar trust notes");
    }

    /// A shell turns each quoted word back into the original.
    #[test]
    fn a_shell_reads_each_quoted_word_as_one_word() {
        for word in [
            "a b", "$HOME", "`id`", "a'b\"c", "*", "#x", "!", "a;b", "a|b>c", "x\\y", "é ü", "[a]", "{a,b}", "~", "-n",
            "a~",
        ] {
            let output =
                Command::new("sh").args(["-c", &format!("printf %s {}", shell_quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{}", shell_quoted(word));
        }
    }
}
