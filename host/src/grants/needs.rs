//! What a provider declares that it needs: a custom section of its component, in TOML. It grants nothing. It is shown to
//! the operator, and the commands that belljar prints are made from it.
//!
//! A provider never names anything of the host's: it says under which guest path it looks for a directory, never which
//! directory; the name of a variable, never a secret.

use toml::{Table, Value};

use super::{KINDS, Kind};
use crate::model::text;

/// The custom section's name.
pub const SECTION: &str = "belljar:needs";

/// Bytes of the section: a few dozen declarations with their reasons.
pub const MAX: usize = 8 << 10;

/// Declarations of one component.
const MOST: usize = 32;

/// Characters of a reason, and of an example.
const WORDS: usize = 200;

/// One thing that a provider needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The kind of grant: `fs`, `env`, `http`.
    pub kind: &'static str,
    /// The thing, as the kind names it: a guest path, a variable, an origin. None: the operator chooses it.
    pub what: Option<String>,
    /// Whether another thing of this kind does as well; `what` is then an example.
    pub any: bool,
    /// Whether the provider works without it.
    pub optional: bool,
    /// What the value may look like, where a thing has a value.
    pub example: Option<String>,
    /// What it is for, in the provider's words.
    pub why: Option<String>,
}

impl Need {
    /// For people: `fs "/mail" (any path): "a directory of mailboxes"`.
    pub fn shown(&self) -> String {
        let mut out = self.kind.to_owned();
        match &self.what {
            Some(what) if self.any => out += &format!(" (such as \"{what}\")"),
            Some(what) => out += &format!(" \"{what}\""),
            None => {}
        }
        if self.optional {
            out += ", optional";
        }
        if let Some(why) = &self.why {
            out += &format!(": \"{why}\"");
        }
        out
    }
}

/// Everything that a provider declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(Vec<Need>);

impl Needs {
    /// Reads the section's bytes. They are a stranger's: everything that is not as `docs/providers.md` says is refused.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX {
            return Err(format!("it has {} bytes; at most {MAX} are read", bytes.len()));
        }
        let source = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let table: Table = source.parse().map_err(|error: toml::de::Error| {
            let line = error.span().and_then(|span| source.get(..span.start)).unwrap_or_default().matches('\n').count();
            format!("line {} is not TOML: {}", line + 1, text::excerpt(error.message(), WORDS))
        })?;
        let mut all = Vec::new();
        for (name, value) in table {
            let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
                let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                format!("there is no kind of grant \"{}\"; there are {}", text::excerpt(&name, 40), kinds.join(", "))
            })?;
            let Value::Array(entries) = value else {
                return Err(format!("\"{name}\": expected tables, each written below [[{name}]]"));
            };
            for entry in entries {
                let Value::Table(entry) = entry else {
                    return Err(format!("\"{name}\": expected tables, each written below [[{name}]]"));
                };
                all.push(read(kind, entry)?);
                if all.len() > MOST {
                    return Err(format!("it declares more than {MOST} things"));
                }
            }
        }
        // In the order of the kinds, what is optional last.
        let place = |need: &Need| KINDS.iter().position(|kind| kind.name == need.kind);
        all.sort_by_key(|need| (need.optional, place(need)));
        Ok(Self(all))
    }

    /// All of them.
    pub fn all(&self) -> &[Need] {
        &self.0
    }

    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds of which something is declared, each once.
    pub fn kinds(&self) -> Vec<&'static str> {
        let is_declared = |kind: &&Kind| self.0.iter().any(|need| need.kind == kind.name);
        KINDS.iter().filter(is_declared).map(|kind| kind.name).collect()
    }
}

/// Reads one table of `[[KIND]]`.
fn read(kind: &Kind, mut entry: Table) -> Result<Need, String> {
    let at = |key: &str| format!("{}.{key}", kind.name);
    let mut words = |key: &str| match entry.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() || !is_plain(&text) => {
            Err(format!("{}: expected 1 to {WORDS} characters, without quotation marks and controls", at(key)))
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{}: expected a string", at(key))),
    };
    let what = match words(kind.need.key)? {
        Some(what) => Some((kind.need.check)(&what).map_err(|why| format!("{}: {why}", at(kind.need.key)))?),
        None if kind.need.is_free => None,
        None => return Err(format!("{} is missing", at(kind.need.key))),
    };
    let why = words("why")?;
    let example = if kind.need.has_value { words("example")? } else { None };
    // It would be handed to the provider by whoever pastes the command.
    if example.as_ref().is_some_and(|example| example.contains("${")) {
        return Err(format!("{}: \"${{\" stands for a secret of the operator's", at("example")));
    }
    let mut flag = |key: &str| match entry.remove(key) {
        None => Ok(false),
        Some(Value::Boolean(value)) => Ok(value),
        Some(_) => Err(format!("{}: expected true or false", at(key))),
    };
    let optional = flag("optional")?;
    let any = kind.need.has_any && flag("any")?;
    if let Some(unknown) = entry.keys().next() {
        return Err(format!("{} is not a key of a declaration", at(&text::excerpt(unknown, 40))));
    }
    Ok(Need { kind: kind.name, what, any, optional, example, why })
}

/// Whether it can stand between quotation marks on one line.
fn is_plain(words: &str) -> bool {
    text::is_clean(words, WORDS) && !words.contains(['"', '\\', '`'])
}

/// What a kind of grant says of declarations.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// The key that names the thing.
    pub key: &'static str,
    /// Checks a thing, and gives it in its one spelling.
    pub check: fn(&str) -> Result<String, String>,
    /// Whether the thing may be left out, for the operator to choose.
    pub is_free: bool,
    /// Whether another thing may do as well: `any = true`.
    pub has_any: bool,
    /// Whether a thing has a value, of which there may be an example.
    pub has_value: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Needs, String> {
        Needs::parse(text.as_bytes())
    }

    #[test]
    fn a_declaration_is_read() {
        let needs = parse(
            "[[fs]]\npath = '/mail'\nwhy = 'mailboxes'\n[[env]]\nname = 'RECENT'\nexample = '20'\noptional = true\n[[http]]\norigin = 'https://API.example:443'\n[[http]]\nwhy = 'where WEB leads'\n",
        )
        .unwrap();
        let shown: Vec<String> = needs.all().iter().map(Need::shown).collect();
        assert!(shown.contains(&"fs \"/mail\": \"mailboxes\"".to_owned()), "{shown:?}");
        assert!(shown.contains(&"env \"RECENT\", optional".to_owned()), "{shown:?}");
        assert!(shown.contains(&"http \"https://api.example\"".to_owned()), "one spelling: {shown:?}");
        assert!(shown.contains(&"http: \"where WEB leads\"".to_owned()), "{shown:?}");
        assert_eq!(needs.kinds(), ["fs", "env", "http"]);
        let order: Vec<&str> = needs.all().iter().map(|need| need.kind).collect();
        assert_eq!(order, ["fs", "http", "http", "env"], "what is optional comes last");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_not_as_it_should_be_is_refused() {
        let many = "[[fs]]\npath = '/a'\n".repeat(MOST + 1);
        let long = format!("[[fs]]\npath = '/a'\nwhy = '{}'", "x".repeat(WORDS + 1));
        for (bad, says) in [
            ("fs = 3", "[[fs]]"),
            ("fs = [3]", "[[fs]]"),
            ("[fs]\npath = '/a'", "[[fs]]"),
            ("[[sf]]\npath = '/a'", "no kind of grant \"sf\"; there are fs, env, http"),
            ("[[fs]]", "fs.path is missing"),
            ("[[fs]]\npath = 3", "expected a string"),
            ("[[fs]]\npath = 'a'", "begin"),
            ("[[fs]]\npath = '/a/../b'", "fs.path"),
            ("[[fs]]\npath = '/.ssh'", "fs.path"),
            ("[[fs]]\npath = '/a b'", "fs.path"),
            ("[[fs]]\npath = '/a=b'", "fs.path"),
            ("[[fs]]\npath = '/a;rm'", "fs.path"),
            ("[[fs]]\npath = '/a'\nhost = '~/.ssh'", "fs.host is not a key"),
            ("[[fs]]\npath = '/a'\nexample = '~/.ssh'", "fs.example is not a key"),
            ("[[fs]]\npath = '/a'\nany = 1", "true or false"),
            ("[[fs]]\npath = '/a'\nwhy = '\u{202e}'", "fs.why"),
            ("[[fs]]\npath = '/a'\nwhy = 'run \"x\"'", "fs.why"),
            ("[[fs]]\npath = '/a'\nwhy = ''", "fs.why"),
            ("[[env]]\nname = 'A=B'", "env.name"),
            ("[[env]]\nname = 'A'\nexample = '${secret:x}'", "secret of the operator's"),
            ("[[env]]\nname = 'A'\nany = true", "env.any is not a key"),
            ("[[http]]\norigin = 'ftp://x'", "http.origin"),
            ("[[http]]\norigin = 'https://x.example/path'", "http.origin"),
            ("[[fs]\n", "line 1"),
            (&many, "more than"),
            (&long, "fs.why"),
        ] {
            let why = parse(bad).err().unwrap_or_else(|| panic!("{bad}"));
            assert!(why.contains(says), "{bad}: {why}");
        }
        assert!(Needs::parse(&[0xff]).unwrap_err().contains("UTF-8"));
        assert!(Needs::parse(&vec![b'#'; MAX + 1]).unwrap_err().contains("bytes"));
        assert!(parse(&format!("a = {}", "[".repeat(4000))).is_err());
    }
}
