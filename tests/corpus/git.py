"""Repositories of each shape that Git makes, and what Git says of them. Each case names the mount, which is the repository."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
CASES = []
CLOCK = [1_700_000_000]
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "HOME": str(ROOT), "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A. Uthor", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "C. Ommitter",
    "GIT_COMMITTER_EMAIL": "c@example.com", "GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always", "GIT_CONFIG_KEY_1": "init.defaultBranch", "GIT_CONFIG_VALUE_1": "main",
    "GIT_CONFIG_KEY_2": "core.quotePath", "GIT_CONFIG_VALUE_2": "false",
}


def git(place, *arguments, data=b"", **more):
    """The output of Git as bytes."""
    environment = ENVIRONMENT | {"GIT_AUTHOR_DATE": f"{CLOCK[0]} +0100", "GIT_COMMITTER_DATE": f"{CLOCK[0]} +0200"} | more
    command = ["git", "-C", str(ROOT / place), *arguments]
    done = subprocess.run(command, input=data, capture_output=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr.decode()}")
    return done.stdout


def says(place, *arguments):
    return git(place, *arguments).decode("utf-8", "replace").strip()


def make(place, *options):
    (ROOT / place).mkdir(parents=True)
    git(place, "init", "--quiet", *options)


def write(place, path, contents):
    file = ROOT / place / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(contents if isinstance(contents, bytes) else contents.encode())


def commit(place, message, *options, **more):
    CLOCK[0] += 60
    git(place, "add", "--all")
    git(place, *options, "commit", "--quiet", "--allow-empty", "-F", "-",
        data=message if isinstance(message, bytes) else message.encode(), **more)


def case(mount, reference, kind, expected, name=""):
    CASES.append({"name": f"{mount}: {name or kind}", "mount": mount, "reference": reference,
                  "expected": {"kind": kind, "value": expected}})


def encoded(path):
    return "".join(c if re.match(r"[A-Za-z0-9._~/-]", c) else "".join(f"%{b:02X}" for b in c.encode()) for c in path)


def segment(revision):
    return encoded(revision).replace("/", "%2F")


def patch(text):
    """A diff without what differs by taste: the lengths of IDs, and the function after the numbers of lines."""
    lines = [line for line in text.decode("utf-8", "replace").split("\n") if line and not line.startswith("index ")]
    return [re.sub(r"^(@@ [^@]* @@).*", r"\1", line) for line in lines]


def check_log(mount, place=None, reference="log?limit=1000", *arguments):
    ids = says(place or mount, "log", "--format=%H", *arguments).split()
    case(mount, reference, "ids", ids)


def check_trees(mount, place=None, revision="HEAD"):
    """All directories and all files of text."""
    place = place or mount
    kinds = {"blob": "file", "tree": "directory", "commit": "submodule"}
    listed = git(place, "ls-tree", "-r", "-t", "-z", revision).decode("utf-8", "replace").split("\0")
    directories = [""] + [line.split("\t", 1)[1] for line in listed if " tree " in line]
    for directory in directories:
        entries = []
        for line in git(place, "ls-tree", "-l", "-z", f"{revision}:{directory}").decode().split("\0"):
            if line:
                (mode, kind, _, size), name = line.split("\t", 1)[0].split(), line.split("\t", 1)[1]
                kind = "symlink" if mode == "120000" else kinds[kind]
                entries.append([name, kind, None if size == "-" else int(size)])
        case(mount, f"tree/{segment(revision)}/{encoded(directory)}", "entries", entries)
    for line in listed:
        if " blob " in line:
            path = line.split("\t", 1)[1]
            contents = git(place, "cat-file", "blob", f"{revision}:{path}")
            try:
                if b"\0" not in contents:
                    case(mount, f"tree/{segment(revision)}/{encoded(path)}", "text", contents.decode())
            except UnicodeDecodeError:
                pass


def check_commits(mount, place=None, revision="HEAD"):
    place = place or mount
    for line in says(place, "log", "--format=%H %P", revision).splitlines():
        one, *parents = line.split()
        author = says(place, "log", "-1", "--encoding=UTF-8", "--format=%an <%ae>", one)
        message = says(place, "log", "-1", "--encoding=UTF-8", "--format=%B", one)
        if parents:
            diff = git(place, "diff", "--no-renames", parents[0], one)
        else:
            diff = git(place, "diff-tree", "-p", "--root", "--no-commit-id", "--no-renames", one)
        case(mount, f"commits/{one}", "commit", {"author": author, "message": message, "patch": patch(diff)})


def check_diffs(mount, place=None, count=6):
    place = place or mount
    ids = says(place, "log", "--first-parent", "--format=%H").split()
    step = max(1, len(ids) // count)
    for new, old in zip(ids[::step], ids[step::step]):
        case(mount, f"diff/{old}..{new}", "patch", patch(git(place, "diff", old, new)))
        files = []
        numbers = git(place, "diff", "--numstat", "--no-renames", "-z", old, new).decode("utf-8", "replace").split("\0")
        for line in numbers:
            if line:
                added, deleted, path = line.split("\t")
                files.append([path, None if added == "-" else int(added), None if deleted == "-" else int(deleted)])
        case(mount, f"diff/{old}..{new}?format=stat&renames=no", "stat", files)


def check_blame(mount, place=None, revision="HEAD", paths=None):
    place = place or mount
    for path in paths or says(place, "ls-tree", "-r", "--name-only", revision).splitlines():
        contents = git(place, "cat-file", "-p", f"{revision}:{path}")
        if contents and b"\0" not in contents:
            lines = git(place, "blame", "--porcelain", revision, "--", path).decode("utf-8", "replace").splitlines()
            ids = [line[:12] for line in lines if re.match(r"[0-9a-f]{40,64} \d+ \d+", line)]
            case(mount, f"blame/{segment(revision)}/{encoded(path)}", "blame", ids)


def check_refs(mount, place=None):
    lines = says(place or mount, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    case(mount, "refs", "refs", sorted(line.split() for line in lines))


def check_all(mount, place=None):
    check_log(mount, place)
    check_trees(mount, place)
    check_commits(mount, place)
    check_diffs(mount, place)
    check_refs(mount, place)


def history(place, *options):
    """A history with merges, renames, modes, links, binary files and tags of each kind."""
    make(place, *options)
    lines = [f"line {n}\n" for n in range(120)]
    write(place, "README.md", "# A project\n\nIt has *text*.\n")
    write(place, "src/main.c", "".join(lines))
    write(place, "src/deep/er/a.txt", "a\n")
    write(place, "bin/data.bin", bytes(range(256)) * 8)
    write(place, "no newline", "one\ntwo")
    write(place, "empty", "")
    (ROOT / place / "link").symlink_to("src/main.c")
    commit(place, "Begin\n\nWith a body\nof two lines.")
    git(place, "tag", "light")
    for n in range(12):
        lines[n * 9] = f"changed in {n}\n"
        lines.insert(n * 7, f"\tif (n == {n}) {{\n\t\treturn {n};\n\t}}\n\n")
        write(place, "src/main.c", "".join(lines))
        if n % 4 == 0:
            write(place, f"src/part{n}.h", f"#define N {n}\n" * 5)
        commit(place, f"Change {n}")
    git(place, "mv", "src/part0.h", "include-part.h")
    commit(place, "Rename without a change")
    write(place, "include-part.h", "#define N 0\n" * 5 + "#define M\n")
    git(place, "mv", "include-part.h", "include part.h")
    commit(place, "Rename with a change")
    (ROOT / place / "README.md").chmod(0o755)
    write(place, "no newline", "one\n2")
    write(place, "bin/data.bin", bytes(range(255, -1, -1)))
    commit(place, "Change modes and ends")
    (ROOT / place / "link").unlink()
    write(place, "link", "a file now\n")
    (ROOT / place / "empty").unlink()
    commit(place, "A link becomes a file")
    git(place, "checkout", "--quiet", "-b", "topic/one", "HEAD~6")
    write(place, "topic.txt", "one\n")
    commit(place, "On a branch")
    git(place, "checkout", "--quiet", "-b", "topic/two", "HEAD~3")
    write(place, "two.txt", "two\n")
    commit(place, "On another branch")
    git(place, "checkout", "--quiet", "main")
    CLOCK[0] += 60
    git(place, "merge", "--quiet", "--no-ff", "-m", "Merge one", "topic/one")
    git(place, "checkout", "--quiet", "-b", "topic/three", "HEAD~1")
    write(place, "three.txt", "three\n")
    commit(place, "On a third branch")
    git(place, "checkout", "--quiet", "main")
    CLOCK[0] += 60
    git(place, "merge", "--quiet", "--no-ff", "-m", "An octopus", "topic/two", "topic/three")
    write(place, "src/main.c", "".join(lines[:60] + ["between\n"] + lines[60:]))
    commit(place, "The last change")
    git(place, "tag", "-a", "-m", "A tag", "v1.0")
    git(place, "tag", "-a", "-m", "A tag of a tag", "nested", "v1.0")
    git(place, "tag", "-a", "-m", "A tag of a tree", "of-tree", "HEAD^{tree}")


def copy(place, source, *options):
    git(".", "clone", "--quiet", "--mirror", *options, source, place)


def shapes():
    history("plain")
    check_all("plain")
    check_blame("plain")
    for path in ["src", "src/main.c", "README.md", "topic.txt", "src/deep/er", "include part.h"]:
        check_log("plain", None, f"log?limit=1000&path={encoded(path)}", "--", path)
    check_log("plain", None, "log?limit=1000&grep=change", "-i", "--grep=change")
    check_log("plain", None, "log?limit=1000&author=uthor", "-i", "--author=uthor")
    check_log("plain", None, "log?limit=1000&author=nobody", "--author=nobody")
    middle = says("plain", "log", "-1", "--format=%ct", "HEAD~8")
    check_log("plain", None, f"log?limit=1000&since={middle}", f"--since=@{middle}")
    check_log("plain", None, f"log?limit=1000&until={middle}", f"--until=@{middle}")
    base = says("plain", "merge-base", "topic/one", "topic/two")
    case("plain", "diff/topic%2Fone...topic%2Ftwo", "patch", patch(git("plain", "diff", base, "topic/two")))
    case("plain", "diff/light..v1.0?path=src", "patch", patch(git("plain", "diff", "light", "v1.0", "--", "src")))
    for spelled in ["nested", "v1.0^{}", "HEAD~1^3", "HEAD~2^2", "topic/one", "light"]:
        one = says("plain", "rev-parse", f"{spelled}^{{commit}}")
        case("plain", f"commits/{encoded(spelled)}", "begins", f"commit {one}\n")
    case("plain", "tree/HEAD/README.md/below", "words", ["not found"])

    copy("packed", "plain")
    git("packed", "repack", "-adfq", "--depth=50", "--window=50")
    git("packed", "pack-refs", "--all")
    git("packed", "commit-graph", "write", "--reachable", "--changed-paths")
    check_all("packed")
    check_blame("packed", paths=["src/main.c", "include part.h"])
    for path in ["src", "src/main.c", "topic.txt", "src/deep/er/a.txt"]:
        check_log("packed", None, f"log?limit=1000&path={encoded(path)}", "--", path)

    copy("first-index", "plain")
    git("first-index", "-c", "pack.indexVersion=1", "repack", "-adfq")
    check_log("first-index")
    check_trees("first-index")

    copy("many-packs", "plain")
    for n in range(4):
        blob = says("many-packs", "hash-object", "-w", "/dev/null")
        tree = git("many-packs", "mktree", data=f"100644 blob {blob}\tf{n}\n".encode()).decode().strip()
        made = says("many-packs", "commit-tree", "-m", f"In pack {n}", "-p", "HEAD", tree)
        git("many-packs", "update-ref", "HEAD", made)
        git("many-packs", "repack", "-dq")
    git("many-packs", "multi-pack-index", "write")
    git("many-packs", "commit-graph", "write", "--reachable", "--split", "--changed-paths")
    made = says("many-packs", "commit-tree", "-m", "After the graph", "-p", "HEAD", "HEAD^{tree}")
    git("many-packs", "update-ref", "HEAD", made)
    git("many-packs", "commit-graph", "write", "--reachable", "--split=no-merge", "--changed-paths")
    check_all("many-packs")
    check_log("many-packs", None, "log?limit=1000&path=f3", "--", "f3")

    git(".", "clone", "--quiet", "--shared", "plain", "borrowed")
    write("borrowed", "own.txt", "own\n")
    commit("borrowed", "Its own")
    check_all("borrowed")
    copy("borrowed-relative", "plain", "--shared")
    (ROOT / "borrowed-relative/objects/info/alternates").write_text("../../plain/.git/objects\n")
    check_log("borrowed-relative")
    copy("borrowed-outside", "plain", "--shared")
    (ROOT / "borrowed-outside/objects/info/alternates").write_text("/nowhere/else/objects\n")
    case("borrowed-outside", "commits/HEAD", "words", ["/nowhere/else/objects", "alternates"])

    git(".", "clone", "--quiet", "plain", "with-trees")
    git("with-trees", "worktree", "add", "--quiet", "-b", "side", str(ROOT / "linked"), "HEAD~3")
    write("linked", "linked.txt", "in the linked work tree\n")
    commit("linked", "In the linked work tree")
    check_all("linked")
    check_log("with-trees")
    case("with-trees", "", "words", ["\"work_trees\"", "refs/heads/side"])
    (ROOT / "astray").mkdir()
    (ROOT / "astray/.git").write_text("gitdir: /nowhere/else/.git/worktrees/astray\n")
    case("astray", "log", "words", ["/nowhere/else/.git/worktrees/astray", "grant"])

    make("inner")
    write("inner", "lib.c", "int lib;\n")
    commit("inner", "A library")
    make("outer")
    write("outer", "own.c", "int own;\n")
    git("outer", "submodule", "--quiet", "add", str(ROOT / "inner"), "third party/lib")
    commit("outer", "Use the library")
    case("outer", "tree/HEAD/third%20party/lib/lib.c", "text", "int lib;\n", "a file in a submodule")
    case("outer", "tree/HEAD/third%20party/lib", "words", ["\"submodule\"", says("inner", "rev-parse", "HEAD"), "lib.c"])
    check_commits("outer")

    for name, options in [("sha256", ["--object-format=sha256"]), ("reftable", ["--ref-format=reftable"]),
                          ("both", ["--object-format=sha256", "--ref-format=reftable"])]:
        history(name, *options)
        check_all(name)
        check_blame(name, paths=["src/main.c"])
        git(name, "gc", "--quiet")
        git(name, "commit-graph", "write", "--reachable", "--changed-paths")
        check_log(name, None, "log?limit=1000&path=topic.txt", "--", "topic.txt")
        check_trees(name, None, "topic/one")

    git("plain", "config", "uploadpack.allowFilter", "true")
    source = f"file://{ROOT}/plain"
    git(".", "clone", "--quiet", "--no-checkout", "--filter=blob:none", source, "no-blobs")
    check_log("no-blobs")
    case("no-blobs", "commits/HEAD", "words", ["M src/main.c", "partial clone", "git fetch --refetch"])
    case("no-blobs", "tree/HEAD/README.md", "words", ["absent", "promisor", "blob:none"])
    case("no-blobs", "", "words", ["partial clone"])
    git(".", "clone", "--quiet", "--no-checkout", "--filter=tree:0", source, "no-trees")
    check_log("no-trees")
    case("no-trees", "commits/HEAD", "words", ["The last change", "partial clone", "git fetch --refetch"])
    case("no-trees", "tree/HEAD", "words", ["absent", "tree:0"])

    git(".", "clone", "--quiet", "--depth=3", source, "shallow")
    check_log("shallow")
    check_commits("shallow")
    case("shallow", "", "words", ["shallow"])

    copy("replaced", "plain")
    old, new = says("replaced", "rev-parse", "HEAD~2"), says("replaced", "rev-parse", "HEAD~4")
    git("replaced", "replace", old, new)
    git("replaced", "pack-refs", "--all")
    check_log("replaced")
    case("replaced", "", "words", ["refs/replace"])
    copy("grafted", "plain")
    (ROOT / "grafted/info").mkdir(exist_ok=True)
    (ROOT / "grafted/info/grafts").write_text(f"{old} {says('plain', 'rev-parse', 'HEAD~9')}\n")
    check_log("grafted")

    make("encodings")
    for name, codec, text in [
        ("ISO-8859-1", "latin-1", "Jürgen änderte"), ("ISO-8859-15", "iso8859-15", "100 €"), ("Shift_JIS", "shift_jis", "日本語"),
        ("EUC-JP", "euc-jp", "日本語の文"), ("EUC-KR", "euc-kr", "한국어"), ("windows-1251", "cp1251", "Привет"),
        ("KOI8-R", "koi8-r", "Привет"), ("GB18030", "gb18030", "中文"), ("BIG5", "big5", "中文"), ("ISO-2022-JP", "iso2022_jp", "日本"),
        ("CP1252", "cp1252", "“quoted”"), ("latin1", "latin-1", "é"),
    ]:
        commit("encodings", text.encode(codec), "-c", f"i18n.commitEncoding={name}")
        one = says("encodings", "rev-parse", "HEAD")
        case("encodings", f"commits/{one}", "words", [f"\n    {text}\n"], name)
        case("encodings", "log?limit=1", "words", [f"\"subject\":\"{text}\""], name)
        CASES[-1]["reference"] = f"log?rev={one}&limit=1"
    commit("encodings", b"odd", "-c", "i18n.commitEncoding=klingon-1")
    case("encodings", "commits/HEAD", "words", ["\"klingon-1\" is not known"])

    make("empty")
    case("empty", "log", "words", ["no commits yet", "\"commits\""])
    case("empty", "", "words", ["refs/heads/main"])
    case("empty", "tree/HEAD", "words", ["no commits yet"])

    make("names")
    odd = [(b"a b", "a b"), (b"caf\xe9", "\"caf\\351\""), (b"new\nline", "\"new\\nline\""), (b"quo\"te", "\"quo\\\"te\""),
           (b"tab\t", "\"tab\\t\""), ("ünïcode".encode(), "ünïcode"), (b"\x01\x7f", "\"\\001\\177\""), (b"100%25", "100%25"),
           (b"a?b#c", "a?b#c"), (b"back\\slash", "\"back\\\\slash\""), ("日本.txt".encode(), "日本.txt"), (b"+plus", "+plus"),
           (b"-dash", "-dash"), (b"dir\xff/f\xfe", None)]
    records = b""
    for number, (name, _) in enumerate(odd):
        blob = git("names", "hash-object", "-w", "--stdin", data=f"file {number}\n".encode()).strip()
        records += b"100644 " + blob + b"\t" + name + b"\0"
    git("names", "update-index", "-z", "--index-info", data=records)
    CLOCK[0] += 60
    git("names", "commit", "--quiet", "-m", "Odd names")
    entries = [(b"dir\xff", ["\"dir\\377\"", "directory", None])]
    for number, (name, text) in enumerate(odd):
        contents = f"file {number}\n"
        if text:
            entries.append((name, [text, "file", len(contents)]))
        path = text or "\"dir\\377/f\\376\""
        if text and (b"\\" in name or b'"' in name):
            # Only control characters and bytes that are not UTF-8 need quotes in a reference.
            path = name.decode()
        case("names", f"tree/HEAD/{encoded(path)}", "text", contents, f"the name {name!r}")
    entries = [entry for _, entry in sorted(entries)]
    case("names", "tree/HEAD", "entries", entries)
    case("names", "commits/HEAD", "words", ["A \"caf\\351\"", "+++ \"b/new\\nline\"", "A ünïcode"])

    history("bare-source")
    git(".", "clone", "--quiet", "--bare", "bare-source", "bare")
    check_all("bare")


shapes()
json.dump(CASES, sys.stdout)
