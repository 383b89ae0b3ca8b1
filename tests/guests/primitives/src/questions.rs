//! The tools that ask. Some find their place by the answers alone, and others by the state.

use belljar_guest::{Action, Ask, Context, Error, Outcome, Question, Result, Tool, ToolSet};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Primitives;

/// The form with one enumeration of each kind.
const ENUMS: &str = include_str!("enums.json").trim_ascii();

#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// The message to show the user
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the form of the question needs the fields")]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// A form with a default of each kind.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Defaults {
    name: String,
    age: i32,
    score: f64,
    status: Status,
    verified: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

#[derive(Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

/// The state of the first round, and the beginning of that of the second one.
const ROUND_1: &str = "round 1";
const ROUND_2: &str = "round 2: ";

impl Primitives {
    /// Adds the tools of this file.
    pub(crate) fn asking(tools: ToolSet<Self>) -> ToolSet<Self> {
        tools
            .tool(Tool::reading("test_elicitation", "Asks with the given message."), Self::elicitation)
            .tool(Tool::reading("test_elicitation_sep1034_defaults", "Asks with defaults."), Self::defaults)
            .tool(Tool::reading("test_elicitation_sep1330_enums", "Asks with enumerations."), Self::enums)
            .tool(Tool::reading("test_streaming_elicitation", "Asks for a name."), Self::user_name)
            .tool(Tool::reading("test_input_required_result_elicitation", "Asks for a name."), Self::user_name)
            .tool(Tool::reading("test_input_required_result_request_state", "Asks with a state."), Self::confirm)
            .tool(Tool::reading("test_input_required_result_tampered_state", "Asks with a state."), Self::confirm)
            .tool(Tool::reading("test_input_required_result_multi_round", "Asks twice."), Self::two_rounds)
    }

    fn elicitation(&self, Elicitation { message }: Elicitation, context: &Context) -> Result<Outcome<String>> {
        answered(context, Question::of::<User>("user", message), |action, content| {
            format!("User response: <action: {action}, content: {content}>")
        })
    }

    fn defaults(&self, _: belljar_guest::NoArguments, context: &Context) -> Result<Outcome<String>> {
        answered(context, Question::of::<Defaults>("defaults", "Please check the defaults"), completed)
    }

    fn enums(&self, _: belljar_guest::NoArguments, context: &Context) -> Result<Outcome<String>> {
        answered(context, Question::new("enums", "Please choose", ENUMS), completed)
    }

    fn user_name(&self, _: belljar_guest::NoArguments, context: &Context) -> Result<Outcome<String>> {
        match context.accepted::<Name>("user_name")? {
            Some(Name { name }) => Ok(Outcome::Done(format!("Hello, {name}!"))),
            None => ask(context, Question::of::<Name>("user_name", "What is your name?").into()),
        }
    }

    fn confirm(&self, _: belljar_guest::NoArguments, context: &Context) -> Result<Outcome<String>> {
        match (context.accepted::<Confirmation>("confirm")?, context.state.as_deref()) {
            (Some(Confirmation { ok }), Some(ROUND_1)) => Ok(Outcome::Done(format!("state-ok, confirmed: {ok}"))),
            _ => {
                let question = Question::of::<Confirmation>("confirm", "Please confirm");
                ask(context, Ask::new([question]).state(ROUND_1))
            }
        }
    }

    fn two_rounds(&self, _: belljar_guest::NoArguments, context: &Context) -> Result<Outcome<String>> {
        let state = context.state.as_deref().unwrap_or_default();
        if let Some(name) = state.strip_prefix(ROUND_2) {
            return match context.accepted::<Color>("step2")? {
                Some(Color { color }) => Ok(Outcome::Done(format!("{name} likes {color}."))),
                None => second_round(context, name),
            };
        }
        match context.accepted::<Name>("step1")?.filter(|_| state == ROUND_1) {
            Some(Name { name }) => second_round(context, &name),
            None => {
                let question = Question::of::<Name>("step1", "Step 1: What is your name?");
                ask(context, Ask::new([question]).state(ROUND_1))
            }
        }
    }
}

fn second_round(context: &Context, name: &str) -> Result<Outcome<String>> {
    let question = Question::of::<Color>("step2", "Step 2: What is your favorite color?");
    ask(context, Ask::new([question]).state(format!("{ROUND_2}{name}")))
}

/// Asks, if the client can.
pub(crate) fn ask<T>(context: &Context, ask: Ask) -> Result<Outcome<T>> {
    if !context.can_ask {
        return Err(Error::invalid("this needs a client that can ask a person: it must support elicitation"));
    }
    Ok(ask.into())
}

/// Asks one question, and describes the answer, whatever it is.
fn answered(context: &Context, question: Question, describe: impl Fn(&str, &str) -> String) -> Result<Outcome<String>> {
    let Some(answer) = context.answer_to(&question.key) else {
        return ask(context, question.into());
    };
    let action = match answer.action {
        Action::Accept => "accept",
        Action::Decline => "decline",
        Action::Cancel => "cancel",
    };
    Ok(Outcome::Done(describe(action, answer.content.as_deref().unwrap_or("{}"))))
}

fn completed(action: &str, content: &str) -> String {
    format!("Elicitation completed: action={action}, content={content}")
}
