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
use crate::model::command::quoted;
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

/// What tells a project's language: a file in it, or the ending of one in `src`. The first that fits counts.
const MARKS: [(&str, &str); 8] = [
    ("Cargo.toml", "rust"),
    ("tsconfig.json", "typescript"),
    ("package.json", "javascript"),
    ("pyproject.toml", "python"),
    ("go.mod", "go"),
    ("src/.zig", "zig"),
    ("src/.cpp", "cpp"),
    ("src/.c", "c"),
];

/// The tools that the project in `dir` lacks, each with how to get it; as far as its language is known.
pub(super) fn missing_tools(dir: &Path) -> Vec<String> {
    let is_there = |mark: &str| match mark.strip_prefix("src/") {
        None => dir.join(mark).is_file(),
        #[expect(clippy::disallowed_methods, reason = "the author's project")]
        Some(ending) => std::fs::read_dir(dir.join("src"))
            .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))),
    };
    let Some((_, lang)) = MARKS.iter().find(|(mark, _)| is_there(mark)) else { return Vec::new() };
    let Ok(all) = embedded::languages() else { return Vec::new() };
    let language = all.iter().find(|language| language.id == *lang);
    let missing = language.map(|language| tools::missing(language, dir)).unwrap_or_default();
    missing
        .iter()
        .map(|tool| format!("{} is not found here; it {}; to get it: {}", tool.shown(), tool.why, tool.get))
        .collect()
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
    fn a_project_is_known_by_what_lies_in_it() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(missing_tools(temp.path()), [""; 0]);
        for (mark, lang) in MARKS {
            assert!(embedded::languages().unwrap().iter().any(|language| language.id == lang), "{mark}: {lang}");
        }
    }
}
