//! `belljar new`: creates a project for a provider from a template that is embedded in this program.

mod blocks;
mod embedded;
mod language;
mod project;
mod tools;

use super::output;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::model::command::shell_quoted;
use crate::server::failure::Failure;
pub(super) use blocks::ProjectPart;
use language::Language;
pub(super) use project::ProjectContent;
use project::ProjectNames;

/// The text of `--help` below the flags.
pub(super) fn help() -> String {
    format!(
        "Languages: {}. For the tools that each needs: belljar new --list\n\nExamples:\n  belljar new --lang python sea-level\n  belljar new --lang rust tides --dir ~/src/tides\n  belljar new --lang go tides --with tools,prompts",
        embedded::names().join(", ")
    )
}

/// Lists the languages and the tools that each needs.
pub(super) fn list(as_json: bool) -> Result<ExitCode, Failure> {
    let all = embedded::languages()?;
    if as_json {
        let languages = all.iter().map(|one| {
            json!({
                "lang": one.id, "name": one.name, "aliases": one.aliases, "build": one.build, "test": one.test, "component": one.component,
                "tools": one.tools.iter().map(|tool| json!({ "name": tool.display_name(), "why": tool.why, "get": tool.get })).collect::<Vec<_>>(),
            })
        });
        output::print_json(&json!({ "languages": languages.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for one in &all {
        let also = one.aliases.iter().map(|alias| format!(", {alias}")).collect::<String>();
        let needs: Vec<String> = one.tools.iter().map(language::LanguageTool::display_name).collect();
        let _ = writeln!(out, "{:<12} --lang {}{also}\n{:12} needs {}", one.name, one.id, "", needs.join(", "));
    }
    output::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The error of a command that names no language.
pub(super) fn without_language(name: &str) -> Failure {
    let all = embedded::names().join(", ");
    let name = shell_quoted(name);
    Failure::Misused(format!(
        "the language is missing; add --lang with one of: {all}; for example: belljar new --lang python {name}"
    ))
}

/// The languages, each with its tools that are not installed.
pub(super) fn languages_with_tools() -> Vec<(String, Vec<String>)> {
    let missing = |language: &language::Language| {
        tools::missing(language, Path::new(".")).iter().map(|tool| tool.display_name()).collect()
    };
    embedded::languages().into_iter().flatten().map(|one| (one.name.clone(), missing(&one))).collect()
}

/// Creates a project with this content.
pub(super) fn run(
    lang: &str,
    name: &str,
    dir: Option<&Path>,
    content: &ProjectContent,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let all = embedded::languages()?;
    let language = language::find(&all, lang).map_err(Failure::Misused)?;
    let names = ProjectNames::new(name, language).map_err(Failure::Misused)?;
    let files = project::files(language, &names, content)?;
    // The suggested commands start in the working directory, so they name the project as the author did.
    let shown = dir.map_or_else(|| PathBuf::from(names.kebab()), Path::to_owned);
    #[expect(clippy::disallowed_methods, reason = "the author's working directory")]
    let here = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("cannot find the working directory: {error}")))?;
    let at = here.join(&shown);
    project::write(&at, &files)?;
    let missing = tools::missing(language, &at);
    let mut next = vec![format!("cd {}", shell_quoted(&shown.to_string_lossy()))];
    next.extend(
        [&language.setup, &language.build].into_iter().filter(|words| !words.is_empty()).map(|words| words.join(" ")),
    );
    next.push("belljar dev .".to_owned());
    if as_json {
        let is_minimal = matches!(content, ProjectContent::Minimal);
        output::print_json(&json!({
            "name": names.kebab(),
            "lang": language.id,
            "with": content.parts().iter().map(|part| part.name()).collect::<Vec<_>>(),
            "minimal": is_minimal,
            "directory": at,
            "source": names.fill(&language.source),
            "files": files.keys().collect::<Vec<_>>(),
            "setup": language.setup,
            "build": language.build,
            "test": if is_minimal { &[][..] } else { &language.test },
            "component": names.fill(&language.component),
            "missing": missing.iter().map(|tool| json!({ "name": tool.display_name(), "why": tool.why, "get": tool.get })).collect::<Vec<_>>(),
            "next": next,
        }))?;
    } else {
        let about = match content {
            ProjectContent::With(_) => format!("{} files; its README.md names the files to edit", files.len()),
            ProjectContent::Minimal => {
                let (own, source) = (language.own_files(files.keys()).len(), names.fill(&language.source));
                format!("{own} files of yours; edit {source} (the SDK is in {})", language.sdk_folders().join(", "))
            }
        };
        output::print(&to_text(&shown, language, &about, &missing, &next))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_text(
    at: &Path,
    language: &Language,
    about: &str,
    missing: &[&language::LanguageTool],
    next: &[String],
) -> String {
    let mut out = format!("created {}: a provider in {}, {about}\n", at.display(), language.name);
    if !missing.is_empty() {
        out.push_str("\nmissing tools that the build needs:\n");
        for tool in missing {
            let _ = writeln!(out, "  {}: {}\n    {}", tool.display_name(), tool.why, tool.get);
        }
    }
    out.push_str("\nnext:\n");
    for line in next {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// How to detect a project's language: the name of a file in it, or the ending of a file in `src`. The first match
/// wins.
const LANGUAGE_MARKERS: [(&str, &str); 8] = [
    ("Cargo.toml", "rust"),
    ("tsconfig.json", "typescript"),
    ("package.json", "javascript"),
    ("pyproject.toml", "python"),
    ("go.mod", "go"),
    ("src/.zig", "zig"),
    ("src/.cpp", "cpp"),
    ("src/.c", "c"),
];

/// A message for each missing tool of the project in `dir`, with a way to install it. Empty if the language is not
/// known.
pub(super) fn missing_tools(dir: &Path) -> Vec<String> {
    let is_there = |mark: &str| match mark.strip_prefix("src/") {
        None => dir.join(mark).is_file(),
        #[expect(clippy::disallowed_methods, reason = "the author's project")]
        Some(ending) => std::fs::read_dir(dir.join("src"))
            .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))),
    };
    let Some((_, lang)) = LANGUAGE_MARKERS.iter().find(|(mark, _)| is_there(mark)) else { return Vec::new() };
    let Ok(all) = embedded::languages() else { return Vec::new() };
    let language = all.iter().find(|language| language.id == *lang);
    let missing = language.map(|language| tools::missing(language, dir)).unwrap_or_default();
    missing
        .iter()
        .map(|tool| {
            format!("missing tool \"{}\", which {}; to install it: {}", tool.display_name(), tool.why, tool.get)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_creates_a_complete_project() {
        for language in embedded::languages().unwrap() {
            let names = ProjectNames::new("sea-level", &language).unwrap();
            let files = project::files(&language, &names, &ProjectContent::of([])).unwrap();
            for wanted in ["README.md", ".gitignore", "belljar.toml", "data/notes.md"] {
                assert!(files.contains_key(wanted), "{}: no {wanted}", language.id);
            }
        }
    }

    #[test]
    fn a_minimal_project_has_the_source_and_few_other_files() {
        for language in embedded::languages().unwrap() {
            let names = ProjectNames::new("sea-level", &language).unwrap();
            let files = project::files(&language, &names, &ProjectContent::Minimal).unwrap();
            let own = language.own_files(files.keys());
            let kept = language.minimal.iter().map(|file| names.fill(file)).filter(|file| own.contains(&file.as_str()));
            assert_eq!(kept.count(), language.minimal.len(), "{}: {own:?}", language.id);
            assert!(own.contains(&names.fill(&language.source).as_str()), "{}: {own:?}", language.id);
            assert!(own.contains(&"belljar.toml") && own.len() <= 8, "{}: {own:?}", language.id);
            let source = String::from_utf8(files[&names.fill(&language.source)].clone()).unwrap();
            assert!(source.lines().count() <= 45 && source.contains("sea-level"), "{}: {source}", language.id);
        }
    }

    #[test]
    fn the_language_of_a_project_is_detected() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(missing_tools(temp.path()), [""; 0]);
        for (mark, lang) in LANGUAGE_MARKERS {
            assert!(embedded::languages().unwrap().iter().any(|language| language.id == lang), "{mark}: {lang}");
        }
    }
}
