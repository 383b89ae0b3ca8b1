//! One language: its `language.toml`, and how it is found by what people call it.

use serde::Deserialize;

/// What belljar knows of a language.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Language {
    /// Its folder below `sdk-guest/`.
    #[serde(skip)]
    pub(super) id: String,
    /// For people.
    pub(super) name: String,
    /// Further names for `--lang`.
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    /// What a project consists of.
    pub(super) copy: Vec<Copy>,
    /// Brings what the project itself names, once; empty where there is no such thing.
    #[serde(default)]
    pub(super) setup: Vec<String>,
    /// Makes the component, in the project.
    pub(super) build: Vec<String>,
    /// Where it is left.
    pub(super) component: String,
    /// Runs the author's unit tests.
    pub(super) test: Vec<String>,
    /// What has to be there.
    #[serde(default)]
    pub(super) tools: Vec<Tool>,
    /// Names that a project cannot have: words of the language, modules of its library.
    #[serde(default)]
    pub(super) reserved: Vec<String>,
}

/// A folder or a file of `sdk-guest/`, or `wit`, and where it goes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    pub(super) from: String,
    pub(super) to: String,
}

/// A program that a language needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    /// For people, where the command does not say it.
    name: Option<String>,
    /// Succeeds where it is there.
    pub(super) command: Vec<String>,
    /// What it is for.
    pub(super) why: String,
    /// How to get it, in one line.
    pub(super) get: String,
}

impl Tool {
    /// What it is called.
    pub(super) fn shown(&self) -> String {
        let asks_version = |word: &&String| ["--version", "-version", "-V", "version"].contains(&word.as_str());
        self.name.clone().unwrap_or_else(|| {
            let words: Vec<&str> = self.command.iter().filter(|word| !asks_version(word)).map(String::as_str).collect();
            words.join(" ")
        })
    }
}

impl Language {
    /// Reads a `language.toml`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn parse(id: &str, text: &str) -> Result<Self, String> {
        let mut language: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        id.clone_into(&mut language.id);
        Ok(language)
    }

    /// Everything that `--lang` takes for it.
    fn names(&self) -> impl Iterator<Item = &str> {
        [self.id.as_str()].into_iter().chain(self.aliases.iter().map(String::as_str))
    }
}

/// The language that somebody means by `name`.
///
/// # Errors
/// Names the nearest one.
pub(super) fn find<'a>(all: &'a [Language], name: &str) -> Result<&'a Language, String> {
    let wanted = name.trim().to_lowercase();
    let is_it = |language: &&Language| {
        language.names().chain([language.name.to_lowercase().as_str()]).any(|known| known == wanted)
    };
    if let Some(language) = all.iter().find(is_it) {
        return Ok(language);
    }
    let known = all.iter().flat_map(Language::names);
    let nearest = known
        .map(|known| (strsim::osa_distance(&wanted, known), known))
        .filter(|(distance, known)| *distance <= known.len().div_ceil(2))
        .min();
    let ids: Vec<&str> = all.iter().map(|language| language.id.as_str()).collect();
    let meant = nearest.map(|(_, known)| format!("did you mean \"{known}\"? ")).unwrap_or_default();
    let shown = crate::model::text::quoted(name, 40);
    Err(format!("there is no language {shown}; {meant}The languages are: {}", ids.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(id: &str, name: &str, aliases: &[&str]) -> Language {
        let text = format!(
            "name = {name:?}\naliases = {aliases:?}\ncopy = []\nbuild = [\"make\"]\ncomponent = \"c\"\ntest = [\"make\", \"test\"]"
        );
        Language::parse(id, &text).unwrap()
    }

    #[test]
    fn a_language_is_found_by_all_its_names() {
        let all = [language("cpp", "C++", &["cxx"]), language("python", "Python", &["py"])];
        for (name, id) in
            [("cpp", "cpp"), ("C++", "cpp"), ("cxx", "cpp"), ("py", "python"), ("Python", "python"), ("PY", "python")]
        {
            assert_eq!(find(&all, name).map(|language| language.id.as_str()), Ok(id), "{name}");
        }
        let why = |name| find(&all, name).err().unwrap();
        assert_eq!(
            why("pyhton"),
            "there is no language \"pyhton\"; did you mean \"python\"? The languages are: cpp, python"
        );
        assert_eq!(why("cobol"), "there is no language \"cobol\"; The languages are: cpp, python");
        assert!(!why("\u{1b}[2J").contains('\u{1b}'));
    }

    #[test]
    fn tools_are_called_what_they_are() {
        let tool = |command: &[&str], name: Option<&str>| Tool {
            name: name.map(str::to_owned),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            why: String::new(),
            get: String::new(),
        };
        assert_eq!(tool(&["componentize-py", "--version"], None).shown(), "componentize-py");
        assert_eq!(tool(&["python3", "-m", "ziglang", "version"], None).shown(), "python3 -m ziglang");
        assert_eq!(tool(&["sh", "-c", "x"], Some("clang")).shown(), "clang");
    }

    #[test]
    fn what_is_misspelt_is_told() {
        let why = Language::parse("x", "name = \"X\"\ncopies = []").err().unwrap();
        assert!(why.contains("copies"), "{why}");
    }
}
