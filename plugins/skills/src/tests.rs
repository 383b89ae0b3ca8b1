//! Tests of the provider over temporary directories.

use std::fs;
use std::path::Path as FilePath;

use belljar_guest::Body;
use belljar_tree::Directory;

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    skills: SkillDirectory,
}

impl Fixture {
    fn new(ignore: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let grants = vec![("/skills".to_owned(), Directory::at(dir.path()).unwrap())];
        Fixture { skills: SkillDirectory { tree: Tree::new(grants, ignore).unwrap() }, dir }
    }

    /// Two skills, one of them within a group and with another skill below it, and files that belong to none.
    fn filled() -> Self {
        let fixture = Fixture::new("*.tmp");
        fixture.write("greeting/SKILL.md", "---\nname: greeting\ndescription: How to greet.\n---\nRead words/en.md.\n");
        fixture.write("greeting/words/en.md", "Hello\n");
        fixture.write("greeting/run.sh", "#!/bin/sh\n");
        fixture.write("greeting/picture.png", b"\x89PNG\r\n\x1a\n\xff");
        fixture.write("greeting/draft.tmp", "x");
        fixture.write("greeting/.secret", "x");
        fixture.write("group/pdf-forms/SKILL.md", "---\nname: pdf-forms\n---\n");
        fixture.write("group/pdf-forms/inner/SKILL.md", "---\nname: inner\n---\n");
        fixture.write("README.md", "not a skill");
        fixture.write("group/notes.md", "not a skill");
        fixture.write("Bad Name/SKILL.md", "---\nname: bad\n---\n");
        fixture.write("SKILL.md", "no directory of its own");
        fixture
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(FilePath::new("/"))).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn listed(&self) -> Vec<String> {
        let page = self.skills.list_resources(None).unwrap();
        page.resources.into_iter().map(|resource| resource.reference).collect()
    }
}

const GREETING: [&str; 4] = ["greeting/SKILL.md", "greeting/picture.png", "greeting/run.sh", "greeting/words/en.md"];

#[test]
fn a_skill_has_all_files_below_its_directory() {
    let fixture = Fixture::filled();
    let page = fixture.skills.list_skills(None).unwrap();
    assert_eq!(page.next_cursor, None);
    let roots: Vec<&str> = page.skills.iter().map(|skill| skill.root.as_str()).collect();
    assert_eq!(roots, ["greeting", "group/pdf-forms", "group/pdf-forms/inner"]);
    assert_eq!(page.skills[0].files, GREETING);
    assert_eq!(page.skills[1].files, ["group/pdf-forms/SKILL.md", "group/pdf-forms/inner/SKILL.md"]);
    for skill in &page.skills {
        assert_eq!(fixture.skills.get_skill(&skill.root).as_ref(), Ok(skill));
        for file in &skill.files {
            assert!(fixture.skills.read(file).is_ok(), "{file}");
        }
    }
    for absent in ["", "group", "greeting/words", "Bad%20Name", "none", "greeting/SKILL.md"] {
        assert_eq!(fixture.skills.get_skill(absent), Err(Error::NotFound), "{absent}");
    }
}

#[test]
fn files_of_skills_are_listed_and_no_others() {
    let fixture = Fixture::filled();
    let others = ["group/pdf-forms/SKILL.md", "group/pdf-forms/inner/SKILL.md"];
    assert_eq!(fixture.listed(), [GREETING.as_slice(), &others].concat());
    let page = fixture.skills.list_resources(None).unwrap();
    let manifest = &page.resources[0];
    assert_eq!((manifest.name.as_str(), manifest.description.as_deref()), ("greeting", Some("How to greet.")));
    assert_eq!(manifest.mime_type.as_deref(), Some("text/markdown"));
    for hidden in
        ["README.md", "group/notes.md", "SKILL.md", "greeting/draft.tmp", "greeting/.secret", "greeting", "greeting/"]
    {
        assert_eq!(fixture.skills.read(hidden), Err(Error::NotFound), "{hidden}");
    }
    assert!(matches!(fixture.skills.read("greeting/SKILL.md?x=1"), Err(Error::Invalid(_))));
    assert_eq!(fixture.skills.read("none?x=1"), Err(Error::NotFound));
}

#[test]
fn the_bytes_of_a_file_are_unchanged() {
    let fixture = Fixture::filled();
    let odd = "\u{feff}---\r\nname: odd\r\n---\r\n\0";
    fixture.write("odd/SKILL.md", odd);
    let one = |reference: &str| fixture.skills.read(reference).unwrap().contents.remove(0);
    assert_eq!(one("odd/SKILL.md").body, Body::Text(odd.to_owned()));
    let picture = one("greeting/picture.png");
    assert_eq!(picture.body, Body::Blob(b"\x89PNG\r\n\x1a\n\xff".to_vec()));
    assert_eq!(picture.mime_type.as_deref(), Some("image/png"));
    fixture.write("odd/notes.png", "text with the name of a picture");
    assert_eq!(one("odd/notes.png").mime_type.as_deref(), Some("text/plain"));
    assert_eq!(one("greeting/run.sh").mime_type.as_deref(), Some("application/x-sh"));
}

#[test]
fn a_skill_that_is_too_large_is_left_out() {
    let fixture = Fixture::filled();
    for n in 0..512 {
        fixture.write(&format!("large/{n}.txt"), "x");
    }
    fixture.write("large/SKILL.md", "---\nname: large\n---\n");
    let page = fixture.skills.list_skills(None).unwrap();
    assert!(page.skills.iter().all(|skill| skill.root != "large"), "{page:?}");
    assert!(
        matches!(fixture.skills.get_skill("large"), Err(Error::Failed(why)) if why.contains("more than 512 files"))
    );
    fs::remove_file(fixture.dir.path().join("large/0.txt")).unwrap();
    assert_eq!(fixture.skills.get_skill("large").map(|skill| skill.files.len()), Ok(512));
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let fixture = Fixture::new("");
    for n in 0..120 {
        fixture.write(&format!("skill-{n:03}/SKILL.md"), "---\n---\n");
        fixture.write(&format!("skill-{n:03}/more/a.md"), "a");
    }
    let (mut roots, mut cursor) = (Vec::new(), None);
    loop {
        let page = fixture.skills.list_skills(cursor.as_deref()).unwrap();
        assert!(page.skills.len() <= SKILLS);
        roots.extend(page.skills.into_iter().map(|skill| skill.root));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..120).map(|n| format!("skill-{n:03}")).collect();
    assert_eq!(roots, expected);
    assert!(matches!(fixture.skills.list_skills(Some("skill-001")), Err(Error::Invalid(_))));
    assert!(matches!(fixture.skills.list_resources(Some("skill-001")), Err(Error::Invalid(_))));
}

#[test]
fn the_mount_itself_lists_the_skills() {
    let fixture = Fixture::filled();
    let Body::Text(text) = fixture.skills.read("").unwrap().contents.remove(0).body else { panic!("a blob") };
    assert!(text.starts_with("# Skills\n\n- [greeting](greeting/SKILL.md): How to greet.\n- [pdf-forms]("), "{text}");
    let Body::Text(text) = Fixture::new("").skills.read("").unwrap().contents.remove(0).body else { panic!("a blob") };
    assert!(text.contains("a skill is a directory with a SKILL.md"), "{text}");
}

#[test]
fn revisions_change_with_the_files() {
    let fixture = Fixture::filled();
    let of = |reference: &str| fixture.skills.resource_revision(reference).unwrap();
    let (list, manifest, other) = (of(""), of("greeting/SKILL.md"), of("greeting/run.sh"));
    fixture.write("greeting/SKILL.md", "---\nname: greeting\n---\nshorter\n");
    assert!(of("greeting/SKILL.md") != manifest && of("") != list && of("greeting/run.sh") == other);
    assert_eq!(fixture.skills.resource_revision("README.md"), Err(Error::NotFound));
}

#[test]
fn names_of_skills_are_checked() {
    for good in ["a/SKILL.md", "x/pdf-forms-2/SKILL.md"] {
        assert!(root_of(good).is_some(), "{good}");
    }
    let long = format!("{}/SKILL.md", "a".repeat(65));
    for bad in
        ["SKILL.md", "A/SKILL.md", "-a/SKILL.md", "a-/SKILL.md", "a--b/SKILL.md", "a_b/SKILL.md", "ä/SKILL.md", &long]
    {
        assert_eq!(root_of(bad), None, "{bad}");
    }
}
