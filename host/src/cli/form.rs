//! Questions of providers, on the terminal: field by field.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::{Map, Value};

use super::fields::Field;
use crate::gateway::asking::ProviderQuestions;
use crate::interfaces::asking::check_answer;
use crate::model::error::PROVIDER_SAYS;
use crate::model::{Answer, AnswerAction, MountName, Question, text};

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// How often a field, and a whole form, is asked for again after a wrong answer, before the question counts as declined.
const MAX_TRIES: usize = 10;

/// The most characters of a provider's message that are shown.
const MAX_MESSAGE_CHARS: usize = 1000;

/// Asks all questions, one after the other. The end of input declines a question.
///
/// # Errors
/// If reading or writing fails.
pub(super) fn ask(
    asked: &ProviderQuestions,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Vec<Answer>> {
    asked.questions.iter().map(|question| ask_one(&asked.mount, question, input, out)).collect()
}

fn ask_one(
    mount: &MountName,
    question: &Question,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Answer> {
    let key = question.key.clone();
    let form: Map<String, Value> = serde_json::from_str(&question.form).unwrap_or_default();
    writeln!(out, "{mount}: {PROVIDER_SAYS}{}", text::excerpt(&question.message, MAX_MESSAGE_CHARS))?;
    writeln!(out, "(An empty line takes the default. The end of input, Ctrl-D, declines.)")?;
    let fields = Field::all_of(&form);
    for _ in 0..MAX_TRIES {
        let Some(content) = fill(&fields, input, out)? else { break };
        let content = Some(Value::Object(content).to_string());
        let answer = Answer { key: key.clone(), action: AnswerAction::Accept, content };
        match check_answer(&answer, question) {
            Ok(()) => return Ok(answer),
            Err(why) => writeln!(out, "The answer {why}. Once more:")?,
        }
    }
    writeln!(out, "Declined.")?;
    Ok(Answer { key, action: AnswerAction::Decline, content: None })
}

/// Fills in a form. `None`: the person declines.
fn fill(fields: &[Field], input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<Map<String, Value>>> {
    let mut content = Map::new();
    for field in fields {
        let Some(value) = fill_field(field, input, out)? else { return Ok(None) };
        if let Some(value) = value {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(Some(content))
}

/// The value of one field; inside, `None` if it is left out. Outside, `None`: the person declines.
fn fill_field(field: &Field, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<Option<Value>>> {
    for _ in 0..MAX_TRIES {
        write!(out, "{}", label(field))?;
        out.flush()?;
        let mut line = String::new();
        if input.by_ref().take(MAX_LINE_BYTES).read_line(&mut line)? == 0 {
            writeln!(out)?;
            return Ok(None);
        }
        match typed(field, line.trim()) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => writeln!(out, "That is not an answer: {why}.")?,
        }
    }
    Ok(None)
}

/// `Colour - the colour of the door (red or green; default: red): `
fn label(field: &Field) -> String {
    let name = if field.title.is_empty() { text::excerpt(&field.name, 80) } else { field.title.clone() };
    let description = match field.description.is_empty() || field.description == name {
        true => String::new(),
        false => format!(" - {}", field.description),
    };
    let expected = match field.is_list {
        true => format!("any of {}, with commas between them", field.expected()),
        false => field.expected(),
    };
    let note = match field.shown_default() {
        Some(default) => format!("; default: {default}"),
        None if field.is_required => String::new(),
        None => "; may be left empty".to_owned(),
    };
    format!("{name}{description} ({expected}{note}): ")
}

/// The value of a line. `None`: the field is left out.
fn typed(field: &Field, line: &str) -> Result<Option<Value>, String> {
    if line.is_empty() {
        return match (&field.default, field.is_required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, false) => Ok(None),
            (None, true) => Err(format!("expected {}", field.expected())),
        };
    }
    match field.is_list {
        false => field.parse(line).map(Some),
        true => {
            let all = line.split(',').map(|one| field.parse(one.trim()));
            all.collect::<Result<_, _>>().map(|all| Some(Value::Array(all)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(form: &Value, typed: &str) -> (Vec<(AnswerAction, Value)>, String) {
        let question =
            |key: &str| Question { key: key.to_owned(), message: "Which\u{1b}[2J?".to_owned(), form: form.to_string() };
        let questions = vec![question("a")];
        let asked = ProviderQuestions { mount: MountName::new("notes").unwrap(), questions, state: String::new() };
        let mut out = Vec::new();
        let answers = ask(&asked, &mut typed.as_bytes(), &mut out).unwrap();
        let content = |answer: &Answer| {
            answer.content.as_ref().map_or(Value::Null, |content| serde_json::from_str(content).unwrap())
        };
        let answers = answers.iter().map(|answer| (answer.action, content(answer))).collect();
        (answers, String::from_utf8(out).unwrap())
    }

    fn form() -> Value {
        json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "title": "Your name", "minLength": 2 },
            "age": { "type": "integer" },
            "colour": { "type": "string", "enum": ["red", "green"], "default": "red" },
            "days": { "type": "array", "items": { "type": "string", "enum": ["mon", "tue"] } },
            "yes": { "type": "boolean", "default": false },
        }})
    }

    /// The lines for the fields of [`form`]: the required one first, then the others in the order of their names.
    fn lines(name: &str, [age, colour, days, yes]: [&str; 4]) -> String {
        [name, age, colour, days, yes].map(|line| format!("{line}\n")).concat()
    }

    #[test]
    fn a_form_is_filled_in_field_by_field() {
        let (given, out) = answers(&form(), &lines("Ada", ["36", "green", "mon, tue", "y"]));
        let content = json!({ "name": "Ada", "age": 36, "colour": "green", "days": ["mon", "tue"], "yes": true });
        assert_eq!(given, [(AnswerAction::Accept, content)]);
        for told in [
            "notes: the provider says: Which[2J?\n",
            "Your name (text): ",
            "age (a whole number such as 5; may be left empty): ",
            "colour (red or green; default: red): ",
            "days (any of mon or tue, with commas between them; may be left empty): ",
            "yes (true or false; default: false): ",
        ] {
            assert!(out.contains(told), "{told}: {out}");
        }
        assert!(!out.contains('\u{1b}'));
    }

    #[test]
    fn an_empty_line_takes_the_default_or_leaves_the_field_out() {
        let (given, _) = answers(&form(), &lines("Ada", ["", "", "", ""]));
        assert_eq!(given, [(AnswerAction::Accept, json!({ "name": "Ada", "colour": "red", "yes": false }))]);
    }

    #[test]
    fn a_wrong_line_is_asked_for_again() {
        let typed = format!("\n{}", lines("Ada", ["old\n7", "blue\nred", "wed\nmon", "perhaps\nno"]));
        let (given, out) = answers(&form(), &typed);
        let content = json!({ "name": "Ada", "age": 7, "colour": "red", "days": ["mon"], "yes": false });
        assert_eq!(given, [(AnswerAction::Accept, content)]);
        assert_eq!(out.matches("That is not an answer: expected").count(), 5, "{out}");
        // Only the form itself knows that the name is too short.
        let again = lines("A", ["", "", "", ""]) + &lines("Ada", ["", "", "", ""]);
        let (given, out) = answers(&form(), &again);
        assert_eq!((given.len(), given.first().map(|one| one.0)), (1, Some(AnswerAction::Accept)));
        assert!(out.contains("The answer \"a\" does not fit its form: "), "{out}");
    }

    #[test]
    fn the_end_of_input_and_too_many_tries_decline() {
        for typed in
            [String::new(), "Ada\n36\n".to_owned(), "\n".repeat(MAX_TRIES), lines("A", [""; 4]).repeat(MAX_TRIES)]
        {
            let (given, out) = answers(&form(), &typed);
            assert_eq!(given, [(AnswerAction::Decline, Value::Null)], "{typed:?}");
            assert!(out.ends_with("Declined.\n"), "{out}");
        }
    }
}
