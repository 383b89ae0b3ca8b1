//! Tests of the list, templates and suggestions.

use super::*;

fn feed_of(count: usize) -> String {
    let item = |n: usize| format!("<item><title>N{n}</title><guid>{n}</guid></item>");
    let items: String = (0..count).map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>The feed</title>{items}</channel></rss>")
}

/// The references on each page of the list.
fn pages(web: &Web) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = web.list_resources(cursor.as_deref()).unwrap();
        pages.push(page.resources.into_iter().map(|resource| resource.reference).collect());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pages;
        }
    }
}

const MIXED: &str = r#"
    plain = "https://a.example/plain"
    bad = "a.example"
    "not a name" = "https://a.example/"
    user = "https://a.example/users/{id}{?full}"

    [api]
    url = "https://a.example/api"
    title = "The API"
    description = "What it says"
    kind = "json"
"#;

#[test]
fn entries_are_listed_without_requests() {
    let recording = Recording::new();
    let web = recording.web(MIXED);
    let page = web.list_resources(None).unwrap();
    let names: Vec<&str> = page.resources.iter().map(|resource| resource.reference.as_str()).collect();
    assert_eq!(names, ["api", "bad", "not%20a%20name", "plain"]);
    let api = Resource::new("api").title("The API").description("What it says").mime_type("application/json");
    assert_eq!(page.resources[0], api);
    assert_eq!(page.resources[3], Resource::new("plain"));
    assert_eq!(page.next_cursor, None);
    let templates = web.list_templates().unwrap();
    assert_eq!(templates, [Template::new("user/{id}{?full}").name("user")]);
    assert_eq!(recording.urls(), [""; 0]);
}

#[test]
fn a_wrong_entry_gives_its_error_in_the_list_and_in_reads() {
    let web = Recording::new().web(MIXED);
    let page = web.list_resources(None).unwrap();
    has(page.resources[1].description.as_deref().unwrap(), &["The entry \"bad\" of WEB", "write it as https://host"]);
    for reference in ["bad", "bad/x", "not%20a%20name"] {
        match web.read(reference) {
            Err(Error::Failed(why)) => has(&why, &["of WEB cannot be used"]),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn items_are_listed_if_configured() {
    let settings =
        "[f]\nurl = \"https://a.example/f\"\nitems = true\n[g]\nurl = \"https://a.example/g\"\nkind = \"feed\"";
    let recording = Recording::new().with("https://a.example/f", "text/xml", include_str!("../../fixtures/rss2.xml"));
    let page = recording.web(settings).list_resources(None).unwrap();
    assert_eq!(recording.urls(), ["https://a.example/f"]);
    let feed = Resource::new("f").title("Harbour & Tide").mime_type("text/markdown");
    let newest = Annotations::new().last_modified("2026-07-28T09:30:00Z");
    assert_eq!(page.resources[0], feed.annotations(newest.clone()));
    let id = format!("{:016x}", feed::hash(&["tag:harbour.example,2026:buoys"]));
    let item = Resource::new(format!("f/items/{id}")).name(&id).title("New buoys at the north pier");
    assert_eq!(page.resources[1], item.mime_type("text/markdown").annotations(newest));
    assert_eq!(page.resources[3].annotations, None);
    assert_eq!(page.resources.len(), 5);
    assert_eq!(page.resources[4].reference, "g");
    for resource in &page.resources[..4] {
        recording.web(settings).read(&resource.reference).unwrap();
    }
}

#[test]
fn a_feed_that_does_not_answer_is_listed_with_the_reason() {
    let settings = "[f]\nurl = \"https://a.example/f\"\nitems = true\ndescription = \"News.\"";
    let recording =
        Recording::new().fails("https://a.example/f", Failure::Unavailable("it took longer than 1.0 s".into()));
    let page = recording.web(settings).list_resources(None).unwrap();
    assert_eq!(page.resources.len(), 1);
    let description = page.resources[0].description.as_deref().unwrap();
    has(description, &["News. (Its items are not listed: unavailable: no answer", "longer than 1.0 s"]);
}

#[test]
fn lists_have_pages_and_feeds_are_fetched_in_batches() {
    let plain: String = (0..2_500).map(|n| format!("p{n:04} = \"https://a.example/{n}\"\n")).collect();
    let pages = pages(&Recording::new().web(&plain));
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 500]);
    let whole = pages.concat();
    assert!(whole.is_sorted() && whole.len() == 2_500);

    let feeds: String =
        (0..20).map(|n| format!("[f{n:02}]\nurl = \"https://a.example/f{n}\"\nitems = true\n")).collect();
    let mut recording = Recording::new();
    for n in 0..20 {
        recording = recording.with(&format!("https://a.example/f{n}"), "text/xml", feed_of(150));
    }
    let pages = self::pages(&recording.web(&feeds));
    // Each feed adds a hundred items and itself.
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [808, 808, 404]);
    assert_eq!(*recording.batches.borrow(), [8, 8, 4]);
    assert_eq!(recording.urls().len(), 20);
}

#[test]
fn values_complete_variables() {
    let settings = "[user]\nurl = \"https://a.example/{id}{?full}\"\nvalues = { id = [\"ann\", \"Anton\", \"bob\"] }";
    let web = Recording::new().web(settings);
    let complete = |name: &str, value: &str| web.complete("user/{id}{?full}", &Argument::new(name, value), &[]);
    assert_eq!(complete("id", "an").unwrap().values, ["ann", "Anton"]);
    assert_eq!(complete("full", "").unwrap().values, [""; 0]);
    assert!(matches!(complete("other", ""), Err(Error::Invalid(_))));
    assert!(web.complete("{id}", &Argument::new("id", ""), &[]).is_err());
}

#[test]
fn a_changed_feed_changes_the_revision_of_the_catalog() {
    let settings = "[f]\nurl = \"https://a.example/f\"\nitems = true\n[g]\nurl = \"https://a.example/g\"";
    let revision_of = |tag: &str, settings: &str| {
        let recording = Recording::new().head("https://a.example/f", 200, &[("etag", tag)]);
        let revision = recording.web(settings).catalog_revision().unwrap();
        assert_eq!(recording.urls(), ["HEAD https://a.example/f"]);
        revision
    };
    assert_eq!(revision_of("\"1\"", settings), revision_of("\"1\"", settings));
    assert_ne!(revision_of("\"1\"", settings), revision_of("\"2\"", settings));
    assert_ne!(revision_of("\"1\"", settings), revision_of("\"1\"", &settings.replace("/g", "/h")));
}

#[test]
fn absent_entries_are_not_found() {
    let web = Recording::new().web(MIXED);
    for reference in ["", "nothing", "plain/x", "user", "user/1/2", "%70lain/"] {
        assert_eq!(web.read(reference), Err(Error::NotFound), "{reference}");
    }
    assert!(matches!(web.read("plain?x=1"), Err(Error::Invalid(_))));
}
