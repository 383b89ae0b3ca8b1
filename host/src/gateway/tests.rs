//! What one principal learns of what another may see: nothing. Each test has at least two principals.
//!
//! The gateway is the real one. The providers are scripted, so that a test counts their calls. Only the rules and the
//! front are missing: a test makes the principals itself.

mod completion;
mod invoke;
mod lists;
mod reads;
mod search;
mod subscriptions;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::catalog::{Catalog, Mount, Snapshot};
use crate::config::Watch;
use crate::gateway::Gateway;
use crate::gateway::consent::ConsentManager;
use crate::gateway::request_states::RequestStates;
use crate::gateway::subscriptions::Subscriptions;
use crate::interfaces::{Interfaces, Reply, Request};
use crate::limits::memory_budget::MemoryBudget;
use crate::limits::{Admission, Permit};
use crate::model::{
    AskOutcome, Block, BlockBody, Body, Contents, DecisionLog, Effect, Limits, Link, Message, MountName, Page, Prompt,
    PromptArgument, PromptResult, ReadError, Reading, Resource, Role, Suggestions, Template, Tool, ToolResult, Usage,
};
use crate::policy::test_rules::{TestRule, rule_set};
use crate::policy::{Caller, Evidence, KeyIdentity, Policy, Principal, authenticate};
use crate::sandbox::{CallSpec, Executor, LoadedMount, Outcome};
use crate::telemetry::Sink;

/// The entries of one page of a scripted provider.
const PAGE: usize = 1000;

/// A mount and its scripted provider.
pub(crate) struct TestMount {
    pub(crate) name: &'static str,
    pub(crate) base: &'static str,
    /// The references that it lists and serves.
    pub(crate) references: Vec<String>,
    pub(crate) templates: Vec<&'static str>,
    /// The values that it suggests, and their claimed total.
    pub(crate) suggestions: (Vec<&'static str>, Option<u32>),
    pub(crate) fresh_for: Option<Duration>,
    pub(crate) revisions: bool,
    /// The names of its tools. Each answers with a text, and with links to all references.
    pub(crate) tools: Vec<&'static str>,
    /// The names of its prompts. Each has one argument, `word`.
    pub(crate) prompts: Vec<&'static str>,
    /// Each principal has a secret of its own, and lists a resource of its own.
    pub(crate) per_principal: bool,
}

impl TestMount {
    /// A mount with the default base.
    pub(crate) fn new(name: &'static str, base: &'static str, references: &[&str]) -> Self {
        let references = references.iter().map(|reference| (*reference).to_owned()).collect();
        Self {
            name,
            base,
            references,
            templates: Vec::new(),
            suggestions: (Vec::new(), None),
            fresh_for: None,
            revisions: false,
            tools: Vec::new(),
            prompts: Vec::new(),
            per_principal: false,
        }
    }
}

fn test_tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: "A test".to_owned(),
        input: r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#.to_owned(),
        output: None,
        effect: Effect::Reads,
        idempotent: true,
        open_world: false,
        view: None,
        icons: Vec::new(),
        meta: Vec::new(),
    }
}

fn test_prompt(name: &str) -> Prompt {
    let word = PromptArgument { name: "word".to_owned(), title: None, description: None, required: false };
    let (description, arguments) = ("A test".to_owned(), vec![word]);
    Prompt { name: name.to_owned(), title: None, description, arguments, icons: Vec::new(), meta: Vec::new() }
}

fn text_block(text: &str) -> Block {
    Block { body: BlockBody::Text(text.to_owned()), annotations: None }
}

fn link(reference: &str) -> Block {
    let (reference, name) = (reference.to_owned(), "r".to_owned());
    let link = Link { reference, name, title: None, description: None, mime_type: None, size: None };
    Block { body: BlockBody::Link(link), annotations: None }
}

/// A call that a provider got: the mount, the name of the function, and its argument.
pub(crate) type SeenCall = (&'static str, &'static str, String);

/// The scripted providers.
pub(crate) struct Providers {
    mounts: Vec<TestMount>,
    calls: Mutex<Vec<SeenCall>>,
    /// References that a test added to every mount later.
    added: Mutex<Vec<String>>,
    /// The text of every resource. It changes when a test says so.
    text: Mutex<String>,
    /// One permit for each read that may go on.
    reads: Semaphore,
}

impl Providers {
    fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
        value.lock().unwrap()
    }

    async fn answer(&self, spec: CallSpec, permit: Permit) -> Outcome {
        let mount = &self.mounts[usize::try_from(spec.mount.number()).unwrap() - 1];
        let principal = permit.access().principal().to_string();
        let see = |function, argument: &str| Self::lock(&self.calls).push((mount.name, function, argument.to_owned()));
        let result = match spec.request {
            Request::ListResources(list) => {
                see("list-resources", &list.cursor.clone().unwrap_or_default());
                let from = list.cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
                let own = mount.per_principal.then(|| format!("of-{}", principal.replace(':', "-")));
                let own = own.into_iter().collect::<Vec<_>>();
                let references = [mount.references.clone(), Self::lock(&self.added).clone(), own].concat();
                let to = references.len().min(from + PAGE);
                let resource = |reference: &String| Resource::named(reference, reference);
                let resources = references[from..to].iter().map(resource).collect();
                Ok(Reply::ListResources(Page { resources, next: (to < references.len()).then(|| to.to_string()) }))
            }
            Request::ListTemplates(_) => {
                see("list-templates", "");
                let template = |template: &&str| Template::named(template, "t");
                Ok(Reply::ListTemplates(mount.templates.iter().map(template).collect()))
            }
            Request::Read(read) => {
                see("read", &read.reference);
                self.reads.acquire().await.unwrap().forget();
                self.reads.add_permits(1);
                // A folder is answered with the contents of all that is in it.
                let folder = format!("{}/", read.reference);
                let asked = |one: &&String| **one == read.reference || one.starts_with(&folder);
                let contents: Vec<_> = mount
                    .references
                    .iter()
                    .filter(asked)
                    .map(|reference| {
                        let body = Body::Text(format!("{} for {principal}", Self::lock(&self.text)));
                        let (mime_type, meta) = (Some("text/plain".to_owned()), Vec::new());
                        Contents { reference: reference.clone(), mime_type, body, meta }
                    })
                    .collect();
                match contents.is_empty() {
                    true => Err(ReadError::NotFound),
                    false => Ok(Reply::Read(Reading { contents, fresh_for: mount.fresh_for, part: None })),
                }
            }
            Request::Complete(complete) => {
                see("complete", &complete.0.template);
                let values = mount.suggestions.0.iter().map(|value| (*value).to_owned()).collect();
                Ok(Reply::Complete(Suggestions { values, total: mount.suggestions.1 }))
            }
            Request::CatalogRevision(_) => {
                see("catalog-revision", "");
                Ok(Reply::CatalogRevision("1".to_owned()))
            }
            Request::ResourceRevisions(all) => {
                see("resource-revisions", &all.references.join(" "));
                let revision = Self::lock(&self.text).clone();
                Ok(Reply::ResourceRevisions(all.references.iter().map(|_| Ok(revision.clone())).collect()))
            }
            Request::ListTools(_) => {
                see("list-tools", "");
                Ok(Reply::ListTools(mount.tools.iter().map(|name| test_tool(name)).collect()))
            }
            Request::CallTool(call) => {
                see("call-tool", &call.name);
                let links = mount.references.iter().map(|reference| link(reference));
                let content = std::iter::once(text_block(&format!("for {principal}"))).chain(links).collect();
                Ok(Reply::CallTool(AskOutcome::Done(ToolResult { content, ..ToolResult::default() })))
            }
            Request::ListPrompts(_) => {
                see("list-prompts", "");
                Ok(Reply::ListPrompts(mount.prompts.iter().map(|name| test_prompt(name)).collect()))
            }
            Request::GetPrompt(get) => {
                see("get-prompt", &get.name);
                let blocks = std::iter::once(text_block(&format!("for {principal}")));
                let blocks = blocks.chain(mount.references.iter().map(|reference| link(reference)));
                let messages = blocks.map(|block| Message { role: Role::User, block }).collect();
                Ok(Reply::GetPrompt(AskOutcome::Done(PromptResult { description: None, messages })))
            }
            Request::CompletePrompt(complete) => {
                see("complete-prompt", &complete.0.prompt);
                let values = mount.suggestions.0.iter().map(|value| (*value).to_owned()).collect();
                Ok(Reply::CompletePrompt(Suggestions { values, total: mount.suggestions.1 }))
            }
            Request::ListSkills(_) | Request::GetSkill(_) | Request::Describe(_) => Err(ReadError::NotFound),
            Request::ReadPart(_) | Request::ListBelow(_) => Err(ReadError::NotFound),
        };
        Outcome { result, usage: Usage::default(), decisions: DecisionLog::default() }
    }
}

/// A gateway with scripted providers.
pub(crate) struct Site {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) catalog: Arc<Catalog>,
}

impl Site {
    /// A site whose mounts are loaded.
    pub(crate) fn new(mounts: Vec<TestMount>, rules: Vec<TestRule>) -> Self {
        let site = Self::loading(mounts, rules);
        site.catalog.mark_loaded();
        site
    }

    /// A site that still loads other mounts.
    pub(crate) fn loading(mounts: Vec<TestMount>, rules: Vec<TestRule>) -> Self {
        Self::with_snapshot(mounts, rules, |snapshot| snapshot)
    }

    /// The same with a changed snapshot.
    pub(crate) fn with_snapshot(
        mounts: Vec<TestMount>,
        rules: Vec<TestRule>,
        change: impl Fn(Snapshot) -> Snapshot,
    ) -> Self {
        let catalog = Arc::new(Catalog::new(MemoryBudget::new(1 << 30)));
        let served = mounts.iter().enumerate().map(|(at, mount)| {
            let interfaces = Interfaces {
                resources: true,
                completion: !mount.suggestions.0.is_empty(),
                revisions: mount.revisions,
                tools: !mount.tools.is_empty(),
                prompts: !mount.prompts.is_empty(),
                ..Interfaces::default()
            };
            let loaded = LoadedMount::numbered(at as u64 + 1);
            let plain = Mount::plain(name(mount.name), mount.base, Limits::default());
            let lists_skills = mount.references.iter().any(|reference| reference.ends_with("SKILL.md"));
            Arc::new(Mount {
                lists_skills,
                loaded,
                interfaces,
                search: true,
                has_principal_secrets: mount.per_principal,
                ..plain
            })
        });
        catalog.publish(change(Snapshot::new(served.collect(), Vec::new())));
        let providers = Arc::new(Providers {
            mounts,
            calls: Mutex::default(),
            added: Mutex::default(),
            text: Mutex::new("one".to_owned()),
            reads: Semaphore::new(1),
        });
        let own = Arc::clone(&providers);
        let script = move |spec, permit| -> futures_util::future::BoxFuture<'static, Outcome> {
            let own = Arc::clone(&own);
            Box::pin(async move { own.answer(spec, permit).await })
        };
        let gateway = Gateway::new(
            Arc::clone(&catalog),
            Executor::Scripted(Arc::new(script)),
            Admission::new(8, MemoryBudget::new(1 << 30)),
            Sink::off(),
            ConsentManager::new(RequestStates::new(&[0; 32], None), None),
            Subscriptions::new(Watch::default(), None),
            Duration::from_secs(10),
        );
        let gateway = Arc::new(gateway.with_policy(Policy::new(rule_set(&rules))));
        Self { gateway, providers, catalog }
    }

    /// Replaces the rules.
    pub(crate) fn set_rules(&self, rules: &[TestRule]) {
        self.gateway.set_policy(rule_set(rules));
    }

    /// The calls since the last time.
    pub(crate) fn calls(&self) -> Vec<SeenCall> {
        std::mem::take(&mut *Providers::lock(&self.providers.calls))
    }

    /// The calls of one function since the last time.
    pub(crate) fn calls_of(&self, function: &str) -> usize {
        self.calls().iter().filter(|(_, called, _)| *called == function).count()
    }

    /// Holds all reads until the permit is given back.
    pub(crate) fn hold_reads(&self) {
        assert_eq!(self.providers.reads.forget_permits(1), 1);
    }

    /// Lets the reads go on.
    pub(crate) fn release_reads(&self) {
        self.providers.reads.add_permits(1);
    }

    /// Adds a resource to the list of every mount.
    pub(crate) fn add(&self, reference: &str) {
        Providers::lock(&self.providers.added).push(reference.to_owned());
    }

    /// Changes every resource.
    pub(crate) fn change(&self, text: &str) {
        *Providers::lock(&self.providers.text) = text.to_owned();
    }
}

pub(crate) fn name(name: &str) -> MountName {
    MountName::new(name).unwrap()
}

/// The holder of a key, in one group.
pub(crate) fn principal(name: &str, group: &str) -> Principal {
    authenticate(Evidence::Key(KeyIdentity { name: name.into(), groups: vec![group.into()], scopes: Vec::new() }))
}

/// The holder of the key `name`.
pub(crate) fn caller(name: &str) -> Caller {
    Caller::new(principal(name, "team"), "http")
}
