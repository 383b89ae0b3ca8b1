//! Search: hidden entries are neither found, nor counted, nor named.

use super::*;
use crate::gateway::search::{SearchRequest, SearchResults};
use crate::policy::Action;

async fn search(site: &Site, who: &str, word: &str, contents: bool) -> SearchResults {
    let request = SearchRequest { words: vec![word.to_owned()], only: None, contents, max_matches: 20 };
    site.gateway.search(&caller(who), &request).await
}

fn site(rules: Vec<TestRule>) -> Site {
    let notes = TestMount::new("notes", "belljar://notes/", &["public/plan", "secret/plan", "secret/x", "secret/x"]);
    let hidden = TestMount::new("hidden", "belljar://hidden/", &["plan"]);
    Site::new(vec![notes, hidden], rules)
}

#[tokio::test(start_paused = true)]
async fn hidden_entries_are_not_found_or_counted() {
    let rules = vec![TestRule::all("key:a", "belljar://notes/public/"), TestRule::all("key:b", "belljar://")];
    let site = site(rules);
    let all = search(&site, "b", "plan", false).await;
    assert_eq!((all.matches.len(), all.total, all.entries, all.gaps.len()), (3, 3, 4, 1));
    let own = search(&site, "a", "plan", false).await;
    assert_eq!((own.matches.len(), own.total, own.entries), (1, 1, 1));
    assert_eq!(own.gaps, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn contents_are_searched_only_where_they_may_be_read() {
    let list = |who, below| TestRule { actions: &[Action::List, Action::Search], ..TestRule::all(who, below) };
    let read = |who, below| TestRule { actions: &[Action::Read], ..TestRule::all(who, below) };
    let rules = vec![
        list("key:a", "belljar://notes/"),
        read("key:a", "belljar://notes/public/"),
        TestRule::all("key:b", "belljar://"),
        TestRule { actions: &[Action::List, Action::Read], ..TestRule::all("key:c", "belljar://") },
    ];
    let site = site(rules);
    let own = search(&site, "a", "one", true).await;
    assert_eq!((own.matches.len(), own.read), (1, 1));
    let calls = site.calls();
    let read = calls.iter().filter(|(_, function, _)| *function == "read").map(|(_, _, reference)| reference.as_str());
    assert_eq!(read.collect::<Vec<_>>(), ["public/plan"]);
    assert!(own.gaps.iter().all(|gap| !gap.contains("hidden")), "{:?}", own.gaps);
    assert_eq!(search(&site, "b", "one", true).await.matches.len(), 4);
    let none = search(&site, "c", "plan", true).await;
    assert_eq!((none.matches.len(), none.total, none.entries, none.read), (0, 0, 0, 0), "it may not search");
    assert_eq!(none.gaps, Vec::<String>::new());
}
