//! The words after the name of a tool or a prompt: its arguments, as flags or as one JSON object.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::fields::{Field, FieldType, MAX_NAME_CHARS};
use super::table;
use crate::model::{nearest, text};

/// What the words after a name ask for.
#[derive(Debug, PartialEq)]
pub(super) enum Words {
    /// The list of the arguments.
    Help,
    /// A call with these arguments.
    Arguments(Map<String, Value>),
}

/// True if the name can be the name of a flag.
fn is_flag(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && name != "help" && !name.chars().any(|c| c == '=' || c.is_whitespace())
}

/// The flag of a field, as it is typed.
fn flag(name: &str) -> String {
    format!("--{}", text::excerpt(name, MAX_NAME_CHARS))
}

/// The field that `--name` stands for. A "-" may stand for an "_".
fn find<'f>(fields: &'f [Field], name: &str) -> Option<&'f Field> {
    let mut flags = fields.iter().filter(|field| is_flag(&field.name));
    flags.clone().find(|field| field.name == name).or_else(|| flags.find(|field| field.name.replace('_', "-") == name))
}

fn unknown(fields: &[Field], name: &str) -> String {
    let shown = text::quoted(&format!("--{name}"), MAX_NAME_CHARS);
    if ["json", "output", "config", "plugins", "place", "dev"].contains(&name) {
        return format!("there is no argument {shown}; the flags of belljar itself stand before the name");
    }
    let flags: Vec<&Field> = fields.iter().filter(|field| is_flag(&field.name)).collect();
    let near = nearest(name, flags.iter().map(|field| field.name.as_str()));
    match (near, flags.as_slice()) {
        (Some(near), _) => format!("there is no argument {shown}; did you mean \"{}\"?", flag(near)),
        (None, []) => format!("there is no argument {shown}; it takes no arguments as flags"),
        (None, all) => {
            let all: Vec<String> = all.iter().map(|field| flag(&field.name)).collect();
            format!("there is no argument {shown}; the arguments are {}", all.join(", "))
        }
    }
}

/// Reads the words after a name.
///
/// # Errors
/// The wrong word, what was expected, and the cure.
pub(super) fn parse(fields: &[Field], words: &[String]) -> Result<Words, String> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        let object: Result<Map<String, Value>, _> = serde_json::from_str(only);
        let not_json = |error: serde_json::Error| {
            format!("the arguments are not a JSON object: {}", text::excerpt(&error.to_string(), 120))
        };
        return object.map(Words::Arguments).map_err(not_json);
    }
    let mut arguments = Map::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "--help" | "-h") {
            return Ok(Words::Help);
        }
        let Some(typed) = word.strip_prefix("--") else {
            let shown = text::quoted(word, MAX_NAME_CHARS);
            return Err(format!(
                "{shown} is no flag; expected flags such as --name value, or one JSON object in quotes"
            ));
        };
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (typed, None),
        };
        let field = find(fields, name).ok_or_else(|| unknown(fields, name))?;
        let (shown, mut rest) = (flag(&field.name), words.clone());
        let next = rest.next().filter(|next| !next.starts_with("--"));
        let value = match (value, next) {
            (Some(value), _) => value,
            // A flag without a value says yes. Only a word for yes or no can be its value.
            (None, next) if field.kind == FieldType::Boolean && !field.is_list => match next {
                Some(next) if field.parse(next).is_ok() => {
                    words = rest;
                    next
                }
                _ => "true",
            },
            (None, Some(next)) => {
                words = rest;
                next
            }
            (None, None) => return Err(format!("{shown} has no value; expected {}", field.expected())),
        };
        let value =
            field.parse(value).map_err(|why| format!("{shown} {}: {why}", text::quoted(value, MAX_NAME_CHARS)))?;
        match arguments.get_mut(&field.name) {
            Some(Value::Array(all)) if field.is_list => all.push(value),
            Some(_) => return Err(format!("{shown} is there twice; expected it once")),
            None => {
                let value = if field.is_list { Value::Array(vec![value]) } else { value };
                arguments.insert(field.name.clone(), value);
            }
        }
    }
    Ok(Words::Arguments(arguments))
}

/// The widest aligned column of flags, in characters.
const MAX_COLUMN: usize = 40;

/// The lines about the arguments, each with `indent` spaces before it.
pub(super) fn help(fields: &[Field], indent: usize) -> String {
    let columns: Vec<(String, String)> = fields.iter().map(columns).collect();
    let width = table::width(columns.iter().map(|(left, _)| left), MAX_COLUMN);
    let mut out = String::new();
    for (left, right) in &columns {
        let line = format!("{:indent$}{left:width$}  {right}", "");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// The flag of a field with its type, and everything else about it.
fn columns(field: &Field) -> (String, String) {
    let kind = match field.kind {
        FieldType::Text => "TEXT",
        FieldType::Integer => "INTEGER",
        FieldType::Number => "NUMBER",
        FieldType::Boolean if field.is_list => "true|false",
        FieldType::Boolean => "",
        FieldType::Json => "JSON",
    };
    let kind = if field.choices.is_empty() { kind } else { "CHOICE" };
    let name = if is_flag(&field.name) { flag(&field.name) } else { text::quoted(&field.name, MAX_NAME_CHARS) };
    let left = format!("{name} {kind}");
    let mut notes = Vec::new();
    if !is_flag(&field.name) {
        notes.push("only in JSON".to_owned());
    }
    if field.is_required {
        notes.push("required".to_owned());
    }
    if field.is_list {
        notes.push("can be repeated".to_owned());
    }
    if !field.choices.is_empty() {
        notes.push(field.expected());
    }
    notes.extend(field.shown_default().map(|default| format!("default: {default}")));
    let notes = if notes.is_empty() { String::new() } else { format!("({})", notes.join("; ")) };
    let told = if field.description.is_empty() { &field.title } else { &field.description };
    let right = [told.as_str(), &notes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
    (left.trim_end().to_owned(), right)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Vec<Field> {
        let schema = json!({ "type": "object", "required": ["query"], "properties": {
            "query": { "type": "string", "description": "The words" },
            "max_hits": { "type": "integer", "default": 10 },
            "deep": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "order": { "enum": ["new", "old"] },
            "a b": { "type": "string" },
        }});
        Field::all_of(schema.as_object().unwrap())
    }

    fn read(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&fields(), &words).map(|words| match words {
            Words::Arguments(arguments) => Value::Object(arguments),
            Words::Help => json!("help"),
        })
    }

    #[test]
    fn flags_are_arguments_of_the_types_of_the_schema() {
        for (words, arguments) in [
            (&[][..], json!({})),
            (&["--query", "5"], json!({ "query": "5" })),
            (&["--query=--x"], json!({ "query": "--x" })),
            (&["--query=a=b", "--max-hits", "-3"], json!({ "query": "a=b", "max_hits": -3 })),
            (&["--deep", "--max_hits=2"], json!({ "deep": true, "max_hits": 2 })),
            (&["--deep", "no"], json!({ "deep": false })),
            (&["--deep=false"], json!({ "deep": false })),
            (&["--tags", "a", "--order", "old", "--tags", "b"], json!({ "tags": ["a", "b"], "order": "old" })),
            (&["{\"a b\": 1}"], json!({ "a b": 1 })),
            (&["--query", "{x"], json!({ "query": "{x" })),
            (&["--query", "x", "--help"], json!("help")),
            (&["-h"], json!("help")),
        ] {
            assert_eq!(read(words), Ok(arguments), "{words:?}");
        }
    }

    #[test]
    fn a_wrong_word_is_named_with_the_cure() {
        for (words, why) in [
            (&["--qeury", "x"][..], "there is no argument \"--qeury\"; did you mean \"--query\"?"),
            (&["--json"], "there is no argument \"--json\"; the flags of belljar itself stand before the name"),
            (&["--zzzzzz"], "the arguments are --query, "),
            (&["--a b", "x"], "there is no argument \"--a b\""),
            (&["plain"], "\"plain\" is no flag; expected flags such as --name value, or one JSON object in quotes"),
            (&["--query"], "--query has no value; expected text"),
            (&["--query", "--deep"], "--query has no value; expected text"),
            (&["--max_hits", "many"], "--max_hits \"many\": expected a whole number such as 5"),
            (&["--order", "best"], "--order \"best\": expected new or old"),
            (&["--query", "x", "--query", "y"], "--query is there twice; expected it once"),
            (&["--deep", "maybe"], "\"maybe\" is no flag"),
            (&["{\"query\": }"], "the arguments are not a JSON object: "),
            (&["{}", "--deep"], "\"{}\" is no flag"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(why), "{words:?}: {error}");
        }
    }

    #[test]
    fn the_help_lists_each_argument() {
        let help = help(&fields(), 2);
        let lines: Vec<&str> = help.lines().collect();
        assert_eq!(lines.first(), Some(&"  --query TEXT        The words  (required)"), "{help}");
        for line in [
            "--max_hits INTEGER  (default: 10)",
            "--deep",
            "--tags TEXT         (can be repeated)",
            "--order CHOICE      (new or old)",
            "\"a b\" TEXT          (only in JSON)",
        ] {
            assert!(lines.contains(&format!("  {line}").as_str()), "{line}: {help}");
        }
    }
}
