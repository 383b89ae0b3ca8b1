//! The conformance checks of `tool-provider`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{CallTool, ListTools, ToolDefinition};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, is_crash, shown};
use crate::model::{AskContext, AskOutcome, Effect, ReadError};

/// A name that no tool has.
const UNKNOWN: &str = "belljar-conformance-there-is-no-such-tool";

/// The most tools that are called.
const MAX_CALLS: usize = 20;

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    let tools = run.check_tool_list().await;
    run.check_tool_calls(&tools).await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_tool_list(&mut self) -> Vec<Arc<ToolDefinition>> {
        let mut check = Check::new("list-tools");
        let mut tools = Vec::new();
        let mut names = Vec::new();
        for _ in 0..2 {
            match self.call(ListTools).await {
                Ok(given) => match self.checked(&ListTools, given) {
                    Ok(list) => {
                        list.left_out.into_iter().for_each(|why| check.bad(why));
                        names.push(list.all.iter().map(|one| one.tool.name.clone()).collect::<Vec<_>>());
                        tools = list.all;
                    }
                    Err(error) => check.bad(error.to_string()),
                },
                Err(error) => check.unexpected("list-tools", &error, "all tools, also without a grant"),
            }
        }
        if let [first, second] = names.as_slice()
            && first != second
        {
            check.warn("two calls gave different lists".to_owned());
        }
        for definition in &tools {
            let (name, tool) = (shown(&definition.tool.name), &definition.tool);
            if tool.description.trim().is_empty() {
                check.warn(format!("the tool {name} has no description; models choose tools by it"));
            }
            let fields = definition.input.object().get("properties").and_then(Value::as_object);
            let silent = fields.into_iter().flatten().find(|(_, field)| field.get("description").is_none());
            if let Some((field, _)) = silent {
                check.warn(format!("the argument {} of {name} has no description", shown(field)));
            }
        }
        self.found(check.finding(format!("{} tools", tools.len())));
        tools
    }

    /// Calls an unknown tool, and each tool that claims to read only, with the least arguments.
    async fn check_tool_calls(&mut self, tools: &[Arc<ToolDefinition>]) {
        let mut check = Check::new("call");
        let call = |name: &str, arguments: &Value| CallTool {
            name: name.to_owned(),
            arguments: arguments.to_string(),
            context: AskContext::default(),
        };
        match self.call(call(UNKNOWN, &Value::Object(Map::new()))).await {
            Err(ReadError::NotFound) => {}
            Ok(_) => check.bad("an unknown tool gave a result; expected `not-found`".to_owned()),
            Err(error) => check.unexpected("a call of an unknown tool", &error, "`not-found`"),
        }
        let mut called = 0;
        for definition in tools.iter().filter(|one| one.tool.effect == Effect::Reads).take(MAX_CALLS) {
            let name = shown(&definition.tool.name);
            let arguments = least(definition.input.object());
            // Without a value that fits, only the author can make a call.
            if definition.check_arguments(&arguments).is_err() {
                continue;
            }
            called += 1;
            let function = call(&definition.tool.name, &arguments);
            match self.call(function.clone()).await {
                Ok(given) => match self.checked(&function, given) {
                    Ok(AskOutcome::Ask(_)) => {
                        check.warn(format!("{name} asks a client that cannot ask a person; do without the answer"));
                    }
                    Ok(AskOutcome::Done(result)) => {
                        if let Err(error) = definition.structured(&result) {
                            check.bad(format!("{name}: {error}"));
                        }
                        if result.content.is_empty() {
                            check.warn(format!(
                                "{name} gives only a structured result; some clients show their model nothing of it"
                            ));
                        }
                    }
                    Err(error) => check.bad(format!("{name}: {error}")),
                },
                Err(ReadError::NotFound) => check.bad(format!("{name} is listed, but a call of it is `not-found`")),
                Err(error) if is_crash(&error) => check.bad(format!("{name}: {error}")),
                Err(_) => {}
            }
        }
        self.found(check.finding(format!("{called} of {} tools were called", tools.len())));
    }
}

/// The smallest arguments that may fit a schema: the required ones, each with a simple value.
fn least(schema: &Map<String, Value>) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| {
        let field = fields.and_then(|fields| fields.get(name)).and_then(Value::as_object);
        let get = |key: &str| field.and_then(|field| field.get(key)).cloned();
        let first = get("enum").and_then(|all| all.get(0).cloned());
        get("default").or_else(|| get("const")).or(first).unwrap_or_else(|| {
            match get("type").as_ref().and_then(Value::as_str) {
                Some("integer" | "number") => get("minimum").unwrap_or_else(|| 1.into()),
                Some("boolean") => false.into(),
                Some("array") => Value::Array(Vec::new()),
                Some("object") => Value::Object(Map::new()),
                _ => "a".into(),
            }
        })
    };
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_least_arguments_are_the_required_ones() {
        let schema = json!({ "type": "object", "required": ["a", "b", "c"], "properties": {
            "a": { "type": "integer", "minimum": 3 }, "b": { "enum": ["x", "y"] }, "c": { "default": 7 }, "d": {} } });
        assert_eq!(least(schema.as_object().unwrap()), json!({ "a": 3, "b": "x", "c": 7 }));
    }
}
