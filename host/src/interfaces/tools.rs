//! `tool-provider`, an optional interface: tools that a model calls.

pub(super) mod conformance;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::definitions::{CheckedDefinitions, Definition, DefinitionError, check_definitions, is_name, name_rule};
use super::fields::{
    ENTRY_CHARGE, clean_description, clean_icons, clean_meta, clean_name, icon_bytes, meta_bytes, text_bytes,
    unless_unguarded,
};
use super::function::{Function, MountContext, Returned};
use super::generated::tool_provider as generated;
use super::json_schema::{Schema, Violations};
use super::redaction::{mask_details, mask_meta, mask_optional};
use super::{asking, blocks};
use crate::grants::secrets::Redactor;
use crate::model::{AskContext, AskOutcome, Effect, Guard, ReadError, Tool, ToolResult, ToolView, reference, text};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "tool-provider";

/// The indices of the interface's functions in a component.
pub(super) type ToolIndices = generated::GuestIndices;

/// `list-tools`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTools;

/// A checked tool with its schemas.
#[derive(Debug)]
pub struct ToolDefinition {
    /// The tool, cleaned.
    pub tool: Tool,
    /// The schema of its arguments.
    pub input: Schema,
    /// The schema of its structured result.
    pub output: Option<Schema>,
}

impl Definition for ToolDefinition {
    fn name(&self) -> &str {
        &self.tool.name
    }
}

impl From<generated::ToolInfo> for Tool {
    fn from(info: generated::ToolInfo) -> Self {
        Self {
            name: info.name,
            title: info.title,
            description: info.description,
            input: info.input,
            output: info.output,
            effect: match info.effect {
                generated::Effect::Reads => Effect::Reads,
                generated::Effect::Adds => Effect::Adds,
                generated::Effect::Destroys => Effect::Destroys,
            },
            idempotent: info.idempotent,
            open_world: info.open_world,
            view: info.view.map(|view| ToolView { page: view.page, app_only: view.app_only }),
            icons: info.icons.into_iter().map(Into::into).collect(),
            meta: info.meta,
        }
    }
}

fn tool_bytes(tool: &Tool) -> usize {
    let texts = [&tool.title, &tool.output, &tool.view.as_ref().map(|view| view.page.clone())];
    ENTRY_CHARGE
        + tool.name.len()
        + tool.description.len()
        + tool.input.len()
        + texts.into_iter().map(|text| text_bytes(text.as_ref())).sum::<usize>()
        + icon_bytes(&tool.icons)
        + meta_bytes(&tool.meta)
}

impl Function for ListTools {
    type Indices = ToolIndices;
    type Reply = Vec<Tool>;
    type Checked = CheckedDefinitions<ToolDefinition>;
    const NAME: &'static str = "list-tools";
    const ACTION: Action = Action::Call;

    async fn call<T: Send + 'static>(
        &self,
        indices: &ToolIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Vec<Tool>> {
        let guest = indices.load(&mut *store, instance)?;
        let all = guest.call_list_tools(store).await?;
        Ok(all.map(|all| all.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    fn bytes(all: &Vec<Tool>) -> usize {
        all.iter().map(tool_bytes).sum()
    }

    fn redact(all: &mut Vec<Tool>, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        for tool in all {
            let Tool {
                name,
                title,
                description,
                input,
                output,
                effect: _,
                idempotent: _,
                open_world: _,
                view,
                icons,
                meta,
            } = tool;
            [name, description, input].into_iter().for_each(|text| redactor.mask(text));
            [title, output].into_iter().for_each(|text| mask_optional(text, redactor));
            view.iter_mut().for_each(|view| redactor.mask(&mut view.page));
            mask_details(&mut None, icons, meta, redactor);
        }
    }

    /// Compiling a schema takes far longer than copying it.
    fn effort(all: &Vec<Tool>) -> usize {
        Self::bytes(all).saturating_mul(16)
    }

    /// Cleans the definitions, sorts them by name, and leaves out those that break a rule.
    fn check(&self, all: Vec<Tool>, names: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        check_definitions(all, "list-tools", "tool", tool_bytes, |tool| tool.name.as_str(), |tool| define(tool, names))
    }
}

/// Checks one tool.
fn define(tool: Tool, names: &dyn MountContext) -> Result<ToolDefinition, DefinitionError> {
    if !is_name(&tool.name) {
        return Err(name_rule().into());
    }
    let schema = |schema: &str, of: &str| Schema::parse(schema).map_err(|why| format!("the schema of its {of} {why}"));
    let input = schema(&tool.input, "arguments")?;
    let output = tool.output.as_deref().map(|output| schema(output, "results")).transpose()?;
    if let Some(view) = &tool.view {
        let page = || text::quoted(&view.page, 80);
        reference::check(&view.page).map_err(|why| format!("the page {} of its view {why}", page()))?;
        names.absolute(&view.page).map_err(|why| format!("the page {} of its view: {why}", page()))?;
    }
    let tool = Tool {
        title: tool.title.map(clean_name),
        description: clean_description(tool.description),
        icons: unless_unguarded(tool.icons, clean_icons),
        meta: clean_meta(tool.meta),
        ..tool
    };
    Ok(ToolDefinition { tool, input, output })
}

/// `call`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTool {
    /// The name of the tool in its provider.
    pub name: String,
    /// The arguments: the JSON text of an object that fits the tool's schema.
    pub arguments: String,
    /// What the call knows of its client.
    pub context: AskContext,
}

impl Function for CallTool {
    type Indices = ToolIndices;
    type Reply = AskOutcome<ToolResult>;
    type Checked = AskOutcome<ToolResult>;
    const NAME: &'static str = "call-tool";
    const ACTION: Action = Action::Call;

    fn input(&self) -> Option<Vec<&str>> {
        let own = [self.name.as_str(), self.arguments.as_str()];
        Some(own.into_iter().chain(asking::input(&self.context)).collect())
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn reference(&self) -> Option<&str> {
        Some(&self.name)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &ToolIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Self::Reply> {
        let guest = indices.load(&mut *store, instance)?;
        let context = asking::context(&self.context);
        let given = guest.call_call(store, &self.name, &self.arguments, &context).await?;
        Ok(given.map(outcome).map_err(Into::into))
    }

    fn bytes(given: &Self::Reply) -> usize {
        match given {
            AskOutcome::Done(ToolResult { content, structured, is_error: _, meta }) => {
                content.iter().map(blocks::bytes).sum::<usize>() + text_bytes(structured.as_ref()) + meta_bytes(meta)
            }
            AskOutcome::Ask(ask) => asking::bytes(ask),
        }
    }

    fn redact(given: &mut Self::Reply, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        match given {
            AskOutcome::Done(ToolResult { content, structured, is_error: _, meta }) => {
                content.iter_mut().for_each(|block| blocks::mask(block, redactor));
                mask_optional(structured, redactor);
                mask_meta(meta, redactor);
            }
            AskOutcome::Ask(ask) => asking::mask(ask, redactor),
        }
    }

    fn effort(given: &Self::Reply) -> usize {
        match given {
            // A structured result is parsed here, and checked against the schema of its tool.
            AskOutcome::Done(result) => Self::bytes(given) + text_bytes(result.structured.as_ref()).saturating_mul(4),
            AskOutcome::Ask(_) => usize::MAX,
        }
    }

    fn check(&self, given: Self::Reply, names: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        match given {
            AskOutcome::Ask(ask) => asking::check(ask, Self::NAME).map(AskOutcome::Ask),
            AskOutcome::Done(result) => check_result(result, names).map(AskOutcome::Done),
        }
    }
}

fn outcome(given: generated::Outcome) -> AskOutcome<ToolResult> {
    match given {
        generated::Outcome::Ask(ask) => AskOutcome::Ask(ask.into()),
        generated::Outcome::Done(result) => AskOutcome::Done(ToolResult {
            content: result.content.into_iter().map(Into::into).collect(),
            structured: result.structured,
            is_error: result.is_error,
            meta: result.meta,
        }),
    }
}

/// Checks everything about a result except its schema.
fn check_result(result: ToolResult, names: &dyn MountContext) -> Result<ToolResult, ReadError> {
    blocks::check_number(result.content.len(), CallTool::NAME)?;
    let content = result.content.into_iter().map(|block| blocks::check(block, CallTool::NAME, names));
    let content: Vec<_> = content.collect::<Result<_, _>>()?;
    if content.is_empty() && result.structured.is_none() {
        let why = "call gave an empty result; expected content, or a structured result".to_owned();
        return Err(ReadError::BadOutput(why));
    }
    Ok(ToolResult { content, meta: clean_meta(result.meta), ..result })
}

/// True unless a test switched the checks against schemas off.
fn are_schemas_checked() -> bool {
    Guard::SchemaCheck.is_on()
}

impl ToolDefinition {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// The violations with their places.
    pub fn check_arguments(&self, arguments: &Value) -> Result<(), Violations> {
        match are_schemas_checked() {
            true => self.input.check(arguments),
            false => Ok(()),
        }
    }

    /// The structured result of a call, checked against the schema of results. A failed call may have none.
    ///
    /// # Errors
    /// [`ReadError::BadOutput`] if it does not fit, or is missing.
    pub fn structured(&self, result: &ToolResult) -> Result<Option<Value>, ReadError> {
        let refuse = |why: String| ReadError::BadOutput(format!("call gave {why}"));
        let value = match &result.structured {
            None => None,
            Some(json) => {
                let value: Value = serde_json::from_str(json).map_err(|error| {
                    refuse(format!("a structured result that is not JSON: {}", text::excerpt(&error.to_string(), 120)))
                })?;
                if !value.is_object() {
                    return Err(refuse("a structured result that is not a JSON object".to_owned()));
                }
                Some(value)
            }
        };
        if !are_schemas_checked() || result.is_error {
            return Ok(value);
        }
        match (&self.output, &value) {
            (Some(_), None) => Err(refuse("no structured result, although its tool has a schema for it".to_owned())),
            (Some(schema), Some(value)) => match schema.check(value) {
                Ok(()) => Ok(Some(value.clone())),
                Err(why) => Err(refuse(format!("a structured result that does not fit its schema; {why}"))),
            },
            (None, _) => Ok(value),
        }
    }
}

/// A definition that is shared by the list and by calls.
pub type SharedTool = Arc<ToolDefinition>;
