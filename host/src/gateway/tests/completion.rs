//! Completion: no suggestion names a hidden resource, and no total counts one.

use super::*;
use crate::gateway::complete::{CompletionError, CompletionRequest, CompletionResult};

async fn complete(
    site: &Site,
    who: &str,
    template: &str,
    resolved: &[(&str, &str)],
) -> Result<CompletionResult, CompletionError> {
    let resolved = resolved.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (name, value) = ("id".to_owned(), String::new());
    site.gateway
        .complete(&caller(who), CompletionRequest { template: template.to_owned(), name, value, resolved })
        .await
}

fn site(suggestions: (Vec<&'static str>, Option<u32>)) -> Site {
    let references = ["logs/app/1", "logs/app/2", "logs/secret/1", "logs/secret/3"];
    let templates = vec!["logs/{kind}/{id}", "logs/app/{id}", "logs/secret/{id}", "logs/{id}"];
    let notes = TestMount { templates, suggestions, ..TestMount::new("notes", "belljar://notes/", &references) };
    let hidden = TestMount { templates: vec!["{id}"], ..TestMount::new("hidden", "belljar://hidden/", &["x"]) };
    let rules = vec![TestRule::all("key:a", "belljar://notes/logs/app/"), TestRule::all("key:b", "belljar://")];
    Site::new(vec![notes, hidden], rules)
}

#[tokio::test]
async fn suggestions_of_a_provider_name_only_visible_resources() {
    let site = site((vec!["app/1", "secret/1", "app", "secret", "appendix"], Some(5000)));
    let all = complete(&site, "b", "belljar://notes/logs/{id}", &[]).await.unwrap();
    assert_eq!((all.values.len(), all.total, all.has_more), (5, Some(5000), true));
    // The values of `{id}` are encoded: "app/1" is no folder. Only names below `logs/app/` are visible.
    let own = complete(&site, "a", "belljar://notes/logs/{id}", &[]).await.unwrap();
    assert_eq!(own, CompletionResult { values: Vec::new(), total: None, has_more: false });
    let own = complete(&site, "a", "belljar://notes/logs/app/{id}", &[]).await.unwrap();
    assert_eq!((own.values.len(), own.total, own.has_more), (5, None, false));
    let with = |kind| complete(&site, "a", "belljar://notes/logs/{kind}/{id}", Box::leak(Box::new([("kind", kind)])));
    assert_eq!(with("app").await.unwrap().values.len(), 5);
    assert_eq!(with("secret").await.unwrap(), CompletionResult::default());
}

#[tokio::test]
async fn a_value_before_unknown_variables_is_shown_if_something_below_it_is() {
    let site = site((vec!["app", "secret"], Some(2)));
    let request = CompletionRequest {
        template: "belljar://notes/logs/{kind}/{id}".to_owned(),
        name: "kind".to_owned(),
        value: String::new(),
        resolved: Vec::new(),
    };
    let own = site.gateway.complete(&caller("a"), request.clone()).await.unwrap();
    assert_eq!((own.values, own.total), (vec!["app".to_owned()], None));
    let all = site.gateway.complete(&caller("b"), request).await.unwrap();
    assert_eq!((all.values.len(), all.total), (2, Some(2)));
}

#[tokio::test]
async fn suggestions_from_a_list_name_only_visible_resources() {
    let site = site((Vec::new(), None));
    let kind = [("kind", "secret")];
    let all = complete(&site, "b", "belljar://notes/logs/{kind}/{id}", &kind).await.unwrap();
    assert_eq!((all.values, all.total), (vec!["1".to_owned(), "3".to_owned()], Some(2)));
    let own = complete(&site, "a", "belljar://notes/logs/{kind}/{id}", &kind).await.unwrap();
    assert_eq!((own.values, own.total, own.has_more), (Vec::new(), Some(0), false));
    let own = complete(&site, "a", "belljar://notes/logs/{kind}/{id}", &[("kind", "app")]).await.unwrap();
    assert_eq!((own.values, own.total), (vec!["1".to_owned(), "2".to_owned()], Some(2)));
}

#[tokio::test]
async fn a_hidden_template_is_no_template() {
    let site = site((vec!["1"], None));
    for template in ["belljar://notes/logs/secret/{id}", "belljar://hidden/{id}", "belljar://absent/{id}"] {
        assert_eq!(complete(&site, "a", template, &[]).await, Err(CompletionError::NoTemplate), "{template}");
    }
    assert_eq!(site.calls(), [], "no call for what is hidden");
    assert!(complete(&site, "b", "belljar://notes/logs/secret/{id}", &[]).await.is_ok());
}

#[tokio::test]
async fn a_value_behind_an_unknown_variable_is_not_shown() {
    let notes = TestMount {
        templates: vec!["{folder}/{id}"],
        suggestions: (vec!["salaries.md"], None),
        ..TestMount::new("notes", "belljar://notes/", &["private/salaries.md"])
    };
    let rules = [TestRule::all("key:a", "belljar://notes/"), TestRule::denied("key:a", "belljar://notes/private/")];
    let site = Site::new(vec![notes], [&rules[..], &[TestRule::all("key:b", "belljar://")]].concat());
    let complete = |who, resolved| complete(&site, who, "belljar://notes/{folder}/{id}", resolved);
    assert_eq!(complete("b", &[]).await.unwrap().values, ["salaries.md"]);
    assert_eq!(complete("a", &[]).await.unwrap().values, Vec::<String>::new());
    assert_eq!(complete("a", &[("folder", "public")]).await.unwrap().values, ["salaries.md"]);
    site.calls();
    assert_eq!(complete("a", &[("folder", "private")]).await.unwrap(), CompletionResult::default());
    assert_eq!(site.calls_of("complete"), 0, "the provider is not asked about a hidden folder");
}

#[tokio::test]
async fn a_used_up_rate_tells_nothing_of_a_hidden_mount() {
    let hidden = TestMount { templates: vec!["{id}"], ..TestMount::new("hidden", "belljar://hidden/", &["x"]) };
    let rate = TestRule { rate: Some("1/min per caller"), ..TestRule::all("key:a", "belljar://") };
    let site = Site::new(vec![hidden], vec![rate, TestRule::denied("key:a", "belljar://hidden/")]);
    for _ in 0..5 {
        for template in ["belljar://hidden/{id}", "belljar://absent/{id}"] {
            assert_eq!(complete(&site, "a", template, &[]).await, Err(CompletionError::NoTemplate), "{template}");
        }
    }
}
