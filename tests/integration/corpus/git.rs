//! `plugins/git` over repositories of each shape, compared with Git.

use serde_json::Value;

use super::Case;

/// The repositories that the program makes. Each is a mount of its name.
const REPOSITORIES: [&str; 24] = [
    "plain",
    "packed",
    "first-index",
    "many-packs",
    "borrowed",
    "borrowed-relative",
    "borrowed-outside",
    "with-trees",
    "linked",
    "astray",
    "outer",
    "sha256",
    "reftable",
    "both",
    "no-blobs",
    "no-trees",
    "shallow",
    "replaced",
    "grafted",
    "encodings",
    "empty",
    "names",
    "bare-source",
    "bare",
];

#[test]
fn answers_agree_with_git() {
    let mounts: String = REPOSITORIES
        .iter()
        .map(|name| {
            format!(
                "\n[mounts.{name}]\ncomponent = \"git.wasm\"\nfs = {{ \"/data\" = \"data\" }}\nenv = {{ REPOSITORY = \"{name}\" }}\n"
            )
        })
        .collect();
    super::compare("git", &mounts, judge);
}

fn judge(case: &Case, answer: Result<&str, &str>) -> Result<(), String> {
    let expected = &case.expected["value"];
    let text = match (case.expected["kind"].as_str(), answer) {
        // These may be the words of an error.
        (Some("words"), Ok(text) | Err(text)) => {
            let missing = strings(expected).into_iter().find(|word| !text.contains(word.as_str()));
            return missing.map_or(Ok(()), |word| Err(format!("{word:?} is not in {text}")));
        }
        (_, answer) => answer?,
    };
    let found = match case.expected["kind"].as_str() {
        Some("text") => Value::from(text),
        Some("begins") => return same(expected, &Value::from(text.split_inclusive('\n').next().unwrap_or_default())),
        Some("ids") => column(text, "commits", &["id"]),
        Some("entries") => rows(text, "entries", &["name", "type", "size"]),
        Some("refs") => rows(text, "refs", &["full_name", "id"]),
        Some("stat") => rows(text, "files", &["path", "added", "deleted"]),
        Some("patch") => patch(text),
        Some("blame") => text.lines().map(|line| line.get(..12).unwrap_or_default()).collect(),
        Some("commit") => return commit(expected, text),
        other => return Err(format!("the kind of the case is {other:?}")),
    };
    same(expected, &found)
}

fn same(expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    if let (Some(all), Some(others)) = (expected.as_array(), found.as_array()) {
        let at = all.iter().zip(others).position(|(one, other)| one != other).unwrap_or(all.len().min(others.len()));
        return Err(format!(
            "{} and {} elements; at {at} Git has {:?}, and belljar {:?}",
            all.len(),
            others.len(),
            all.get(at),
            others.get(at)
        ));
    }
    Err(format!("Git has {expected}, and belljar {found}"))
}

/// A commit with the author, the message and the patch of Git.
fn commit(expected: &Value, text: &str) -> Result<(), String> {
    let author = expected["author"].as_str().unwrap_or_default();
    let message: Vec<String> = expected["message"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .map(|line| format!("    {line}").trim_end().to_owned())
        .collect();
    let message = format!("\n\n{}\n\n", message.join("\n"));
    if !text.contains(&format!("Author: {author}\n")) || !text.contains(&message) {
        return Err(format!("expected {author:?} and {message:?} in {text}"));
    }
    same(&expected["patch"], &patch(text))
}

/// The lines of a diff, without the lengths of IDs and the notes of the provider.
fn patch(text: &str) -> Value {
    let start = text.find("\ndiff --git ").unwrap_or(text.len());
    let is_of_git = |line: &&str| !line.is_empty() && !line.starts_with("index ") && !line.starts_with("[git: ");
    text[start..].split('\n').filter(is_of_git).collect()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// Fields of the objects in an array of a JSON text.
fn rows(text: &str, array: &str, fields: &[&str]) -> Value {
    let Ok(json) = serde_json::from_str::<Value>(text) else { return Value::from(format!("no JSON: {text}")) };
    let row = |one: &Value| fields.iter().map(|field| one[*field].clone()).collect::<Value>();
    json[array].as_array().into_iter().flatten().map(row).collect()
}

fn column(text: &str, array: &str, fields: &[&str]) -> Value {
    rows(text, array, fields).as_array().into_iter().flatten().map(|row| row[0].clone()).collect()
}
