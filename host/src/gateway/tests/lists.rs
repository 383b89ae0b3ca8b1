//! Lists: filtered by mount and by the beginning of names, from one shared list.

use super::*;
use crate::catalog::Notice;
use crate::catalog::listing::{ListPosition, Listed};
use crate::gateway::ListPage;
use crate::gateway::subscriptions::WantedLists;

async fn pages<T: Listed>(site: &Site, who: &str) -> Vec<ListPage<T>> {
    let (mut pages, mut start) = (Vec::new(), None::<ListPosition>);
    loop {
        let page: ListPage<T> = site.gateway.list(&caller(who), start, None).await;
        start = page.next.clone();
        pages.push(page);
        if start.is_none() {
            return pages;
        }
    }
}

fn uris(pages: &[ListPage<Resource>]) -> Vec<&str> {
    pages.iter().flat_map(|page| &page.entries).map(|(entry, _)| entry.reference.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_mount_of_which_nothing_is_visible_is_not_there() {
    let mounts = ["alpha", "beta", "gamma"].map(|name| match name {
        "alpha" => TestMount::new("alpha", "belljar://alpha/", &["x"]),
        "beta" => TestMount::new("beta", "belljar://beta/", &["x", "x", "../bad"]),
        _ => TestMount::new("gamma", "belljar://gamma/", &["x"]),
    });
    let rules = vec![
        TestRule::all("key:a", "belljar://alpha/"),
        TestRule::all("key:a", "belljar://gamma/"),
        TestRule::all("key:b", "belljar://"),
    ];
    let site = Site::new(mounts.into(), rules);
    let own = pages::<Resource>(&site, "a").await;
    assert_eq!(uris(&own), ["belljar://alpha/x", "belljar://gamma/x"]);
    assert!(own.iter().all(|page| page.notices.is_empty()));
    assert!(site.calls().iter().all(|(mount, ..)| *mount != "beta"), "no call of a hidden mount");
    let all = pages::<Resource>(&site, "b").await;
    assert_eq!(uris(&all).len(), 3);
    assert_eq!(all[0].notices.len(), 1);
    assert_eq!(uris(&pages::<Resource>(&site, "nobody").await), Vec::<&str>::new());
    let only = site.gateway.list::<Resource>(&caller("a"), None, Some(&name("beta"))).await;
    assert!(only.entries.is_empty() && only.notices.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_filtered_list_are_full() {
    // 30,000 hidden entries, then every third one of 3,000 is visible.
    let hidden = (0..30_000).map(|n| format!("secret/{n:05}"));
    let mixed = (0..3000).map(|n| format!("{}/{n:05}", if n % 3 == 0 { "public" } else { "secret-too" }));
    let long =
        TestMount { references: hidden.chain(mixed).collect(), ..TestMount::new("long", "belljar://long/", &[]) };
    let next = TestMount::new("next", "belljar://next/", &["x"]);
    let rules = vec![
        TestRule::all("key:a", "belljar://long/public/"),
        TestRule::all("key:a", "belljar://next/"),
        TestRule::all("key:b", "belljar://"),
    ];
    let site = Site::new(vec![long, next], rules);
    let own = pages::<Resource>(&site, "a").await;
    let sizes: Vec<_> = own.iter().map(|page| page.entries.len()).collect();
    assert_eq!(sizes, [1000, 1], "no empty page");
    assert!(uris(&own)[..1000].iter().all(|uri| uri.starts_with("belljar://long/public/")));
    let calls = site.calls_of("list-resources");
    assert_eq!(calls, 33 + 1);
    let all = pages::<Resource>(&site, "b").await;
    assert_eq!(uris(&all).len(), 33_001);
    assert_eq!(site.calls_of("list-resources"), 0, "all principals share one list");
    assert_eq!(uris(&all).into_iter().filter(|uri| uri.contains("/public/")).count(), 1000);
    let position = own[0].next.clone().unwrap();
    assert!(position.mount == name("next") || position.offset >= 30_000, "positions count the provider's entries");
}

#[tokio::test(start_paused = true)]
async fn templates_are_shown_if_a_visible_resource_may_begin_like_them() {
    let templates = vec!["public/{id}", "public/deep/{id}/x", "secret/{id}", "{+any}", "pub{rest}", "public{/id}"];
    let notes = TestMount { templates, ..TestMount::new("notes", "belljar://notes/", &[]) };
    let hidden = TestMount { templates: vec!["{id}"], ..TestMount::new("hidden", "belljar://hidden/", &[]) };
    let rules = vec![TestRule::all("key:a", "belljar://notes/public/"), TestRule::all("key:b", "belljar://")];
    let site = Site::new(vec![notes, hidden], rules);
    let shown = async |who: &str| {
        let pages = pages::<Template>(&site, who).await;
        let all = pages.into_iter().flat_map(|page| page.entries).map(|(entry, _)| entry.template);
        all.collect::<Vec<_>>()
    };
    let own = ["public/{id}", "public/deep/{id}/x", "{+any}", "pub{rest}", "public{/id}"];
    assert_eq!(shown("a").await, own.map(|template| format!("belljar://notes/{template}")));
    assert_eq!(shown("b").await.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn notices_tell_nothing_of_hidden_entries() {
    let references = ["public/a", "secret/x", "secret/x", "inner/taken"];
    let notes = TestMount::new("notes", "belljar://notes/", &references);
    let inner = TestMount::new("inner", "belljar://notes/inner/", &[]);
    let rules = vec![TestRule::all("key:a", "belljar://notes/public/"), TestRule::all("key:b", "belljar://")];
    let site = Site::new(vec![notes, inner], rules);
    let notices = async |who: &str| -> Vec<Notice> {
        let pages = pages::<Resource>(&site, who).await;
        pages.into_iter().flat_map(|page| page.notices).map(|(_, notice)| notice).collect()
    };
    let all = notices("b").await;
    assert!(matches!(all[..], [Notice::Entries { count: 2, .. }]), "{all:?}");
    assert_eq!(notices("a").await, []);
    let fixed = Notice::LeftOut("secret/x".to_owned()).without_details().unwrap().to_string();
    assert!(!fixed.contains("secret"), "{fixed}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_changes_applies_to_the_next_page() {
    let references: Vec<String> = (0..2500).map(|n| format!("{n:05}")).collect();
    let long = TestMount { references, ..TestMount::new("long", "belljar://long/", &[]) };
    let site = Site::new(vec![long], vec![TestRule::all("key:a", "belljar://long/")]);
    let first = site.gateway.list::<Resource>(&caller("a"), None, None).await;
    assert_eq!(first.entries.len(), 1000);
    site.set_rules(&[TestRule::all("key:b", "belljar://long/")]);
    let second = site.gateway.list::<Resource>(&caller("a"), first.next.clone(), None).await;
    assert!(second.entries.is_empty() && second.next.is_none());
    site.set_rules(&[TestRule::all("key:a", "belljar://long/01")]);
    let second = site.gateway.list::<Resource>(&caller("a"), first.next, None).await;
    assert_eq!(second.entries.len(), 1000);
    assert!(second.next.is_none() || second.entries[0].0.reference.ends_with("01000"));
}

#[tokio::test(start_paused = true)]
async fn a_list_made_with_the_secret_of_one_principal_is_for_no_other() {
    let mail = TestMount { per_principal: true, ..TestMount::new("mail", "belljar://mail/", &["x"]) };
    let site = Site::new(vec![mail], vec![TestRule::all("key:a", "belljar://"), TestRule::all("key:b", "belljar://")]);
    for _ in 0..2 {
        for who in ["a", "b"] {
            let own = format!("belljar://mail/of-key-{who}");
            assert_eq!(uris(&pages::<Resource>(&site, who).await), ["belljar://mail/x", own.as_str()]);
        }
    }
    assert_eq!(site.calls_of("list-resources"), 2, "each has a cached list of its own");
    // Nor is it searched, suggested, or watched.
    let wrong = site.gateway.read(&caller("a"), "belljar://mail/OF-key-b").await.err().unwrap();
    assert!(!format!("{wrong} {:?}", wrong.error.hint(None)).contains("of-key-b"), "{wrong}");
    let subscriber =
        site.gateway.subscriber(&caller("a").principal, WantedLists { resources: true, ..WantedLists::NONE }).unwrap();
    let watched = site.gateway.watch(&subscriber, vec!["belljar://mail/x".to_owned()]).await;
    assert_eq!(watched, Err(crate::gateway::subscriptions::SubscribeError::PerPrincipal));
    assert!(!site.gateway.can_watch(&caller("a").principal, "belljar://mail/x"));
}
