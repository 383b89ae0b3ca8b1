//! A provider whose tools, prompts and pages are what rows of the hostile table describe, in JSON. It uses the raw
//! functions of the interface, because the SDK prevents most of these attacks.
//!
//! The variables `TOOLS` and `PROMPTS` have the definitions (`define`). The argument `how` of a call, or the variable
//! `GIVE`, says what a call does (`order`). The variable `PAGE` has the media type and `_meta` of the pages.

#![cfg(target_family = "wasm")]
#![expect(clippy::indexing_slicing, reason = "a missing part of a JSON value reads as null")]

mod define;
mod order;
mod upstream;

use generated::belljar::provider::call_types::{Argument, Context, Suggestions};
use generated::belljar::provider::types::{Body, Contents, ProviderError};
use generated::exports::belljar::provider::prompt_provider::{self, Guest as Prompts, PromptInfo, PromptResult};
use generated::exports::belljar::provider::resource_provider::{
    Guest as Resources, ProviderInfo, Reading, ResourcePage, TemplateInfo,
};
use generated::exports::belljar::provider::tool_provider::{self, Guest as Tools, ToolInfo};
use serde_json::{Value, json};

#[allow(missing_docs, unsafe_code, unreachable_pub, dead_code, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
mod generated {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package test:tools;
            world provider {
                include belljar:provider/provider-with-tools@0.1.1;
                include belljar:provider/provider-with-prompts@0.1.1;
            }
        ",
        world: "test:tools/provider",
        generate_all,
    });
    export!(Provider);
    use super::Provider;
}

/// The provider.
struct Provider;

fn setting(name: &str) -> Value {
    let text = std::env::var(name).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// The string at `key`, or an empty one.
fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// The pairs of an object: keys, and JSON texts. A text in the object is taken as it is, so it may be no JSON.
fn meta(value: &Value) -> Vec<(String, String)> {
    let json = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), json(value))).collect()
}

impl Tools for Provider {
    fn list_tools() -> Result<Vec<ToolInfo>, ProviderError> {
        let all = setting("TOOLS");
        order::run(&setting("LIST"))?;
        Ok(define::tools(if all.is_null() { json!([{ "name": "attack" }]) } else { all }))
    }

    fn call(name: String, arguments: String, context: Context) -> Result<tool_provider::Outcome, ProviderError> {
        let given: Value = serde_json::from_str(&arguments).unwrap_or(Value::Null);
        let how = if given["how"].is_null() { setting("GIVE") } else { given["how"].clone() };
        order::run(&how)?;
        if let Some(ask) = order::ask(&how, &context) {
            return Ok(tool_provider::Outcome::Ask(ask));
        }
        let seen = format!("{name} {arguments} {context:?} {:?}", std::env::vars().collect::<Vec<_>>());
        Ok(tool_provider::Outcome::Done(tool_provider::ToolResult {
            content: order::blocks(&how, &seen),
            structured: how["structured"].as_str().map(str::to_owned),
            is_error: how["failed"] == true,
            meta: meta(&how["meta"]),
        }))
    }
}

impl Prompts for Provider {
    fn list_prompts() -> Result<Vec<PromptInfo>, ProviderError> {
        let all = setting("PROMPTS");
        Ok(define::prompts(if all.is_null() { json!([{ "name": "talk" }]) } else { all }))
    }

    fn get(
        name: String,
        arguments: Vec<Argument>,
        context: Context,
    ) -> Result<prompt_provider::Outcome, ProviderError> {
        let how = arguments.iter().find(|one| one.name == "how").map(|one| one.value.clone());
        let how = how.map_or_else(|| setting("GIVE"), |how| serde_json::from_str(&how).unwrap_or(Value::Null));
        order::run(&how)?;
        if let Some(ask) = order::ask(&how, &context) {
            return Ok(prompt_provider::Outcome::Ask(ask));
        }
        let seen = format!("{name} {arguments:?} {context:?}");
        let messages = order::messages(&how, &seen);
        Ok(prompt_provider::Outcome::Done(PromptResult { description: None, messages }))
    }

    fn complete(_: String, _: Argument, _: Vec<Argument>) -> Result<Suggestions, ProviderError> {
        let values = (0..setting("COMPLETE").as_u64().unwrap_or(0)).map(|n| n.to_string()).collect();
        Ok(Suggestions { values, total: None })
    }
}

impl Resources for Provider {
    fn describe() -> ProviderInfo {
        ProviderInfo { title: Some("Tools".to_owned()), version: None, description: None }
    }

    fn list_resources(_: Option<String>) -> Result<ResourcePage, ProviderError> {
        Ok(ResourcePage { resources: Vec::new(), next_cursor: None })
    }

    fn list_templates() -> Result<Vec<TemplateInfo>, ProviderError> {
        Ok(Vec::new())
    }

    fn read(reference: String) -> Result<Reading, ProviderError> {
        let page = setting("PAGE");
        let contents = Contents {
            reference,
            mime_type: page["mime"].as_str().map(str::to_owned),
            body: Body::Text("<!doctype html><title>page</title>".to_owned()),
            meta: meta(&page["meta"]),
        };
        Ok(Reading { contents: vec![contents], fresh_for: None })
    }
}
