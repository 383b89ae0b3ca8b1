//! Tools and prompts: whoever may not use a mount learns nothing of its tools, and no call is made.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::*;
use crate::catalog::Defined;
use crate::gateway::asking::AskInput;
use crate::gateway::definitions::DefinitionPage;
use crate::gateway::invoke::Invoked;
use crate::interfaces::tools::ToolDefinition;
use crate::model::{Prompt, PromptCompletion};
use crate::policy::Action;

fn tools(name: &'static str, tools: &[&'static str], references: &[&str]) -> TestMount {
    let base: &'static str = Box::leak(format!("belljar://{name}/").into_boxed_str());
    TestMount { tools: tools.to_vec(), prompts: vec!["greet"], ..TestMount::new(name, base, references) }
}

async fn names<D: Defined>(site: &Site, who: &str) -> (Vec<String>, usize) {
    let page: DefinitionPage<D> = site.gateway.definitions(&caller(who), None, None).await;
    (page.entries.into_iter().map(|one| one.name).collect(), page.notices.len())
}

/// The blocks of the result, or the kind of the error.
async fn call(site: &Site, who: &str, name: &str, arguments: Value) -> Result<Vec<BlockBody>, ReadError> {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let who = caller(who);
    let called = site.gateway.call_tool(&who, name, arguments, AskInput::default(), async {});
    match called.await {
        Ok(Invoked::Done(reply, ..)) => Ok(reply.result.content.into_iter().map(|block| block.body).collect()),
        Ok(_) => panic!("a question"),
        Err(fault) => Err(fault.error),
    }
}

async fn prompt(site: &Site, who: &str, name: &str, arguments: &[(&str, &str)]) -> Result<usize, ReadError> {
    let arguments: BTreeMap<_, _> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let who = caller(who);
    let got = site.gateway.get_prompt(&who, name, arguments, AskInput::default(), async {});
    match got.await {
        Ok(Invoked::Done(reply, ..)) => Ok(reply.messages.len()),
        Ok(_) => panic!("a question"),
        Err(fault) => Err(fault.error),
    }
}

fn is(bodies: &[BlockBody]) -> Vec<String> {
    let text = |body: &BlockBody| match body {
        BlockBody::Text(text) => text.clone(),
        BlockBody::Link(link) => link.reference.clone(),
        _ => panic!("another block"),
    };
    bodies.iter().map(text).collect()
}

#[tokio::test]
async fn whoever_may_not_call_a_mount_finds_none_of_its_tools() {
    let rules = vec![TestRule::all("key:a", "belljar://alpha/"), TestRule::all("key:b", "belljar://")];
    let site = Site::new(vec![tools("alpha", &["find"], &[]), tools("beta", &["find", "send"], &[])], rules);
    assert_eq!(names::<ToolDefinition>(&site, "a").await, (vec!["alpha_find".to_owned()], 0));
    assert_eq!(names::<Prompt>(&site, "a").await, (vec!["alpha_greet".to_owned()], 0));
    assert!(site.calls().iter().all(|(mount, ..)| *mount == "alpha"), "no call of a hidden mount");
    assert_eq!(names::<ToolDefinition>(&site, "b").await.0, ["alpha_find", "beta_find", "beta_send"]);
    assert_eq!(names::<ToolDefinition>(&site, "nobody").await, (Vec::new(), 0));
    site.calls();

    // A hidden tool is not found, exactly as one that does not exist.
    for (name, arguments) in [("beta_find", json!({})), ("beta_find", json!({"n": "x"})), ("beta_none", json!({}))] {
        assert_eq!(call(&site, "a", name, arguments).await, Err(ReadError::NotFound), "{name}");
    }
    assert_eq!(prompt(&site, "a", "beta_greet", &[]).await, Err(ReadError::NotFound));
    let (prompt_name, name) = ("beta_greet".to_owned(), "word".to_owned());
    let input = PromptCompletion { prompt: prompt_name, name, value: String::new(), resolved: Vec::new() };
    let completed = site.gateway.complete_prompt(&caller("a"), input).await;
    assert_eq!(completed.unwrap_err().error, ReadError::NotFound);
    assert_eq!(site.calls(), []);
    assert_eq!(is(&call(&site, "b", "beta_find", json!({})).await.unwrap()), ["for key:b"]);
    assert_eq!(site.calls(), [("beta", "call-tool", "find".to_owned())]);
}

#[tokio::test]
async fn whoever_is_denied_a_part_of_a_mount_gets_none_of_its_tools() {
    let rules = vec![
        TestRule::all("@team", "belljar://"),
        TestRule { actions: &[Action::Read], ..TestRule::denied("key:a", "belljar://notes/secret/") },
    ];
    let site = Site::new(vec![tools("notes", &["find"], &["open/1", "secret/1"])], rules);
    assert_eq!(names::<ToolDefinition>(&site, "a").await, (Vec::new(), 0));
    assert_eq!(names::<Prompt>(&site, "a").await, (Vec::new(), 0));
    assert_eq!(call(&site, "a", "notes_find", json!({})).await, Err(ReadError::NotFound));
    assert_eq!(prompt(&site, "a", "notes_greet", &[]).await, Err(ReadError::NotFound));
    assert_eq!(site.calls(), []);
    assert_eq!(names::<ToolDefinition>(&site, "b").await.0, ["notes_find"]);
    assert_eq!(prompt(&site, "b", "notes_greet", &[]).await, Ok(3));
}

#[tokio::test]
async fn a_rule_may_name_one_tool() {
    let rules = vec![
        TestRule { actions: &[Action::Read], ..TestRule::all("key:a", "belljar://notes/") },
        TestRule { actions: &[Action::Call], ..TestRule::all("key:a", "belljar://notes/find") },
    ];
    let site = Site::new(vec![tools("notes", &["find", "send"], &[])], rules);
    assert_eq!(names::<ToolDefinition>(&site, "a").await, (vec!["notes_find".to_owned()], 0));
    assert_eq!(names::<Prompt>(&site, "a").await, (Vec::new(), 0));
    assert_eq!(call(&site, "a", "notes_send", json!({})).await, Err(ReadError::NotFound));
    assert!(call(&site, "a", "notes_find", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_result_links_only_to_what_its_caller_may_read() {
    let rules = vec![
        TestRule::all("key:a", "belljar://notes/open/"),
        TestRule { actions: &[Action::Call, Action::Prompt], ..TestRule::all("key:a", "belljar://notes/") },
        TestRule::all("key:b", "belljar://"),
    ];
    let site = Site::new(vec![tools("notes", &["find"], &["open/1", "other/1"])], rules);
    let (open, other) = ("belljar://notes/open/1", "belljar://notes/other/1");
    assert_eq!(is(&call(&site, "a", "notes_find", json!({})).await.unwrap()), ["for key:a", open]);
    assert_eq!(is(&call(&site, "b", "notes_find", json!({})).await.unwrap()), ["for key:b", open, other]);
    assert_eq!(prompt(&site, "a", "notes_greet", &[]).await, Ok(2));
    assert_eq!(prompt(&site, "b", "notes_greet", &[]).await, Ok(3));
}

#[tokio::test]
async fn bad_arguments_make_no_call() {
    let site = Site::new(vec![tools("notes", &["find"], &[])], vec![TestRule::all("key:a", "")]);
    assert_eq!(names::<ToolDefinition>(&site, "a").await.0.len(), 1);
    assert_eq!(names::<Prompt>(&site, "a").await.0.len(), 1);
    site.calls();
    let wrong = call(&site, "a", "notes_find", json!({"n": "three"})).await;
    assert!(matches!(&wrong, Err(ReadError::BadArguments(why)) if why.contains("integer")), "{wrong:?}");
    let wrong = prompt(&site, "a", "notes_greet", &[("wrod", "x")]).await;
    assert!(matches!(&wrong, Err(ReadError::BadArguments(why)) if why.contains("\"word\"")), "{wrong:?}");
    assert_eq!(site.calls(), []);
}
