//! `belljar new`: makes a project for a provider, in one of the languages that the binary carries.

mod embedded;
mod language;
mod project;
mod tools;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::Failure;
use language::Language;
use project::Names;

/// What `--help` shows below the flags.
pub(super) fn help() -> String {
    format!(
        "Languages: {}. More of each: belljar new --list\n\nExamples:\n  belljar new --lang python sea-level\n  belljar new --lang rust tides --dir ~/src/tides",
        embedded::names().join(", ")
    )
}

/// Shows the languages.
pub(super) fn list(as_json: bool) -> Result<ExitCode, Failure> {
    let all = embedded::languages()?;
    if as_json {
        let languages = all.iter().map(|one| {
            json!({
                "lang": one.id, "name": one.name, "aliases": one.aliases, "build": one.build, "test": one.test, "component": one.component,
                "tools": one.tools.iter().map(|tool| json!({ "name": tool.shown(), "why": tool.why, "get": tool.get })).collect::<Vec<_>>(),
            })
        });
        super::print_json(&json!({ "languages": languages.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for one in &all {
        let also = one.aliases.iter().map(|alias| format!(", {alias}")).collect::<String>();
        let needs: Vec<String> = one.tools.iter().map(language::Tool::shown).collect();
        let _ = writeln!(out, "{:<12} --lang {}{also}\n{:12} needs {}", one.name, one.id, "", needs.join(", "));
    }
    super::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a project.
pub(super) fn run(lang: &str, name: &str, dir: Option<&Path>, as_json: bool) -> Result<ExitCode, Failure> {
    let all = embedded::languages()?;
    let language = language::find(&all, lang).map_err(Failure::Misused)?;
    let names = Names::new(name, language).map_err(Failure::Misused)?;
    let files = project::files(language, &names)?;
    // What is typed next is typed here.
    let shown = dir.map_or_else(|| PathBuf::from(names.kebab()), Path::to_owned);
    #[expect(clippy::disallowed_methods, reason = "where the author is")]
    let here = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the working directory cannot be found: {error}")))?;
    let at = here.join(&shown);
    project::write(&at, &files)?;
    let missing = tools::missing(language, &at);
    let mut next = vec![format!("cd {}", quoted(&shown.to_string_lossy()))];
    next.extend(
        [&language.setup, &language.build].into_iter().filter(|words| !words.is_empty()).map(|words| words.join(" ")),
    );
    next.push("belljar dev .".to_owned());
    if as_json {
        super::print_json(&json!({
            "name": names.kebab(),
            "lang": language.id,
            "directory": at,
            "files": files.keys().collect::<Vec<_>>(),
            "setup": language.setup,
            "build": language.build,
            "test": language.test,
            "component": names.fill(&language.component),
            "missing": missing.iter().map(|tool| json!({ "name": tool.shown(), "why": tool.why, "get": tool.get })).collect::<Vec<_>>(),
            "next": next,
        }))?;
    } else {
        super::print(&to_text(&shown, language, files.len(), &missing, &next))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_text(at: &Path, language: &Language, files: usize, missing: &[&language::Tool], next: &[String]) -> String {
    let mut out = format!(
        "made {}: a provider in {}, {files} files; README.md says which to edit\n",
        at.display(),
        language.name
    );
    if !missing.is_empty() {
        out.push_str("\nnot found here, and needed:\n");
        for tool in missing {
            let _ = writeln!(out, "  {}: {}\n    {}", tool.shown(), tool.why, tool.get);
        }
    }
    out.push_str("\nnext:\n");
    for line in next {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-~+@%".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_makes_a_whole_project() {
        for language in embedded::languages().unwrap() {
            let names = Names::new("sea-level", &language).unwrap();
            let files = project::files(&language, &names).unwrap();
            for wanted in ["README.md", ".gitignore", "belljar.toml", "data/notes.md"] {
                assert!(files.contains_key(wanted), "{}: no {wanted}", language.id);
            }
        }
    }

    #[test]
    fn a_shell_takes_a_path_for_one_word() {
        assert_eq!(quoted("a/b-c.d"), "a/b-c.d");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
    }
}
