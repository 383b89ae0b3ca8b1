//! Definitions of tools and prompts, from JSON. Missing parts are filled with honest ones. `times` repeats a definition,
//! with a number after its name; `pad` makes its description longer.

use serde_json::Value;

use crate::generated::belljar::provider::types::Icon;
use crate::generated::exports::belljar::provider::prompt_provider::{PromptArgument, PromptInfo};
use crate::generated::exports::belljar::provider::tool_provider::{Effect, ToolInfo, View};
use crate::{meta, text};

/// Each definition as often as it says, with its name.
fn each(all: &Value) -> impl Iterator<Item = (String, &Value)> {
    all.as_array().into_iter().flatten().flat_map(|one| {
        let name = text(one, "name");
        let names = match one["times"].as_u64() {
            None => vec![name],
            Some(times) => (0..times).map(|n| format!("{name}{n}")).collect(),
        };
        names.into_iter().map(move |name| (name, one))
    })
}

fn description(one: &Value) -> String {
    let pad = usize::try_from(one["pad"].as_u64().unwrap_or(0)).unwrap_or(0);
    let own = one["description"].as_str().unwrap_or("A tool of an attack");
    format!("{own}{}", "x".repeat(pad))
}

fn title(one: &Value) -> Option<String> {
    one["title"].as_str().map(str::to_owned)
}

fn icons(one: &Value) -> Vec<Icon> {
    let src = one["icon"].as_str().map(str::to_owned);
    src.map(|src| Icon { src, mime_type: None, sizes: Vec::new() }).into_iter().collect()
}

/// The text of a schema. A string is taken as it is, so it may be no JSON.
fn schema(schema: &Value) -> Option<String> {
    match schema {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

pub(crate) fn tools(all: Value) -> Vec<ToolInfo> {
    let tool = |(name, one): (String, &Value)| ToolInfo {
        name,
        title: title(one),
        description: description(one),
        input: schema(&one["input"]).unwrap_or_else(|| "{\"type\":\"object\"}".to_owned()),
        output: schema(&one["output"]),
        effect: match one["effect"].as_str() {
            Some("adds") => Effect::Adds,
            Some("destroys") => Effect::Destroys,
            _ => Effect::Reads,
        },
        idempotent: one["idempotent"] == true,
        open_world: one["open"] == true,
        view: one["page"].as_str().map(|page| View { page: page.to_owned(), app_only: one["app"] == true }),
        icons: icons(one),
        meta: meta(&one["meta"]),
    };
    each(&all).map(tool).collect()
}

pub(crate) fn prompts(all: Value) -> Vec<PromptInfo> {
    let argument = |one: &Value| PromptArgument {
        name: text(one, "name"),
        title: title(one),
        description: one["description"].as_str().map(str::to_owned),
        required: one["required"] == true,
    };
    let prompt = |(name, one): (String, &Value)| PromptInfo {
        name,
        title: title(one),
        description: description(one),
        arguments: one["arguments"].as_array().into_iter().flatten().map(argument).collect(),
        icons: icons(one),
        meta: meta(&one["meta"]),
    };
    each(&all).map(prompt).collect()
}
