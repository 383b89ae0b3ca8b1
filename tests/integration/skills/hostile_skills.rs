//! Hostile rows about skills: providers that name files of others, files without end, frontmatter that parsers read in
//! different ways, and clients that ask for what is no skill.

use serde_json::{Value, json};

use crate::expect::cut;
use crate::row::{Guest, Row, RunMode, Stops, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::listed;

/// A row with the guest `tests/guests/skills`, in a process of its own. `SKILLS` names the attack.
fn skills(id: &'static str, attack: &'static str, how: &str) -> Row {
    with(id, attack, &format!("SKILLS = \"{how}\""))
}

fn with(id: &'static str, attack: &'static str, env: &str) -> Row {
    let mut row = hostile_guest(id, attack).config(&format!("env = {{ {env} }}")).run_mode(RunMode::Stdio);
    if let Some(mount) = row.mounts.first_mut() {
        mount.guest = Guest::Built("guest_skills");
    }
    row
}

/// A row whose `SKILL.md` has this frontmatter.
fn front(id: &'static str, attack: &'static str, yaml: &str) -> Row {
    let file = format!("---\n{yaml}\n---\n");
    let row = with(id, attack, &format!("SKILLS = \"front\", FRONT = {}", json!(file)));
    row.act(|context| left_out(context)).stopped_by(&["frontmatter"])
}

/// The page of the row's own mount.
fn page(context: &RowContext<'_>) -> Value {
    context.request("skills/list", json!({})).expect("a list of skills")
}

/// The URIs of the skills of the row's mount.
fn own(context: &RowContext<'_>) -> Vec<String> {
    let own = format!("skill://{}/", context.name(""));
    let all = listed(context.stdio(), "skills/list", "skills", 40);
    let all = all.iter().filter_map(|skill| skill["uri"].as_str());
    all.filter(|uri| uri.starts_with(&own)).map(str::to_owned).collect()
}

/// The files of the row's skill.
fn files(skill: &Value) -> Vec<&str> {
    skill["resources"].as_array().into_iter().flatten().filter_map(|file| file["uri"].as_str()).collect()
}

/// Asserts that the list is answered without the skill, and names it.
fn left_out(context: &RowContext<'_>) -> String {
    assert_eq!(own(context), [""; 0], "the skill is listed");
    let notices = page(context)["_meta"]["dev.belljar/notices"].clone();
    let about = notices.as_array().into_iter().flatten().find(|notice| notice["mount"] == *context.name(""));
    let reason = about.unwrap_or_else(|| panic!("no notice: {notices}"))["reason"].as_str().unwrap_or_default();
    let get = context.request("skills/get", json!({ "uri": uri(context, "a/pdf/SKILL.md") }));
    let error = get.expect_err("skills/get gives the skill");
    assert!([-32602, -32603].contains(&error.code), "{error}");
    cut(reason)
}

fn uri(context: &RowContext<'_>, reference: &str) -> String {
    format!("skill://{}/{reference}", context.name(""))
}

/// What stops a wrong name.
const NAMES: &str = "the name is compared with the directory, and again in the finished entry";

pub(crate) fn rows() -> Vec<Row> {
    let lines = |count: usize, line: &str| line.repeat(count);
    vec![
        skills("SKILL-01", "the bytes of a file change between the list and each read", "flip")
            .act(|context| {
                let digest = |skill: &Value| {
                    let files = skill["resources"].as_array().cloned().unwrap_or_default();
                    files.into_iter().find(|file| file["uri"].as_str().unwrap_or_default().ends_with("x.txt"))
                };
                let get = || {
                    let answer = context.request("skills/get", json!({ "uri": uri(context, "a/pdf/SKILL.md") }));
                    answer.expect("the skill")["skill"].clone()
                };
                let before = digest(&get()).expect("the file");
                context.read_uri(&uri(context, "a/pdf/x.txt")).expect("the file");
                let after = digest(&get()).expect("the file");
                assert_ne!(before, after, "the entry is served although the bytes differ");
                "the entry is dropped at once".to_owned()
            })
            .stopped(Stops::Structure("each read is compared with the digest that is kept")),
        front("SKILL-02", "a YAML bomb of anchors and aliases", &{
            let mut yaml = "name: pdf\ndescription: b\nl0: &l0 [x, x, x, x, x, x, x, x, x]".to_owned();
            for level in 1..=9 {
                let alias = lines(9, &format!("*l{}, ", level - 1));
                yaml += &format!("\nl{level}: &l{level} [{}]", alias.trim_end_matches(", "));
            }
            yaml
        }),
        front(
            "SKILL-03",
            "frontmatter that is nested a hundred levels deep",
            &format!("name: pdf\ndescription: b\nx: {}{}", lines(100, "["), lines(100, "]")),
        ),
        front(
            "SKILL-04",
            "frontmatter of 66 KiB",
            &format!("name: pdf\ndescription: b\nx: {}", lines(66 << 10, "y")),
        )
        .keeps(32),
        front("SKILL-05", "the same key twice: parsers take the first or the last", "name: pdf\ndescription: b\nname: pdf"),
        front("SKILL-06", "tags that make parsers construct objects", "name: pdf\ndescription: !!python/object:os.system b"),
        front(
            "SKILL-07",
            "hidden and reordering characters in a description, and an escape for a terminal",
            "name: pdf\ndescription: \"good \\u202e\\e[31m\"",
        ),
        front("SKILL-08", "a name with path segments", "name: ../pdf\ndescription: b").stopped(Stops::Structure(NAMES)),
        with("SKILL-09", "a name of another skill", "SKILLS = \"front\", FRONT = \"---\\nname: other\\ndescription: b\\n---\\n\"")
            .act(left_out)
            .stopped(Stops::Structure(NAMES)),
        skills("SKILL-10", "a skill of 513 files", "many").act(left_out).stopped_by(&["skills"]),
        skills("SKILL-11", "a skill of 17 MiB", "large").act(left_out).stopped_by(&["skills"]).keeps(64).peak(400),
        skills("SKILL-12", "a skill whose files belong to another mount", "inner")
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://skill-12/a/pdf/inner/\"")
            .act(left_out)
            .stopped_by(&["namespace"]),
        skills("SKILL-13", "references with dot segments", "dots")
            .act(left_out)
            .stopped(Stops::Structure("references are checked when they are named, and again in the finished entry")),
        skills("SKILL-14", "files outside of the skill's own directory", "outside")
            .act(left_out)
            .stopped(Stops::Structure("a file of a skill is named below its directory")),
        skills("SKILL-15", "a list of skills whose cursors never end", "endless")
            .mount("circle", Guest::Built("guest_skills"))
            .config("env = { SKILLS = \"circle\" }")
            .settings("list-time = \"20s\"")
            .act(|context| {
                let page = page(context);
                let notices = page["_meta"]["dev.belljar/notices"].to_string();
                assert!(notices.contains("no progress") && notices.contains("gave back the cursor"), "{notices}");
                let circle = format!("skill://{}/", context.name("circle"));
                let all = page["skills"].as_array().cloned().unwrap_or_default();
                assert!(all.iter().any(|skill| skill["uri"].as_str().unwrap_or_default().starts_with(&circle)));
                "cut, with the skills so far".to_owned()
            })
            .stopped_by(&["cursor"]),
        skills("SKILL-16", "names of another mount's files, and directories that are no skill", "")
            .mount("other", Guest::Built("guest_hostile"))
            .act(|context| {
                let other = context.name("other");
                for reference in [
                    format!("skill://{other}/ok"),
                    uri(context, &format!("../{other}/ok")),
                    uri(context, "a/%2e%2e/%2e%2e/x"),
                    uri(context, "a/pdf/..%2f..%2fx"),
                    format!("skill://{}@{other}/ok", context.name("")),
                    format!("SKILL://{other}/ok"),
                ] {
                    context.read_uri(&reference).expect_err(&reference);
                }
                for directory in ["", "a", "a/pdf/", "a/pdf/..", "a/pdf/x.txt", "a/pdf/%2e%2e", "../..", "c"] {
                    let asked = json!({ "uri": uri(context, directory) });
                    let error = context.request("resources/directory/read", asked).expect_err(directory);
                    assert_eq!(error.code, -32602, "{directory}: {error}");
                }
                let error = context.request("resources/directory/read", json!({ "uri": format!("skill://{other}/") }));
                assert_eq!(error.expect_err("a directory").code, -32602);
                "refused".to_owned()
            })
            .stopped(Stops::Structure("only mounts with skills have such names, and each name is routed again")),
        skills("SKILL-17", "a skill of which policy hides one file", "")
            .settings(
                "[[allow]]\nwho = { user = \"local\" }\nwhat = \"belljar://**\"\n[[deny]]\nwho = { user = \"local\" }\nwhat = \"belljar://skill-17/a/pdf/x.txt\"",
            )
            .act(|context| {
                assert_eq!(own(context), [uri(context, "b/SKILL.md")], "the listed skills");
                let said = page(context).to_string();
                assert!(!said.contains("a/pdf"), "{}", cut(&said));
                let answer = |root: &str| {
                    let asked = json!({ "uri": uri(context, &format!("{root}/SKILL.md")) });
                    let get = context.request("skills/get", asked).expect_err(root);
                    let directory = json!({ "uri": uri(context, root) });
                    let read = context.request("resources/directory/read", directory).expect_err(root);
                    format!("{get} {read}").replace(root, "ROOT")
                };
                assert_eq!(answer("a/pdf"), answer("a/xyz"), "a hidden skill differs from none");
                "it looks as if it were not there".to_owned()
            })
            .stopped_by(&["policy"]),
        with(
            "SKILL-18",
            "a secret in a file of a skill: its digest would confirm a guess",
            "SKILLS = \"secret\", TEXT = \"${secret:word}\"",
        )
        .settings("[secrets]\nword = { env = \"WORD\" }")
        .shell("export WORD='SecRet-Tok3n-Abcdefghij'")
        .act(|context| {
            let get = context.request("skills/get", json!({ "uri": uri(context, "a/pdf/SKILL.md") })).expect("the skill");
            assert_eq!(files(&get["skill"]).len(), 2);
            let reading = context.read_uri(&uri(context, "a/pdf/x.txt")).expect("the file");
            let text = reading["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
            assert!(!text.contains("Tok3n"), "the file shows the secret: {text}");
            let size = &get["skill"]["resources"][1]["size"];
            assert_eq!(*size, text.len(), "the digest is of other bytes than those that clients get");
            "the digest is of the masked bytes".to_owned()
        })
        .stopped_by(&["redact"]),
    ]
}
