//! Reads: what is hidden looks like what is not there, and nothing is shared between classes of access.

use tokio::time::Instant;

use super::*;
use crate::catalog::UnservedMount;
use crate::model::Fault;

async fn read(site: &Site, who: &str, uri: &str) -> Result<String, Fault> {
    let (reading, _) = site.gateway.read(&caller(who), uri).await?;
    let Body::Text(text) = &reading.contents[0].body else { panic!("no text") };
    Ok(text.clone())
}

/// The error of a read: everything that a client sees of it, with the URI's own text replaced.
async fn refused(site: &Site, who: &str, uri: &str, own: &str) -> String {
    let fault = read(site, who, uri).await.unwrap_err();
    let hint = fault.error.hint(fault.mount.as_ref());
    let shown = format!("{} | {} | {:?} | {:?} | {hint:?}", fault, fault.error.kind(), fault.mount, fault.uri);
    shown.replace(own, "OWN")
}

fn site() -> Site {
    let notes = TestMount::new("notes", "belljar://notes/", &["public/a", "secret/x", "secret/Plan"]);
    let hidden = TestMount::new("hidden", "belljar://hidden/", &["x"]);
    let inner = TestMount::new("inner", "belljar://notes/public/inner/", &["x"]);
    let rules = vec![
        TestRule::all("key:a", "belljar://notes/public/a"),
        TestRule::all("key:a", "belljar://notes/public/b"),
        TestRule::all("key:b", "belljar://"),
    ];
    Site::new(vec![notes, hidden, inner], rules)
}

#[tokio::test]
async fn a_hidden_mount_looks_like_no_mount() {
    let site = site();
    assert_eq!(read(&site, "b", "belljar://hidden/x").await.unwrap(), "one for key:b");
    assert_eq!(site.calls_of("read"), 1);
    for path in ["x", "", "nothing", "../x", "%2e%2e/x", "a%zz", "x#f", "%78"] {
        let hidden = refused(&site, "a", &format!("belljar://hidden/{path}"), "hidden").await;
        let absent = refused(&site, "a", &format!("belljar://absent/{path}"), "absent").await;
        assert_eq!(hidden, absent, "{path}");
    }
    for (hidden, absent) in [("belljar://hidden", "belljar://absent"), ("Belljar://HIDDEN/x", "Belljar://ABSENT/x")] {
        let own = |uri: &str| uri.get(10..16).unwrap().to_owned();
        let [hidden, absent] =
            [hidden, absent].map(|uri| refused(&site, "a", uri, Box::leak(own(uri).into_boxed_str())));
        assert_eq!(hidden.await, absent.await);
    }
    let near = refused(&site, "a", "belljar://hiddem/x", "hiddem").await;
    assert!(near.contains("notes") && !near.contains("hidden") && !near.contains("inner"), "{near}");
    let near = refused(&site, "b", "belljar://hiddem/x", "hiddem").await;
    assert!(near.contains("did you mean \"hidden\""), "{near}");
    assert_eq!(site.calls(), [], "no call for what is hidden");
}

#[tokio::test]
async fn a_hidden_resource_looks_like_a_missing_one_of_its_mount() {
    let site = site();
    // The provider's own answer to a reference that it does not know.
    let missing = refused(&site, "a", "belljar://notes/public/b", "public/b").await;
    assert_eq!(site.calls(), [("notes", "read", "public/b".to_owned())]);
    for hidden in ["secret/x", "secret/y", "public/c", "", "public/inner/x", "public/inner/y", "%70ublic/inner/x"] {
        let uri = format!("belljar://notes/{hidden}");
        let shown = match hidden {
            "" => {
                let shown = refused(&site, "a", &uri, "\u{0}").await;
                shown.replace("belljar://notes/", "belljar://notes/OWN")
            }
            hidden => refused(&site, "a", &uri, hidden).await,
        };
        assert_eq!(shown, missing, "{hidden}");
    }
    assert_eq!(site.calls(), []);
}

#[tokio::test]
async fn no_suggestion_names_a_hidden_resource() {
    let site = site();
    let listed = site.gateway.list::<Resource>(&caller("b"), None, None).await;
    assert_eq!(listed.entries.len(), 5);
    let wrong = |who| refused(&site, who, "belljar://notes/secret/plan", "secret/plan");
    assert!(wrong("b").await.contains("secret/Plan"));
    let shown = wrong("a").await;
    assert!(!shown.contains("Plan"), "{shown}");
    let shown = refused(&site, "a", "belljar://notes/public/A", "public/A").await;
    assert!(shown.contains("public/a"), "its own resources are suggested: {shown}");
}

#[tokio::test(start_paused = true)]
async fn a_hidden_mount_is_waited_for_like_no_mount() {
    for is_loaded in [false, true] {
        let notes = TestMount::new("notes", "belljar://notes/", &["x"]);
        let hidden = TestMount::new("hidden", "belljar://hidden/", &["x"]);
        let rules = vec![TestRule::all("key:a", "belljar://notes/"), TestRule::all("key:b", "belljar://")];
        let site = Site::loading(vec![notes, hidden], rules);
        if is_loaded {
            site.catalog.mark_loaded();
        }
        let mut waited = Vec::new();
        for uri in ["belljar://hidden/x", "belljar://absent/x"] {
            let began = Instant::now();
            let shown = refused(&site, "a", uri, &uri[10..16]).await;
            waited.push((began.elapsed(), shown));
        }
        assert_eq!(waited[0], waited[1]);
        assert_eq!(waited[0].0.is_zero(), is_loaded, "{:?}", waited[0]);
        let began = Instant::now();
        assert!(read(&site, "b", "belljar://hidden/x").await.is_ok());
        assert!(began.elapsed().is_zero(), "who may read it does not wait");
    }
}

#[tokio::test]
async fn a_mount_that_is_not_served_is_told_only_to_who_knows_it() {
    let unserved = |name: &str, base: &str| UnservedMount {
        name: super::name(name),
        base: base.to_owned(),
        reason: crate::catalog::UnservedReason::Grant,
    };
    let notes = || TestMount::new("notes", "belljar://notes/", &["x"]);
    let rules = vec![TestRule::all("key:a", "belljar://notes/"), TestRule::all("key:b", "belljar://")];
    let site = Site::with_snapshot(vec![notes()], rules, |snapshot| {
        snapshot.with_unserved(vec![unserved("hidden", "belljar://hidden/")])
    });
    site.catalog.mark_loaded();
    let [hidden, absent] = ["hidden", "absent"].map(|own| (format!("belljar://{own}/x"), own));
    assert_eq!(refused(&site, "a", &hidden.0, hidden.1).await, refused(&site, "a", &absent.0, absent.1).await);
    assert!(refused(&site, "b", &hidden.0, "\u{0}").await.contains("\"hidden\" is not served"));
    let notices = async |who: &str| site.gateway.list::<Resource>(&caller(who), None, None).await.notices.len();
    assert_eq!((notices("a").await, notices("b").await), (0, 1));
}

#[tokio::test]
async fn a_missing_scope_is_named_and_nothing_else_is() {
    let notes = TestMount::new("notes", "belljar://notes/", &["x"]);
    let scoped = TestRule { scope: Some("notes:read"), ..TestRule::all("key:a", "belljar://notes/") };
    let site = Site::new(vec![notes], vec![scoped]);
    let shown = refused(&site, "a", "belljar://notes/x", "notes/x").await;
    assert_eq!(shown, refused(&site, "a", "belljar://notes/y", "notes/y").await);
    assert!(shown.contains("notes:read") && shown.contains("insufficient-scope"), "{shown}");
    assert_eq!(site.calls(), []);
}

fn shared_site(fresh_for: Option<Duration>) -> Site {
    let notes = TestMount { fresh_for, ..TestMount::new("notes", "belljar://notes/", &["x"]) };
    let rules = vec![TestRule::all("@team", "belljar://"), TestRule::all("key:other", "belljar://notes/")];
    Site::new(vec![notes], rules)
}

#[tokio::test]
async fn a_cached_reading_is_for_its_class_of_access() {
    let site = shared_site(Some(Duration::from_secs(60)));
    let read = async |who: &str, group: &str| {
        let caller = Caller::new(principal(who, group), "http");
        let (reading, _) = site.gateway.read(&caller, "belljar://notes/x").await.unwrap();
        (reading.contents[0].body.clone(), site.calls_of("read"))
    };
    let text = |text: &str| Body::Text(text.to_owned());
    assert_eq!(read("a", "team").await, (text("one for key:a"), 1));
    assert_eq!(read("b", "team").await, (text("one for key:a"), 0), "the same rule allowed it");
    assert_eq!(read("other", "none").await, (text("one for key:other"), 1), "another rule allowed it");
    assert_eq!(read("other", "none").await, (text("one for key:other"), 0));
    site.set_rules(&[TestRule::all("key:b", "belljar://")]);
    let a = Caller::new(principal("a", "team"), "http");
    assert!(
        site.gateway.read(&a, "belljar://notes/x").await.is_err(),
        "a cached reading is not for who lost the right"
    );
}

#[tokio::test]
async fn a_read_in_flight_is_for_its_class_of_access() {
    let site = shared_site(None);
    site.hold_reads();
    let reads = ["a", "b", "other"].map(|who| {
        let caller = Caller::new(principal(who, if who == "other" { "none" } else { "team" }), "http");
        let gateway = Arc::clone(&site.gateway);
        tokio::spawn(async move {
            let (reading, _) = gateway.read(&caller, "belljar://notes/x").await.unwrap();
            reading.contents[0].body.clone()
        })
    });
    while Providers::lock(&site.providers.calls).len() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    site.release_reads();
    let mut bodies = Vec::new();
    for read in reads {
        bodies.push(read.await.unwrap());
    }
    assert_eq!(site.calls_of("read"), 2, "one call for each class");
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(bodies[2], Body::Text("one for key:other".to_owned()));
}

#[tokio::test]
async fn instructions_name_only_known_mounts() {
    let site = site();
    let names = |who: &str| {
        let names = site.gateway.served_mount_names(&caller(who).principal);
        names.into_iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("a"), ["notes"]);
    assert_eq!(names("b"), ["hidden", "inner", "notes"]);
    assert!(names("nobody").is_empty());
    assert_eq!(site.gateway.all_mount_names(&caller("a").principal).await, [name("notes")]);
}

#[tokio::test]
async fn the_contents_of_a_reading_are_judged_one_by_one() {
    let notes = TestMount::new("notes", "belljar://notes/", &["team/a", "team/b", "team/pay/c", "other/pay/c"]);
    let all = ["team/a", "team/pay", "team/b", "team", "other"].map(|path| format!("belljar://notes/{path}"));
    let rules = [0, 2, 3].map(|at| TestRule::all("key:a", Box::leak(all[at].clone().into_boxed_str())));
    let rules =
        [&rules[..], &[TestRule::all("key:b", "belljar://"), TestRule::denied("key:a", "belljar://notes/team/pay/")]];
    let site = Site::new(vec![notes], rules.concat());
    let read = async |who: &str, uri: &str| {
        let (reading, _) = site.gateway.read(&caller(who), uri).await.ok()?;
        Some(reading.contents.into_iter().map(|one| one.reference).collect::<Vec<_>>())
    };
    assert_eq!(read("b", "belljar://notes/team").await.unwrap().len(), 3);
    assert_eq!(read("a", "belljar://notes/team").await.unwrap(), ["belljar://notes/team/a", "belljar://notes/team/b"]);
    assert_eq!(read("a", "belljar://notes/team/pay").await, None, "the folder of a denied place");
}
