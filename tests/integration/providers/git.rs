//! `plugins/git` over a clone of this repository and over repositories made for the tests, compared with the output of
//! Git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_tests::{Client, Era, Site, Stdio, places};
use serde_json::{Value, json};

use crate::providers::support::{self, empty_directory, fuel};

mod sizes;

const BASE: &str = "belljar://git/";

/// Runs Git without the settings of this machine. Returns its output as text.
fn git(work_dir: &Path, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&git_with(work_dir, arguments, b"")).trim_end().to_owned()
}

/// Like [`git`], with this input. Returns the output as bytes.
fn git_with(work_dir: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(work_dir)
        .args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"])
        .args(arguments);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "A. Uthor"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "C. Ommitter"),
        ("GIT_COMMITTER_EMAIL", "c@example.com"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    support::run(command, input)
}

/// A running belljar with the provider, and its client.
struct Served {
    site: Site,
    client: Client<Stdio>,
}

fn serve(repository: &Path) -> Served {
    // Allow a long time: the machine may be busy.
    let site = support::site("git", &format!("fs = {{ \"/repo\" = {repository:?} }}"));
    let client = site.stdio(Era::Stateless);
    Served { site, client }
}

impl Served {
    fn text(&mut self, reference: &str) -> String {
        self.client.text(&format!("{BASE}{reference}"))
    }

    /// The first part of a resource that is longer than a read. A second text says how to go on.
    fn first_part(&mut self, reference: &str) -> String {
        let reading = self.client.read(&format!("{BASE}{reference}")).expect(reference);
        let contents = reading["contents"].as_array().unwrap();
        assert!(contents.len() == 2 && contents[1]["text"].as_str().unwrap().contains("?bytes="), "{}", contents.len());
        contents[0]["text"].as_str().unwrap().to_owned()
    }

    fn json(&mut self, reference: &str) -> Value {
        support::json(&self.text(reference))
    }

    fn fails(&mut self, reference: &str) -> String {
        format!("{:?}", self.client.read(&format!("{BASE}{reference}")).expect_err(reference))
    }

    /// The ids of all commits of a log. Follows the log through all pages.
    fn log(&mut self, first: &str) -> Vec<String> {
        let mut ids = Vec::new();
        let mut next = first.to_owned();
        loop {
            let page = self.json(&next);
            ids.extend(
                page["commits"].as_array().unwrap().iter().map(|commit| commit["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(reference) => next = reference.to_owned(),
                None => return ids,
            }
        }
    }
}

/// Percent-encodes a path or a name for a reference.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[test]
fn answers_about_this_repository_match_the_output_of_git() {
    let work_dir = empty_directory("git-own");
    let clone = work_dir.join("clone");
    git(&work_dir, &["clone", "--quiet", &places::repository().to_string_lossy(), "clone"]);
    let mut served = serve(&clone);
    let head = git(&clone, &["rev-parse", "HEAD"]);

    let overview = served.json("");
    assert_eq!(overview["commit"]["id"], head.as_str());
    assert_eq!(overview["readme"], "tree/HEAD/README.md");

    let listed = git(&clone, &["ls-tree", "-r", "--name-only", "-z", "HEAD"]);
    let mut expected: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(|path| format!("{BASE}tree/HEAD/{}", encoded(path)))
        .collect();
    let mut uris: Vec<String> = served.client.uris().into_iter().filter(|uri| uri.contains("/tree/")).collect();
    let normal = |uri: &mut String| *uri = uri.replace("%2B", "+").replace("%40", "@");
    expected.iter_mut().chain(uris.iter_mut()).for_each(normal);
    assert_eq!(uris, expected);

    for (index, path) in
        listed.split('\0').filter(|path| !path.is_empty()).enumerate().filter(|(index, _)| index % 23 == 0)
    {
        let blob = git_with(&clone, &["cat-file", "blob", &format!("HEAD:{path}")], b"");
        let reading = served.client.read(&format!("{BASE}tree/{head}/{}", encoded(path))).unwrap();
        match reading["contents"][0]["text"].as_str() {
            Some(text) => assert_eq!(text.as_bytes(), blob, "{index} {path}"),
            None => assert_eq!(served.client.blob(&format!("{BASE}tree/{head}/{}", encoded(path))), blob, "{path}"),
        }
    }

    // Ignore the order of commits of the same second.
    let mut ours = served.log("log?limit=300");
    let mut theirs: Vec<String> = git(&clone, &["log", "--format=%H"]).lines().map(str::to_owned).collect();
    assert_eq!(ours.first(), theirs.first());
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    let mut ours = served.log("log?path=README.md&limit=20");
    let mut theirs: Vec<String> =
        git(&clone, &["log", "--format=%H", "--", "README.md"]).lines().map(str::to_owned).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);

    git(&clone, &["branch", "topic/one", "HEAD~2"]);
    git(&clone, &["tag", "-a", "-m", "A tag", "v0", "HEAD~3"]);
    for spelled in
        ["HEAD", "HEAD~3", "HEAD~2^1~1", "@", "topic/one", "refs/heads/topic/one~1", "v0", "v0^{}", &head[..9]]
    {
        let theirs = git(&clone, &["rev-parse", "--verify", "--quiet", &format!("{spelled}^{{commit}}")]);
        let shown = served.text(&format!("commits/{}", encoded(spelled)));
        assert_eq!(shown.lines().next(), Some(format!("commit {theirs}").as_str()), "{spelled}");
    }
    check_diffs_apply(&mut served, &clone);
    assert!(served.client.close().status.success());
    fs::remove_dir_all(&work_dir).unwrap();
}

/// The diff of a commit, applied to its parent, must give the tree of the commit.
fn check_diffs_apply(served: &mut Served, clone: &Path) {
    let commits = git(clone, &["log", "--no-merges", "--format=%H", "-n", "200"]);
    let index = clone.join("index-of-test");
    let mut applied = 0;
    for id in commits.lines().step_by(9) {
        let text = served.text(&format!("commits/{id}"));
        let theirs = git(clone, &["show", "--format=", "--name-status", "--no-renames", id]);
        let files = theirs.lines().map(|line| line.replace('\t', " ")).collect::<Vec<_>>();
        files.iter().for_each(|line| assert!(text.contains(line.as_str()), "{id}: {line}"));
        // Skip diffs that are shortened, shown in another form, or not of text: they cannot be applied.
        let Some(start) =
            text.find("\ndiff --git").filter(|_| !text.contains("\n[git: ") && !text.contains("\nBinary files"))
        else {
            continue;
        };
        let run = |arguments: &[&str], input: &[u8]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(clone).args(arguments).env("GIT_INDEX_FILE", &index);
            String::from_utf8(support::run(command, input)).unwrap()
        };
        run(&["read-tree", &format!("{id}^")], b"");
        run(&["apply", "--cached", "--unidiff-zero", "-"], &text.as_bytes()[start + 1..]);
        assert_eq!(run(&["write-tree"], b"").trim(), git(clone, &["rev-parse", &format!("{id}^{{tree}}")]), "{id}");
        applied += 1;
    }
    assert!(applied >= 3, "{applied}");
}

/// A repository of `count` commits. Each commit adds a file in one of 100 directories, and changes the file `all.txt`.
fn history(work_dir: &Path, count: usize) -> PathBuf {
    let repository = work_dir.join("history");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--bare", "."]);
    let mut stream = String::new();
    for n in 1..=count {
        let lines: String =
            (0..60).map(|line| format!("line {line} as of {}\n", if line == n % 60 { n } else { 0 })).collect();
        let message = format!("Change {n}\n\nfor the {n}th time");
        stream.push_str(&format!(
            "commit refs/heads/main\nmark :{n}\ncommitter C <c@example.com> {} +0200\ndata {}\n{message}\n",
            1_700_000_000 + n * 60,
            message.len()
        ));
        for (path, content) in
            [(format!("d{}/f{n}.txt", n % 100), format!("file {n}\n")), ("all.txt".to_owned(), lines)]
        {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{content}\n", content.len()));
        }
        if n % 1000 == 0 {
            stream.push_str(&format!("tag v{n}\nfrom :{n}\ntagger T <t@example.com> 1800000000 +0000\ndata 3\ntag\n"));
            stream.push_str(&format!("reset refs/heads/topic/{n}\nfrom :{n}\n\n"));
        }
    }
    git_with(&repository, &["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"], stream.as_bytes());
    repository
}

#[test]
fn the_cost_of_a_read_does_not_grow_with_the_history() {
    let work_dir = empty_directory("git-history");
    let repository = history(&work_dir, 10_000);
    git(&repository, &["repack", "-a", "-d", "-q", "--depth=50"]);
    git(&repository, &["pack-refs", "--all"]);
    let mut served = serve(&repository);

    let ids: Vec<String> = git(&repository, &["log", "--format=%H"]).lines().map(str::to_owned).collect();
    assert_eq!(served.log("log?limit=1000"), ids);
    // A page at the end costs as much as one at the beginning.
    let last = format!("log?from={}&limit=50", &ids[9_900]);
    let first = format!("log?from={}&limit=50", &ids[0]);
    served.json(&first);
    served.json(&last);
    let (of_first, of_last) = (fuel(&served.site, &first), fuel(&served.site, &last));
    assert!(of_last < of_first * 2, "{of_first} {of_last}");

    // The list is paged, and complete.
    let files = served.client.uris().iter().filter(|uri| uri.contains("/tree/HEAD/")).count();
    assert_eq!(files, 10_001);
    let directory = served.json("tree/v3000/d7");
    assert_eq!(directory["entries"].as_array().unwrap().len(), 30);
    assert_eq!(directory["entries"][0]["name"], "f1007.txt");
    assert_eq!(directory["entries"][0]["size"], 10);
    for n in [4_321usize, 8_000, 9_999] {
        let text = served.text(&format!("tree/HEAD~{}/all.txt", 10_000 - n));
        assert_eq!(
            text,
            format!("{}\n", git(&repository, &["cat-file", "blob", &format!("main~{}:all.txt", 10_000 - n)]))
        );
    }
    let refs = served.json("refs?limit=7");
    assert_eq!(refs["refs"].as_array().unwrap().len(), 7);
    let tag = served.json("refs?after=refs/tags/v8000")["refs"][0].clone();
    assert_eq!((&tag["name"], &tag["commit"]), (&json!("v9000"), &json!(ids[1_000])));
    let shown = served.text("commits/topic%2F2000");
    assert!(shown.contains("    Change 2000\n"), "{shown}");
    // One old commit changed this path. A page of the log may end before this commit; `log` follows the pages.
    let found = served.log("log?path=d1/f9001.txt");
    assert_eq!(found, [ids[999].clone()]);
    // A page may end before it is full, but all pages together are complete.
    assert_eq!(served.log("log?path=d5&limit=30").len(), 100);
    assert!(served.client.close().status.success());
    fs::remove_dir_all(&work_dir).unwrap();
}

/// A small repository of loose objects, with all special kinds of tree entries.
fn small(work_dir: &Path) -> PathBuf {
    let repository = work_dir.join("work");
    fs::create_dir_all(repository.join("dir")).unwrap();
    git(&repository, &["init", "--quiet"]);
    fs::write(repository.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(repository.join("dir/ü b.bin"), [0, 1, 2, 255]).unwrap();
    std::os::unix::fs::symlink("../../outside", repository.join("link")).unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "First"]);
    let id = git(&repository, &["rev-parse", "HEAD"]);
    git(&repository, &["update-index", "--add", "--cacheinfo", &format!("160000,{id},module")]);
    fs::write(repository.join("a.txt"), "one\n2\nthree").unwrap();
    fs::write(repository.join("large.txt"), "0123456789abcdef\n".repeat(500_000)).unwrap();
    fs::write(repository.join("latin.txt"), b"caf\xe9\n").unwrap();
    git(&repository, &["add", "a.txt", "large.txt", "latin.txt"]);
    git(&repository, &["commit", "--quiet", "-m", "Second"]);
    repository
}

#[test]
fn special_objects_are_described() {
    let work_dir = empty_directory("git-special");
    let repository = small(&work_dir);
    let mut served = serve(&repository);
    for packed in [false, true] {
        if packed {
            git(&repository, &["gc", "--quiet"]);
        }
        assert_eq!(served.text("tree/HEAD/link"), "../../outside");
        assert_eq!(served.json("tree/HEAD/module")["type"], "submodule");
        assert_eq!(served.client.blob(&format!("{BASE}tree/HEAD/dir/%C3%BC%20b.bin")), [0, 1, 2, 255]);
        let kinds: Vec<Value> =
            served.json("tree/HEAD")["entries"].as_array().unwrap().iter().map(|entry| entry["type"].clone()).collect();
        assert_eq!(kinds, ["file", "directory", "file", "file", "symlink", "submodule"]);
        // The file has 8,500,000 bytes, more than a read gives at once.
        let first = served.first_part("tree/HEAD/large.txt");
        assert_eq!((first.len() % 17, first.len() > 8_000_000), (0, true), "{}", first.len());
        assert_eq!(served.text("tree/HEAD/large.txt?bytes=8499983-"), "0123456789abcdef\n");
        assert_eq!(served.text("tree/HEAD/large.txt?lines=400000-400001"), "0123456789abcdef\n".repeat(2));
        assert_eq!(served.text("tree/HEAD/large.txt?offset=8499983&length=17"), "0123456789abcdef\n");
        let shown = served.text("commits/HEAD");
        assert!(shown.contains("-two\n-three\n+2\n+three\n\\ No newline at end of file\n"), "{shown}");
        assert!(shown.contains("+Subproject commit "), "{shown}");
        assert!(shown.contains("[git: not compared: the file has 8500000 bytes"), "{shown}");
        let latin =
            shown.split("diff --git ").find(|part| part.starts_with("a/latin.txt")).expect("the diff of `latin.txt`");
        assert!(latin.contains("[git: this file is not all UTF-8;") && latin.contains("+caf\u{fffd}\n"), "{latin}");
        for absent in
            ["tree/HEAD/none", "tree/none", "commits/none", "commits/HEAD~9", "tree/HEAD/a.txt/b", "commits/ffffffff"]
        {
            let error = served.client.read(&format!("{BASE}{absent}")).unwrap_err();
            assert_eq!(error.code, Era::Stateless.not_found(), "{absent}: {error:?}");
        }
        for invalid in ["commits/HEAD%5E%7Btree%7D", "commits/HEAD..main", "log?limit=0", "commits/HEAD@%7B1%7D"] {
            let error_text = served.fails(invalid);
            assert!(error_text.contains("-32602") && !error_text.contains("not found"), "{invalid}: {error_text}");
        }
    }
    assert!(served.client.close().status.success());
    fs::remove_dir_all(&work_dir).unwrap();
}

#[test]
fn hostile_repositories_are_refused() {
    let work_dir = empty_directory("git-hostile");
    let make = |name: &str| {
        let repository = work_dir.join(name);
        fs::create_dir_all(&repository).unwrap();
        fs::rename(small(&work_dir), &repository).unwrap();
        repository
    };
    let packed = |name: &str| {
        let repository = make(name);
        git(&repository, &["gc", "--quiet"]);
        let packs = fs::read_dir(repository.join(".git/objects/pack")).unwrap();
        let pack =
            packs.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|end| end == "pack"));
        let pack = pack.unwrap();
        for file in [pack.clone(), pack.with_extension("idx")] {
            let mut permissions = fs::metadata(&file).unwrap().permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
            fs::set_permissions(&file, permissions).unwrap();
        }
        (repository, pack)
    };
    let assert_refused = |repository: &Path, reference: &str, why: &str| {
        let mut served = serve(repository);
        let error_text = served.fails(reference);
        assert!(error_text.contains(why) && !error_text.contains("trap"), "{}: {error_text}", repository.display());
        assert!(served.client.close().status.success());
    };

    let (repository, pack) = packed("corrupt");
    let mut bytes = fs::read(&pack).unwrap();
    bytes.iter_mut().skip(12).for_each(|byte| *byte ^= 0x55);
    fs::write(&pack, bytes).unwrap();
    assert_refused(&repository, "commits/HEAD", "damaged");

    let (repository, pack) = packed("cut");
    let index = pack.with_extension("idx");
    let bytes = fs::read(&index).unwrap();
    fs::write(&index, &bytes[..bytes.len() / 2]).unwrap();
    assert_refused(&repository, "commits/HEAD", "truncated");
    fs::write(&index, b"").unwrap();
    assert_refused(&repository, "commits/HEAD", "truncated");

    // Flip single bytes of a pack, one at a time. Each read must fail, or return the true contents.
    let (repository, pack) = packed("flipped");
    let bytes = fs::read(&pack).unwrap();
    let mut served = serve(&repository);
    // Ignore the lines about files without a diff. The provider reads only the stored size of these files, and shows
    // the size.
    let checked = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with("[git: not compared")).map(|line| format!("{line}\n")).collect()
    };
    let (a, commit) = (checked(&served.text("tree/HEAD/a.txt")), checked(&served.text("commits/HEAD")));
    for at in (12..bytes.len().min(700)).step_by(13) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0xff;
        fs::write(&pack, flipped).unwrap();
        for (reference, truth) in [("tree/HEAD/a.txt", &a), ("commits/HEAD", &commit)] {
            match served.client.read(&format!("{BASE}{reference}")) {
                Ok(reading) => {
                    let text = reading["contents"][0]["text"].as_str().expect("a text");
                    assert_eq!(&checked(text), truth, "{at}");
                }
                Err(error) => assert!(!format!("{error:?}").contains("trap"), "{at}: {error:?}"),
            }
        }
    }
    assert!(served.client.close().status.success());

    let repository = make("loop");
    fs::write(repository.join(".git/refs/heads/a"), "ref: refs/heads/b\n").unwrap();
    fs::write(repository.join(".git/refs/heads/b"), "ref: refs/heads/a\n").unwrap();
    assert_refused(&repository, "commits/a", "symbolic references");
    fs::write(repository.join(".git/refs/heads/out"), "ref: ../../../../etc/passwd\n").unwrap();
    let mut served = serve(&repository);
    served.fails("commits/out");
    assert_eq!(served.json("refs")["refs"].as_array().unwrap().len(), 1);
    assert!(served.client.close().status.success());

    // A loose object that unpacks to far more bytes than its file has.
    let repository = make("bomb");
    fs::write(repository.join("bomb"), vec![b'a'; 40 << 20]).unwrap();
    git(&repository, &["add", "bomb"]);
    git(&repository, &["commit", "--quiet", "-m", "Bomb"]);
    for _ in 0..2 {
        let mut served = serve(&repository);
        assert!((1 << 20..=8 << 20).contains(&served.first_part("tree/HEAD/bomb").len()));
        assert_eq!(served.text("tree/HEAD/bomb?bytes=41943030-"), "a".repeat(10));
        assert!(served.client.close().status.success());
        git(&repository, &["gc", "--quiet"]);
    }

    let repository = make("linked");
    fs::rename(repository.join(".git"), work_dir.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(work_dir.join("elsewhere"), repository.join(".git")).unwrap();
    assert_refused(&repository, "commits/HEAD", "symbolic link");
    fs::remove_file(repository.join(".git")).unwrap();
    fs::write(repository.join(".git"), "gitdir: ../elsewhere\n").unwrap();
    assert_refused(&repository, "commits/HEAD", "is a file");
    fs::remove_file(repository.join(".git")).unwrap();
    assert_refused(&repository, "commits/HEAD", "not a Git repository");

    let repository = work_dir.join("borrowed");
    git(&work_dir, &["clone", "--quiet", "--shared", "--bare", "elsewhere", "borrowed"]);
    assert_refused(&repository, "commits/HEAD", "alternates");
    let repository = work_dir.join("future");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    git(&repository, &["config", "core.repositoryFormatVersion", "1"]);
    git(&repository, &["config", "extensions.fromTheFuture", "true"]);
    assert_refused(&repository, "", "fromthefuture");
    fs::remove_dir_all(&work_dir).unwrap();
}

#[test]
fn cyclic_and_oversized_deltas_are_refused() {
    let work_dir = empty_directory("git-delta");
    let repository = work_dir.join("r");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--bare", "."]);
    // Hand-made packs that Git would not write: two deltas of each other, and one that claims a result of 1 GiB.
    let program = r"
import hashlib, os, struct, sys, zlib
work_dir = sys.argv[1]
def header(kind, size):
    first = kind << 4 | size & 15; size >>= 4; out = b''
    while size: out += bytes([first | 128]); first = size & 127; size >>= 7
    return out + bytes([first])
def varint(n):
    out = b''
    while n > 127: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])
a, b, c, base = (bytes([n]) * 20 for n in (0x11, 0x22, 0x33, 0x44))
delta = varint(3) + varint(3) + bytes([0x90, 3])
bomb = varint(65536) + varint(1 << 30) + bytes([0x80]) * (1 << 14)
entries = [(a, header(7, len(delta)) + b + zlib.compress(delta)), (b, header(7, len(delta)) + a + zlib.compress(delta)),
    (c, header(7, len(bomb)) + base + zlib.compress(bomb)), (base, header(3, 65536) + zlib.compress(b'x' * 65536))]
pack = b'PACK' + struct.pack('>II', 2, len(entries)); offsets = {}
for name, data in entries: offsets[name] = len(pack); pack += data
pack += hashlib.sha1(pack).digest()
names = sorted(offsets); fan = [sum(n[0] <= i for n in names) for i in range(256)]
idx = b'\xfftOc' + struct.pack('>I', 2) + struct.pack('>256I', *fan) + b''.join(names) + bytes(4 * len(names))
idx += b''.join(struct.pack('>I', offsets[n]) for n in names) + pack[-20:]
idx += hashlib.sha1(idx).digest()
open(os.path.join(work_dir, 'objects/pack/pack-1.pack'), 'wb').write(pack); open(os.path.join(work_dir, 'objects/pack/pack-1.idx'), 'wb').write(idx)
";
    let mut command = Command::new("python3");
    command.args(["-c", program]).arg(&repository);
    support::run(command, b"");
    let mut served = serve(&repository);
    assert!(served.fails(&format!("commits/{}", "11".repeat(20))).contains("cycle"));
    assert!(served.fails(&format!("commits/{}", "33".repeat(20))).contains("the limit for unpacking"));
    // The object exists, but its contents do not match its hash.
    assert!(served.fails(&format!("commits/{}", "44".repeat(20))).contains("damaged"));
    assert!(served.client.close().status.success());
    fs::remove_dir_all(&work_dir).unwrap();
}
