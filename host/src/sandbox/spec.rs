//! The input and output of an executor: plain data, so that an executor may be another process.

use serde::{Deserialize, Serialize};

use super::mount_id::MountId;
use crate::interfaces::{Reply, Request};
use crate::limits::Permit;
use crate::model::error::{Limit, LimitKind};
use crate::model::{Consent, DecisionLog, Limits, ReadError, Usage};

/// The input of one call: the mount, the function, the limits, and one-time consents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSpec {
    /// The loaded mount.
    pub mount: MountId,
    /// The principal, in its display form. Grants may have secrets of its own.
    pub principal: String,
    /// The function and its arguments.
    pub request: Request,
    /// The limits of the call.
    pub limits: Limits,
    /// The consents that a person gave for this call, beyond the grants of the mount.
    pub consent: Vec<Consent>,
}

impl CallSpec {
    /// A call with the limits of `permit` and without consents.
    pub fn new(permit: &Permit, mount: MountId, function: impl Into<Request>) -> Self {
        let principal = permit.access().principal().to_string();
        Self { mount, principal, request: function.into(), limits: permit.limits().clone(), consent: Vec::new() }
    }

    /// Adds consents that a person gave for this call.
    #[must_use]
    pub fn with_consent(self, consent: Vec<Consent>) -> Self {
        Self { consent, ..self }
    }
}

/// The output of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The result of the function, or the error.
    pub result: Result<Reply, ReadError>,
    /// The resources that the call used.
    pub usage: Usage,
    /// The decisions about grants during the call.
    pub decisions: DecisionLog,
}

impl Outcome {
    /// The outcome of a call that failed before it used anything.
    pub fn failed(error: ReadError) -> Self {
        Self { result: Err(error), usage: Usage::default(), decisions: DecisionLog::default() }
    }
}

/// Refuses a reply of more than `cap` bytes.
pub(super) fn check_size(reply: Reply, cap: u64) -> Result<Reply, ReadError> {
    let used = reply.bytes() as u64;
    if used > cap {
        return Err(ReadError::Exhausted(Limit { kind: LimitKind::Result, used, cap }));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::completion::Complete;
    use crate::interfaces::prompts::{CompletePrompt, GetPrompt, ListPrompts};
    use crate::interfaces::resources::{Describe, ListResources, ListTemplates, Read};
    use crate::interfaces::revisions::{CatalogRevision, ResourceRevisions};
    use crate::interfaces::tools::{CallTool, ListTools};
    use crate::model::error::LimitKind;
    use crate::model::{
        Annotations, Answer, AnswerAction, AskContext, AskOutcome, AskedQuestions, Block, BlockBody, Body,
        CompletionInput, Contents, DecisionKind, Description, Effect, Icon, Limit, Link, Media, Message, Page, Prompt,
        PromptArgument, PromptCompletion, PromptResult, Question, Reading, Resource, Role, Suggestions, Template, Tool,
        ToolResult, ToolView,
    };

    fn read_back<T>(value: &T)
    where
        T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let bytes = postcard::to_stdvec(value).unwrap();
        assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), value);
    }

    #[test]
    fn every_call_survives_serialization() {
        let completing = CompletionInput {
            template: "{a}/{b}".to_owned(),
            name: "a".to_owned(),
            value: "x".to_owned(),
            resolved: vec![("b".to_owned(), "y".to_owned())],
        };
        let answer =
            |action, content: Option<&str>| Answer { key: "k".to_owned(), action, content: content.map(str::to_owned) };
        let answers = vec![
            answer(AnswerAction::Accept, Some("{\"a\":1}")),
            answer(AnswerAction::Decline, None),
            answer(AnswerAction::Cancel, None),
        ];
        let context = AskContext { can_ask: true, answers, state: Some("s".to_owned()) };
        let resolved = vec![("b".to_owned(), "y".to_owned())];
        let (name, value) = ("a".to_owned(), "x".to_owned());
        let prompt_completion = PromptCompletion { prompt: "p".to_owned(), name, value, resolved: resolved.clone() };
        let requests: [Request; 12] = [
            Describe.into(),
            ListResources { cursor: Some("c".to_owned()) }.into(),
            ListTemplates.into(),
            Read { reference: "a b".to_owned() }.into(),
            Complete(completing).into(),
            CatalogRevision.into(),
            ResourceRevisions { references: vec!["a".to_owned(), String::new()] }.into(),
            ListTools.into(),
            CallTool { name: "t".to_owned(), arguments: "{}".to_owned(), context: context.clone() }.into(),
            ListPrompts.into(),
            GetPrompt { name: "p".to_owned(), arguments: resolved, context }.into(),
            CompletePrompt(prompt_completion).into(),
        ];
        for request in requests {
            let consent = vec![Consent { grant: "http".into(), target: "https://a.example".to_owned() }];
            read_back(&CallSpec {
                mount: MountId::none(),
                principal: "key:ci".to_owned(),
                request,
                limits: Limits::default(),
                consent,
            });
        }
    }

    /// Two tools and two prompts, with every kind of field.
    fn definitions(icons: &[Icon], meta: &[(String, String)]) -> [Reply; 2] {
        let tool = Tool {
            name: "t".to_owned(),
            title: Some("T".to_owned()),
            description: "d".to_owned(),
            input: "{}".to_owned(),
            output: Some("{}".to_owned()),
            effect: Effect::Destroys,
            idempotent: true,
            open_world: false,
            view: Some(ToolView { page: "v.html".to_owned(), app_only: true }),
            icons: icons.to_vec(),
            meta: meta.to_vec(),
        };
        let plain = Tool { effect: Effect::Adds, output: None, view: None, ..tool.clone() };
        let argument = PromptArgument { name: "a".to_owned(), title: None, description: None, required: true };
        let prompt = Prompt {
            name: "p".to_owned(),
            title: None,
            description: "d".to_owned(),
            arguments: vec![argument],
            icons: icons.to_vec(),
            meta: meta.to_vec(),
        };
        let without = Prompt { arguments: Vec::new(), ..prompt.clone() };
        [Reply::ListTools(vec![tool, plain]), Reply::ListPrompts(vec![prompt, without])]
    }

    /// Results with every kind of block, and questions.
    fn call_replies(contents: Contents, annotations: &Annotations, meta: &[(String, String)]) -> Vec<Reply> {
        let media = || Media { mime_type: "image/png".to_owned(), data: vec![0, 255] };
        let link = Link {
            reference: "r".to_owned(),
            name: "n".to_owned(),
            title: None,
            description: Some("d".to_owned()),
            mime_type: None,
            size: Some(3),
        };
        let bodies = [
            BlockBody::Text("t".to_owned()),
            BlockBody::Image(media()),
            BlockBody::Audio(media()),
            BlockBody::Link(link),
            BlockBody::Embedded(contents),
        ];
        let content = bodies.map(|body| Block { body, annotations: Some(annotations.clone()) }).to_vec();
        let messages = content.iter().map(|block| Message { role: Role::Assistant, block: block.clone() }).collect();
        let (key, message, form) = ("k".to_owned(), "m".to_owned(), "{}".to_owned());
        let ask = AskedQuestions { questions: vec![Question { key, message, form }], state: Some("s".to_owned()) };
        let structured = Some("{\"a\":1}".to_owned());
        let result = ToolResult { content, structured, is_error: true, meta: meta.to_vec() };
        vec![
            Reply::CallTool(AskOutcome::Done(result)),
            Reply::CallTool(AskOutcome::Ask(ask.clone())),
            Reply::GetPrompt(AskOutcome::Done(PromptResult { description: None, messages })),
            Reply::GetPrompt(AskOutcome::Ask(ask)),
            Reply::CompletePrompt(Suggestions { values: vec!["v".to_owned()], total: None }),
        ]
    }

    #[test]
    fn every_outcome_survives_serialization() {
        let text = |text: &str| Some(text.to_owned());
        let annotations =
            Annotations { audience: vec![Role::User, Role::Assistant], priority: Some(0.1), last_modified: text("t") };
        let icons =
            vec![Icon { src: "data:,".to_owned(), mime_type: text("image/png"), sizes: vec!["any".to_owned()] }];
        let meta = vec![("a/b".to_owned(), "{}".to_owned())];
        let resource = Resource {
            reference: "r".to_owned(),
            name: "n".to_owned(),
            title: text("t"),
            description: None,
            mime_type: text("text/plain"),
            size: Some(u64::MAX),
            annotations: Some(annotations.clone()),
            icons: icons.clone(),
            meta: meta.clone(),
        };
        let definitions = definitions(&icons, &meta);
        let template = Template {
            template: "{a}".to_owned(),
            name: "n".to_owned(),
            title: None,
            description: text("d"),
            mime_type: None,
            annotations: Some(annotations.clone()),
            icons,
            meta: meta.clone(),
        };
        let contents = |body| Contents { reference: "r".to_owned(), mime_type: None, body, meta: meta.clone() };
        let reading = Reading {
            part: None,
            contents: vec![contents(Body::Text("\u{1f600}".to_owned())), contents(Body::Blob(vec![0, 255]))],
            fresh_for: Some(std::time::Duration::from_millis(5)),
        };
        let mut decisions = DecisionLog::default();
        decisions.add("fs", "/notes", DecisionKind::Denied, || text("run: belljar grant"));
        decisions.request_consent(Consent { grant: "fs".into(), target: "/notes".to_owned() });
        let denial = decisions.first(DecisionKind::Denied).cloned();
        let again = Box::new(ReadError::Trapped("unreachable".to_owned()));
        let replies = [
            Reply::Describe(Description { title: text("t"), version: None, description: text("d") }),
            Reply::ListResources(Page { resources: vec![resource], next: text("n") }),
            Reply::ListTemplates(vec![template]),
            Reply::Read(reading),
            Reply::Complete(Suggestions { values: vec!["v".to_owned()], total: Some(7) }),
            Reply::CatalogRevision("r".to_owned()),
            Reply::ResourceRevisions(vec![Ok("r".to_owned()), Err(ReadError::NotFound)]),
        ];
        let replies = replies.into_iter().chain(definitions);
        let replies = replies.chain(call_replies(contents(Body::Text("t".to_owned())), &annotations, &meta));
        let errors = [
            ReadError::NotFound,
            ReadError::BadArguments("a".to_owned()),
            ReadError::BadAnswer("b".to_owned()),
            ReadError::ToolExhausted(Limit { kind: LimitKind::Time, used: 2, cap: 1 }),
            ReadError::Denied { message: "m".to_owned(), denial },
            ReadError::BadRequestState("is missing".into()),
            ReadError::Exhausted(Limit { kind: LimitKind::ListTime, used: 2, cap: 1 }),
            ReadError::CircuitOpen { last: again, times: 3, retry_after: std::time::Duration::from_secs(1) },
            ReadError::Cancelled,
        ];
        for result in replies.map(Ok).chain(errors.into_iter().map(Err)) {
            read_back(&Outcome { result, usage: Usage::default(), decisions: decisions.clone() });
        }
    }
}
