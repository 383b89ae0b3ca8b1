//! One language: its `language.toml`, and the search by the names that people use for it.

use std::path::Path;

use serde::Deserialize;

/// A programming language for providers, as its `language.toml` describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Language {
    /// Its folder below `sdk-guest/`.
    #[serde(skip)]
    pub(super) id: String,
    /// The display name.
    pub(super) name: String,
    /// Further names for `--lang`.
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    /// The files of a project.
    pub(super) copy: Vec<CopyRule>,
    /// The files of the template that a minimal project has, besides those of the language's folder `minimal`.
    #[serde(default)]
    pub(super) minimal: Vec<String>,
    /// The file that an author edits first.
    pub(super) source: String,
    /// The command that installs the project's dependencies, once. Empty if there is none.
    #[serde(default)]
    pub(super) setup: Vec<String>,
    /// The command that builds the component, run in the project.
    pub(super) build: Vec<String>,
    /// The path of the built component in the project.
    pub(super) component: String,
    /// The command that runs the author's unit tests.
    pub(super) test: Vec<String>,
    /// The programs that the commands need.
    #[serde(default)]
    pub(super) tools: Vec<LanguageTool>,
    /// Names that a project cannot have: keywords of the language and modules of its standard library.
    #[serde(default)]
    pub(super) reserved: Vec<String>,
}

/// A folder or file of `sdk-guest/`, or `wit`, and its path in the project.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CopyRule {
    pub(super) from: String,
    pub(super) to: String,
}

/// A program that a language needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LanguageTool {
    /// The display name, if the command does not show it.
    name: Option<String>,
    /// A command that succeeds if the tool is installed.
    pub(super) command: Vec<String>,
    /// What the tool does for a project: a verb with an object.
    pub(super) why: String,
    /// How to install the tool, in one line.
    pub(super) get: String,
}

impl LanguageTool {
    /// The display name of the tool.
    pub(super) fn display_name(&self) -> String {
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
    /// The message of the TOML parser.
    pub(super) fn parse(id: &str, text: &str) -> Result<Self, String> {
        let mut language: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        id.clone_into(&mut language.id);
        Ok(language)
    }

    /// The folders of a project that hold the SDK, without those in another one.
    pub(super) fn sdk_folders(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.copy.iter().map(|copy| copy.to.as_str()).filter(|to| *to != ".").collect();
        all.sort_unstable();
        all.dedup_by(|inner, outer| Path::new(inner).starts_with(*outer));
        all
    }

    /// The files of a project that do not belong to the SDK.
    pub(super) fn own_files<'a>(&self, files: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
        let sdk = self.sdk_folders();
        let is_own = |file: &&str| !sdk.iter().any(|folder| Path::new(file).starts_with(folder));
        files.into_iter().map(String::as_str).filter(is_own).collect()
    }

    /// All values of `--lang` that select this language.
    fn names(&self) -> impl Iterator<Item = &str> {
        [self.id.as_str()].into_iter().chain(self.aliases.iter().map(String::as_str))
    }
}

/// The language with this id, alias or display name; upper and lower case are equal.
///
/// # Errors
/// A message with the nearest name, and with all languages.
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
    let hint = nearest.map(|(_, known)| format!(" did you mean \"{known}\"?")).unwrap_or_default();
    let shown = crate::model::text::quoted(name, 40);
    Err(format!("there is no language {shown};{hint} the languages are: {}", ids.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(id: &str, name: &str, aliases: &[&str]) -> Language {
        let text = format!(
            "name = {name:?}\naliases = {aliases:?}\ncopy = []\nsource = \"s\"\nbuild = [\"make\"]\ncomponent = \"c\"\ntest = [\"make\", \"test\"]"
        );
        Language::parse(id, &text).unwrap()
    }

    #[test]
    fn a_language_is_found_by_each_of_its_names() {
        let all = [language("cpp", "C++", &["cxx"]), language("python", "Python", &["py"])];
        for (name, id) in
            [("cpp", "cpp"), ("C++", "cpp"), ("cxx", "cpp"), ("py", "python"), ("Python", "python"), ("PY", "python")]
        {
            assert_eq!(find(&all, name).map(|language| language.id.as_str()), Ok(id), "{name}");
        }
        let why = |name| find(&all, name).err().unwrap();
        assert_eq!(
            why("pyhton"),
            "there is no language \"pyhton\"; did you mean \"python\"? the languages are: cpp, python"
        );
        assert_eq!(why("cobol"), "there is no language \"cobol\"; the languages are: cpp, python");
        assert!(!why("\u{1b}[2J").contains('\u{1b}'));
    }

    #[test]
    fn a_tool_has_a_display_name() {
        let tool = |command: &[&str], name: Option<&str>| LanguageTool {
            name: name.map(str::to_owned),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            why: String::new(),
            get: String::new(),
        };
        assert_eq!(tool(&["componentize-py", "--version"], None).display_name(), "componentize-py");
        assert_eq!(tool(&["python3", "-m", "ziglang", "version"], None).display_name(), "python3 -m ziglang");
        assert_eq!(tool(&["sh", "-c", "x"], Some("clang")).display_name(), "clang");
    }

    #[test]
    fn an_unknown_key_is_named() {
        let why = Language::parse("x", "name = \"X\"\ncopies = []").err().unwrap();
        assert!(why.contains("copies"), "{why}");
    }
}
