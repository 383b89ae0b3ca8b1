//! Kept skills: found in lists, compared with what is read, and bounded.

use serde_json::Map;

use super::*;
use crate::limits::memory_budget::MemoryBudget;
use crate::model::SkillFiles;

fn memory() -> Arc<ListingMemory> {
    ListingMemory::new(MemoryBudget::new(1 << 20))
}

/// The directories of a set, each with its files in one line.
fn shown(set: &SkillSet) -> Vec<(String, String)> {
    let all = (0..set.len()).filter_map(|index| set.get(index));
    all.map(|(root, files)| (root.to_string(), files.join(" "))).collect()
}

fn listed(references: &[&str]) -> Vec<(String, String)> {
    shown(&SkillSet::of_listing(references.iter().map(|one| (*one).to_owned()).collect()))
}

fn pair(root: &str, files: &str) -> (String, String) {
    (root.to_owned(), files.to_owned())
}

#[test]
fn each_listed_directory_with_a_skill_md_is_a_skill() {
    assert_eq!(
        listed(&["a/SKILL.md", "a/x/y", "ab/z", "b/skill.md", "c/SKILL.md/d", "a/SKILL.md", "a/q?x", "a/dir/"]),
        [pair("a", "a/SKILL.md a/x/y")]
    );
    assert_eq!(listed(&["x", "y/z"]), []);
    assert_eq!(listed(&["SKILL.md", "a/b"]), [pair("", "SKILL.md a/b")], "the mount itself");
    assert_eq!(
        listed(&["b-c/SKILL.md", "b/SKILL.md", "b/c/SKILL.md", "b/c/d", "b/e"]),
        [
            pair("b", "b/SKILL.md b/c/SKILL.md b/c/d b/e"),
            pair("b-c", "b-c/SKILL.md"),
            pair("b/c", "b/c/SKILL.md b/c/d")
        ],
        "a skill has the files of those inside it"
    );
    assert_eq!(listed(&["%61/SKILL.md", "a/SKILL.md"]).len(), 1, "two spellings of one directory");
}

#[test]
fn a_provider_names_each_skill_once() {
    let skill = |root: &str| SkillFiles { root: root.to_owned(), files: vec![format!("{root}/SKILL.md")] };
    let set = SkillSet::of_provider(vec![skill("b"), skill("a"), skill("b"), skill("%61")]);
    assert_eq!(shown(&set).iter().map(|(root, _)| root.as_str()).collect::<Vec<_>>(), ["%61", "b"]);
    assert!(set.find("b").is_some() && set.find("c").is_none());
}

fn file(reference: &str, text: &str) -> SkillFile {
    let digest = Digest::of(text.as_bytes());
    SkillFile { reference: reference.into(), digest, size: text.len() as u64, mime_type: None }
}

fn skill(root: &str, files: Vec<SkillFile>) -> KeptSkill {
    let (name, description) = ("x".to_owned(), "y".to_owned());
    let frontmatter = Frontmatter { name, description, others: Map::new(), yaml_bytes: 10 };
    let names = files.iter().map(|file| Arc::clone(&file.reference)).collect();
    let skill = Skill { root: root.into(), frontmatter, files };
    KeptSkill { files: names, revisions: None, fresh_until: None, result: Ok(Arc::new(skill)) }
}

#[test]
fn a_read_with_other_bytes_removes_each_skill_with_the_file() {
    let (slot, memory) = (SkillSlot::default(), memory());
    let fill = || {
        for root in ["a", "a/b", "c"] {
            let files = vec![file("a/b/SKILL.md", "one"), file("a/b/f", "two")];
            slot.keep(&memory, &root.into(), skill(root, files));
        }
    };
    let kept = || ["a", "a/b", "c"].map(|root| slot.kept_at(root).is_some());
    fill();
    slot.observe("a/b/f", &Body::Text("two".to_owned()));
    slot.observe("a/b/f", &Body::Blob(b"two".to_vec()));
    slot.observe("a/b/g", &Body::Text("no file of a skill".to_owned()));
    assert_eq!(kept(), [true; 3]);
    slot.observe("a/b/f", &Body::Text("owt".to_owned()));
    assert_eq!(kept(), [false, false, true], "the file is not below c");
    fill();
    slot.observe("a/b/f", &Body::Text("two!".to_owned()));
    assert_eq!(kept(), [false, false, true]);
}

#[test]
fn a_skill_with_other_files_is_not_the_kept_one() {
    let (slot, memory) = (SkillSlot::default(), memory());
    let one = skill("a", vec![file("a/SKILL.md", "x")]);
    let files = Arc::clone(&one.files);
    slot.keep(&memory, &"a".into(), one);
    assert!(slot.kept("a", &files).is_some());
    assert!(slot.kept("a", &[Arc::from("a/SKILL.md"), Arc::from("a/new")]).is_none());
    slot.remove("a");
    assert!(slot.kept("a", &files).is_none());
}

#[test]
fn kept_skills_count_as_memory_of_listings_and_have_bounds() {
    let (slot, memory) = (SkillSlot::default(), memory());
    assert_eq!(slot.oldest(), None);
    slot.keep(&memory, &"a".into(), skill("a", vec![file("a/SKILL.md", "x")]));
    let used = memory.used();
    assert!(used > 0 && slot.oldest().is_some());
    slot.keep(&memory, &"a".into(), skill("a", vec![file("a/SKILL.md", "x")]));
    assert_eq!(memory.used(), used, "replaced, not added");
    assert!(slot.has_room());
    let large = SkillFile { size: MAX_SKILLS_BYTES.get(), ..file("b/SKILL.md", "x") };
    slot.keep(&memory, &"b".into(), skill("b", vec![large]));
    assert!(!slot.has_room());
    slot.remove("b");
    assert!(slot.has_room());
    slot.clear();
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn skills_are_confirmed_for_a_second_and_one_generation() {
    let slot = SkillSlot::default();
    let set = Arc::new(SkillSet::default());
    assert!(slot.confirmed(1).is_none());
    slot.confirm(Arc::clone(&set), Instant::now(), 1);
    assert!(slot.confirmed(1).is_some() && slot.confirmed(2).is_none());
    tokio::time::advance(RECHECK_AFTER).await;
    assert!(slot.confirmed(1).is_none());
    assert!(slot.set().is_some(), "kept, to be confirmed again");
}
