//! Skills of scripted providers, with several principals. Every resource has the same text: a valid `SKILL.md`.

use std::time::Duration;

use super::*;
use crate::gateway::tests::{Site, TestMount, caller, name};
use crate::model::Body;
use crate::model::Resource;
use crate::policy::Action;
use crate::policy::test_rules::TestRule;

fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\n")
}

fn site(mounts: Vec<TestMount>, rules: Vec<TestRule>) -> Site {
    let site = Site::new(mounts, rules);
    site.change(&text("pdf"));
    site
}

fn everyone() -> Vec<TestRule> {
    vec![TestRule::all("@team", "")]
}

fn notes() -> TestMount {
    TestMount::new("notes", "belljar://notes/", &["a/pdf/SKILL.md", "a/pdf/f", "b/pdf/SKILL.md", "b/pdf/g", "other"])
}

async fn listed(site: &Site, who: &str) -> Vec<String> {
    let page = site.gateway.list_skills(&caller(who), None, None).await;
    assert_eq!(page.next, None);
    page.skills.iter().map(SkillEntry::uri).collect()
}

const A: &str = "skill://notes/a/pdf/SKILL.md";
const B: &str = "skill://notes/b/pdf/SKILL.md";

#[tokio::test]
async fn a_skill_is_seen_only_by_who_may_list_and_read_all_of_it() {
    let rules = vec![
        TestRule::all("key:whole", "belljar://notes/"),
        TestRule::all("key:half", "belljar://notes/"),
        TestRule::denied("key:half", "belljar://notes/b/pdf/g"),
        TestRule { actions: &[Action::List], ..TestRule::all("key:lists", "belljar://notes/") },
        TestRule { actions: &[Action::Read], ..TestRule::all("key:reads", "belljar://notes/") },
    ];
    let site = site(vec![notes()], rules);
    for nobody in ["lists", "reads", "none"] {
        assert_eq!(listed(&site, nobody).await, [""; 0], "{nobody}");
    }
    assert_eq!(site.calls_of("read"), 0);
    assert_eq!(listed(&site, "half").await, [A]);
    assert_eq!(site.calls_of("read"), 2, "only the files of its own skill");
    assert_eq!(listed(&site, "whole").await, [A, B]);
    assert_eq!(site.calls_of("read"), 2, "the other skill is kept");
    let hidden = site.gateway.skill(&caller("half"), B).await.unwrap_err();
    let absent = site.gateway.skill(&caller("half"), "skill://notes/c/pdf/SKILL.md").await.unwrap_err();
    assert!(matches!((hidden, absent), (SkillLookupError::Unknown, SkillLookupError::Unknown)));
    assert!(site.gateway.skill_directory(&caller("half"), "skill://notes/b/pdf").await.is_err());
    assert_eq!(site.gateway.skill_directory(&caller("whole"), "skill://notes/b/pdf").await.unwrap().len(), 2);
    assert_eq!(site.calls_of("read"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_did_not_change_is_not_read_again() {
    for (revisions, fresh_for, again) in [(true, None, 0), (false, None, 4), (false, Some(Duration::from_secs(9)), 0)] {
        let site = site(vec![TestMount { revisions, fresh_for, ..notes() }], everyone());
        assert_eq!(listed(&site, "a").await, [A, B]);
        assert_eq!(site.calls_of("read"), 4);
        assert_eq!(listed(&site, "b").await, [A, B]);
        assert_eq!(site.calls(), [], "within a second");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(listed(&site, "a").await, [A, B]);
        assert_eq!(site.calls_of("read"), again, "{revisions} {fresh_for:?}");
        tokio::time::advance(Duration::from_secs(20)).await;
        site.change(&format!("{}changed", text("pdf")));
        let page = site.gateway.list_skills(&caller("a"), None, None).await;
        assert_eq!(site.calls_of("read"), 4, "{revisions} {fresh_for:?}");
        let served = site.gateway.read(&caller("a"), A).await.unwrap().0;
        let Body::Text(served) = &served.contents[0].body else { panic!("no text") };
        assert!(served.contains("changed"));
        let size = page.skills[0].skill.file("a/pdf/SKILL.md").unwrap().size;
        // Each principal gets its own name at the end of the text: both are one letter.
        assert_eq!(size, served.len() as u64);
    }
}

#[tokio::test]
async fn a_read_with_other_bytes_drops_the_entry_at_once() {
    let site = site(vec![TestMount { revisions: true, ..notes() }], everyone());
    listed(&site, "a").await;
    site.change(&format!("{}changed", text("pdf")));
    site.calls();
    let before = site.gateway.skill(&caller("a"), A).await.unwrap();
    assert_eq!(site.calls_of("read"), 0, "within a second");
    site.gateway.read(&caller("a"), "belljar://notes/a/pdf/f").await.unwrap();
    site.calls();
    let after = site.gateway.skill(&caller("a"), A).await.unwrap();
    assert_ne!(before.skill.files, after.skill.files);
    assert!(site.calls_of("read") >= 2);
}

#[tokio::test]
async fn a_skill_file_is_the_resource_of_its_mount() {
    let inner = TestMount::new("inner", "belljar://notes/a/pdf/in/", &["x/SKILL.md"]);
    let plain = TestMount::new("plain", "belljar://plain/", &["x"]);
    let site = site(vec![notes(), inner, plain], everyone());
    let read = async |uri: &str| match site.gateway.read(&caller("a"), uri).await {
        Ok((reading, mount)) => Ok((reading.contents[0].clone(), mount.name.clone())),
        Err(fault) => Err((fault.error.kind(), fault.uri)),
    };
    let (contents, mount) = read(A).await.unwrap();
    assert_eq!(
        (contents.reference.as_str(), contents.mime_type.as_deref(), &mount),
        (A, Some(MARKDOWN), &name("notes"))
    );
    let (contents, _) = read("skill://notes/other").await.unwrap();
    assert_eq!(
        (contents.reference.as_str(), contents.mime_type.as_deref()),
        ("skill://notes/other", Some("text/plain"))
    );
    assert_eq!(site.calls_of("read"), 2);
    for uri in [
        "skill://plain/x",
        "skill://absent/x",
        "skill://notes/a/pdf/in/x/SKILL.md",
        "skill://notes/a/%70df/in/x/SKILL.md",
        "skill://notes",
        "skill:///a",
        "skill://NOTES/a/pdf/f",
    ] {
        assert_eq!(read(uri).await.unwrap_err(), ("not-found", Some(uri.to_owned())), "{uri}");
    }
    assert_eq!(site.calls_of("read"), 0);
    for uri in ["skill://notes/../plain/x", "skill://notes/a/%2e%2e/other", "skill://notes/a/./pdf/f"] {
        let (kind, _) = read(uri).await.unwrap_err();
        assert!(["not-found", "bad-uri"].contains(&kind), "{uri}: {kind}");
    }
    assert_eq!(site.calls_of("read"), 0);
}

#[tokio::test]
async fn a_hidden_mount_has_no_skill_names() {
    let hidden = TestMount::new("hidden", "belljar://hidden/", &["pdf/SKILL.md"]);
    let site = site(vec![notes(), hidden], vec![TestRule::all("key:a", "belljar://notes/")]);
    let shown = async |mount: &str| {
        let uri = format!("skill://{mount}/pdf/SKILL.md");
        let Err(fault) = site.gateway.read(&caller("a"), &uri).await else { panic!("{uri}") };
        let get = format!("{:?}", site.gateway.skill(&caller("a"), &uri).await.unwrap_err());
        let directory = format!("{:?}", site.gateway.skill_directory(&caller("a"), &uri[..uri.len() - 9]).await);
        format!("{fault} {:?} {:?} {get} {directory}", fault.mount, fault.uri).replace(mount, "OWN")
    };
    assert_eq!(shown("hidden").await, shown("absent").await);
    assert_eq!(site.calls(), []);
}

#[tokio::test]
async fn a_bad_skill_is_left_out_with_the_reason() {
    let references = ["a/pdf/SKILL.md", "b/other/SKILL.md"];
    let site = site(vec![TestMount::new("notes", "belljar://notes/", &references)], everyone());
    let page = site.gateway.list_skills(&caller("a"), None, None).await;
    assert_eq!(page.skills.len(), 1);
    let (_, notice) = &page.notices[0];
    assert!(notice.to_string().contains("has the name \"pdf\"; expected \"other\""), "{notice}");
    let error = site.gateway.skill(&caller("a"), "skill://notes/b/other/SKILL.md").await.unwrap_err();
    assert!(matches!(error, SkillLookupError::Invalid(_)), "{error:?}");
}

#[tokio::test]
async fn a_directory_has_its_direct_children_only() {
    let references =
        ["a/pdf/SKILL.md", "a/pdf/s/x", "a/pdf/s/t/y", "a/pdf/z", "a/pdf/n/pdf/SKILL.md", "a/q", "a/pdf/%C3%A4"];
    let site = site(vec![TestMount::new("notes", "belljar://notes/", &references)], everyone());
    let read = async |uri: &str| {
        let all = site.gateway.skill_directory(&caller("a"), uri).await.ok()?;
        let one = |child: &DirectoryChild| {
            let kind = if child.is_directory { "/" } else { "" };
            format!("{}{kind}", child.uri.strip_prefix("skill://notes/").unwrap())
        };
        Some(all.iter().map(one).collect::<Vec<_>>().join(" "))
    };
    let shown = "a/pdf/%C3%A4 a/pdf/SKILL.md a/pdf/n/ a/pdf/s/ a/pdf/z";
    assert_eq!(read("skill://notes/a/pdf").await.as_deref(), Some(shown));
    assert_eq!(read("skill://notes/a/pdf/s").await.as_deref(), Some("a/pdf/s/t/ a/pdf/s/x"));
    assert_eq!(read("skill://notes/a/pdf/n").await.as_deref(), Some("a/pdf/n/pdf/"));
    assert_eq!(read("skill://notes/a/pdf/n/pdf").await.as_deref(), Some("a/pdf/n/pdf/SKILL.md"));
    for none in ["a", "", "a/pdf/", "a/pdf/z", "a/pdf/SKILL.md", "a/pdf/none", "a/pd", "a/pdf?x", "a/pdf/../pdf"] {
        assert_eq!(read(&format!("skill://notes/{none}")).await, None, "{none}");
    }
    for none in ["skill://notes", "belljar://notes/a/pdf", "skill://absent/a", "x"] {
        assert_eq!(read(none).await, None, "{none}");
    }
}

#[tokio::test]
async fn the_mount_itself_can_be_a_skill() {
    let site = Site::new(vec![TestMount::new("pdf", "belljar://pdf/", &["SKILL.md", "x/y"])], everyone());
    site.change(&text("pdf"));
    assert_eq!(listed(&site, "a").await, ["skill://pdf/SKILL.md"]);
    let children = site.gateway.skill_directory(&caller("a"), "skill://pdf").await.unwrap();
    let uris: Vec<_> = children.iter().map(|child| child.uri.as_str()).collect();
    assert_eq!(uris, ["skill://pdf/SKILL.md", "skill://pdf/x"]);
}

#[tokio::test]
async fn principals_with_secrets_of_their_own_have_entries_of_their_own() {
    let site = site(vec![TestMount { per_principal: true, revisions: true, ..notes() }], everyone());
    for (who, reads) in [("a", 4), ("b", 4), ("a", 0)] {
        assert_eq!(listed(&site, who).await, [A, B]);
        assert_eq!(site.calls_of("read"), reads, "{who}");
    }
}

#[tokio::test]
async fn a_listed_skill_md_has_the_name_of_its_kept_skill() {
    let site = site(vec![notes()], everyone());
    let resources = async || {
        let mut page = site.gateway.list::<Resource>(&caller("a"), None, None).await;
        let entries = page.entries.iter_mut().map(|(entry, mount)| (entry, &*mount));
        site.gateway.name_skills(&caller("a").principal, entries);
        page.entries.iter().map(|(entry, _)| (entry.name.clone(), entry.description.clone())).collect::<Vec<_>>()
    };
    assert_eq!(resources().await[0], ("a/pdf/SKILL.md".to_owned(), None));
    site.calls();
    listed(&site, "a").await;
    site.calls();
    assert_eq!(resources().await[0], ("pdf".to_owned(), Some("d".to_owned())));
    assert_eq!(resources().await[1].0, "a/pdf/f");
    assert_eq!(site.calls_of("read"), 0);
}
