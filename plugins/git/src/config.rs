//! Git's configuration (<https://git-scm.com/docs/git-config#_syntax>), as far as it says how a repository is stored. Other
//! files that it includes are not read: Git does not take the settings of storage from them either.

use belljar_guest::{Error, Result};

/// The longest configuration that is read, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The extensions of the format of a repository that reading can ignore.
const HARMLESS: [&str; 6] =
    ["noop", "noop-v1", "preciousobjects", "worktreeconfig", "relativeworktrees", "compatobjectformat"];

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// In lower case.
    pub(crate) section: String,
    pub(crate) subsection: String,
    /// In lower case.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    settings: Vec<Setting>,
}

impl Config {
    /// Parses a configuration. Lines that are not understood are left out.
    pub(crate) fn parse(text: &str) -> Config {
        let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
        let mut settings = Vec::new();
        let (mut section, mut subsection) = (String::new(), String::new());
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start();
            if let Some(head) = line.strip_prefix('[') {
                let Some((found, rest)) = header(head) else { continue };
                (section, subsection) = found;
                // A setting may follow on the line of the section.
                line = rest.trim_start();
            }
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let (name, mut value) = match line.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (line, None),
            };
            while value.as_ref().is_some_and(|value| ends_with_escape(value)) {
                let (Some(value), Some(next)) = (value.as_mut(), lines.next()) else { break };
                value.pop();
                value.push_str(next);
            }
            let value = value.map_or_else(|| "true".to_owned(), |value| unquoted(&value));
            let name = name.trim().to_ascii_lowercase();
            settings.push(Setting { section: section.clone(), subsection: subsection.clone(), name, value });
        }
        Config { settings }
    }

    /// The last value of a setting without a subsection.
    pub(crate) fn get(&self, section: &str, name: &str) -> Option<&str> {
        let found = self.section(section).filter(|setting| setting.name == name && setting.subsection.is_empty());
        found.last().map(|setting| setting.value.as_str())
    }

    /// The settings of all subsections of a section.
    pub(crate) fn section(&self, section: &str) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |setting| setting.section == section)
    }

    /// The kind of object IDs. Fails for formats of repositories that are not known, as Git does.
    pub(crate) fn hash(&self) -> Result<gix_hash::Kind> {
        let version = self.get("core", "repositoryformatversion").unwrap_or("0");
        if !matches!(version, "0" | "1") {
            return Err(Error::failed(format_args!(
                "the repository has the format {version}: expected 0 or 1; a newer Git made it"
            )));
        }
        let known =
            |name: &str| HARMLESS.contains(&name) || ["objectformat", "partialclone", "refstorage"].contains(&name);
        if let Some(other) = self.section("extensions").find(|setting| version == "1" && !known(&setting.name)) {
            return Err(Error::failed(format_args!(
                "the repository needs the extension \"{}\", which is not supported (extensions.{} in its configuration)",
                other.name, other.name
            )));
        }
        match self.get("extensions", "objectformat").map(str::to_ascii_lowercase).as_deref() {
            None | Some("sha1") => Ok(gix_hash::Kind::Sha1),
            Some("sha256") => Ok(gix_hash::Kind::Sha256),
            Some(other) => Err(Error::failed(format_args!("its object IDs are \"{other}\": expected sha1 or sha256"))),
        }
    }

    /// True if references are stored as reftable.
    pub(crate) fn has_reftable(&self) -> Result<bool> {
        match self.get("extensions", "refstorage").map(str::to_ascii_lowercase).as_deref() {
            None | Some("files") => Ok(false),
            Some("reftable") => Ok(true),
            Some(other) => {
                Err(Error::failed(format_args!("it stores references as \"{other}\": expected files or reftable")))
            }
        }
    }

    /// The filter and the remote of a partial clone.
    pub(crate) fn partial(&self) -> Option<(String, String)> {
        let is_promisor = |setting: &&Setting| setting.name == "promisor" && setting.value != "false";
        let named = self.get("extensions", "partialclone").map(str::to_owned);
        let remote = self.section("remote").find(is_promisor).map(|setting| setting.subsection.clone()).or(named)?;
        let filter = self
            .section("remote")
            .find(|setting| setting.subsection == remote && setting.name == "partialclonefilter")
            .map_or_else(|| "unknown".to_owned(), |setting| setting.value.clone());
        Some((filter, remote))
    }
}

/// The section and subsection in a line after `[`, and the rest of the line.
fn header(head: &str) -> Option<((String, String), &str)> {
    let (mut name, mut subsection) = (String::new(), String::new());
    let mut letters = head.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ']' => {
                let name = name.trim().to_ascii_lowercase();
                // The old form `[section.subsection]`.
                let (section, old) = name.split_once('.').unwrap_or((&name, ""));
                let subsection = if subsection.is_empty() { old.to_owned() } else { subsection };
                return Some(((section.to_owned(), subsection), head.get(at + 1..)?));
            }
            '"' => loop {
                match letters.next()?.1 {
                    '"' => break,
                    '\\' => subsection.push(letters.next()?.1),
                    letter => subsection.push(letter),
                }
            },
            letter => name.push(letter),
        }
    }
    None
}

/// True if a value goes on in the next line.
fn ends_with_escape(value: &str) -> bool {
    value.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A value without quotes, escapes and the comment behind it.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    // The length up to the last character that is not a space outside of quotes.
    let (mut in_quotes, mut kept) = (false, 0);
    let mut letters = value.trim_start().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                in_quotes = !in_quotes;
                kept = plain.len();
                continue;
            }
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('b') => {
                    plain.pop();
                }
                Some(other) => plain.push(other),
                None => break,
            },
            '#' | ';' if !in_quotes => break,
            letter => {
                plain.push(letter);
                if letter.is_whitespace() && !in_quotes {
                    continue;
                }
            }
        }
        kept = plain.len();
    }
    plain.truncate(plain.floor_char_boundary(kept));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_quotes_comments_and_subsections() {
        let text = "[core] bare = true\n[Remote \"a \\\"b\\\"\"]\n\tURL = \"x ; y\" ; not this\n\tpromisor\n partialCloneFilter = \
                    blob:none # or not\n[old.Style]\nlong = one \\\n two\n[broken\n";
        let config = Config::parse(text);
        assert_eq!(config.get("core", "bare"), Some("true"));
        assert_eq!(config.partial(), Some(("blob:none".to_owned(), "a \"b\"".to_owned())));
        assert_eq!(config.section("remote").next().unwrap().value, "x ; y");
        let old = config.section("old").next().unwrap();
        assert_eq!((old.subsection.as_str(), old.value.as_str()), ("style", "one  two"));
    }

    #[test]
    fn unknown_formats_are_refused() {
        let hash = |text: &str| Config::parse(text).hash();
        assert_eq!(hash("[extensions]\nobjectFormat = SHA256\n"), Ok(gix_hash::Kind::Sha256));
        assert_eq!(hash("[extensions]\nodd = 1\n"), Ok(gix_hash::Kind::Sha1));
        let odd = hash("[core]\nrepositoryformatversion = 1\n[extensions]\nodd = 1\n").unwrap_err();
        assert!(odd.to_string().contains("\"odd\""), "{odd}");
        assert!(hash("[core]\nrepositoryformatversion = 7\n").is_err());
        assert!(Config::parse("[extensions]\nrefStorage = zip\n").has_reftable().is_err());
    }
}
