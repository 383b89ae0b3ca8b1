//! Tests of the list of logs, templates, completion and settings.

use super::*;

#[test]
fn each_log_is_listed_once_and_can_be_read() {
    let fixture = Fixture::new();
    for name in [
        "app.log",
        "app.log.1",
        "syslog",
        "syslog.1",
        "nginx/access.log",
        "nginx/access.log-20261120",
        "a b/100%.log",
        "deep/er/x.out",
        "empty.log",
    ] {
        fixture.write(name, if name == "empty.log" { "" } else { "x\n" });
    }
    fixture.write_packed("old.log.3.gz", "x\n");
    for name in [".hidden", ".git/x.log", "app.pid", "core.zip", "x.journal"] {
        fixture.write(name, "x\n");
    }
    let listed = fixture.listed();
    let expected =
        ["a%20b/100%25.log", "app.log", "deep/er/x.out", "empty.log", "nginx/access.log", "old.log", "syslog"];
    assert_eq!(listed, expected);
    for reference in &listed {
        fixture.text(reference);
    }
    let page = fixture.logs.list_resources(None).unwrap();
    let expected =
        Resource::new("nginx/access.log").name("access.log").mime_type("text/plain").description("The last 200 lines");
    assert_eq!(page.resources[4], expected);
}

#[test]
fn binary_files_are_neither_listed_nor_read() {
    let fixture = Fixture::new();
    fixture.write("wtmp", [0_u8, 1, 2, 3, 0, 0].repeat(500));
    fixture.write("random", (0..4000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    fixture.write("holes", [0_u8; 5000]);
    // Truncated under a program that keeps its write position.
    fixture.write("hole.log", [vec![0_u8; 5000], b"after the hole\n".to_vec()].concat());
    fixture.write("color.log", "\x1b[31mred\x1b[0m\n".repeat(100));
    fixture.write("latin.log", b"gr\xfcn\n".repeat(100));
    assert_eq!(fixture.listed(), ["color.log", "hole.log", "latin.log"]);
    assert_eq!(fixture.text("hole.log"), "after the hole\n");
    let Err(Error::Failed(why)) = fixture.logs.read("wtmp") else { panic!("read") };
    assert!(why.contains("\"wtmp\" is binary"), "{why}");
}

#[test]
fn absent_logs_are_not_found() {
    let fixture = Fixture::with("secret*, private/*.log", None, None);
    for name in ["a/app.log", "secret.log", "private/x.log", ".hidden/x.log"] {
        fixture.write(name, "x\n");
    }
    assert_eq!(fixture.listed(), ["a/app.log"]);
    for reference in [
        "b.log",
        "a",
        "a/",
        "a/b.log",
        "a//app.log",
        "a%2Fapp.log",
        "a/app.log/",
        "a/app.log/x",
        "secret.log",
        "private/x.log",
        ".hidden/x.log",
        "%00",
        "by-date",
        "by-date/2026-11-21",
    ] {
        assert_eq!(fixture.logs.read(reference), Err(Error::NotFound), "{reference}");
        assert_eq!(fixture.logs.resource_revision(reference), Err(Error::NotFound), "{reference}");
    }
    for reference in ["../x", "a/../a/app.log", "%2e%2e/x", "a/app.log?lines=x", "by-date/tomorrow/a/app.log"] {
        assert!(matches!(fixture.logs.read(reference), Err(Error::Invalid(_))), "{reference}");
    }
}

#[test]
fn links_to_files_are_followed_and_pipes_are_skipped() {
    let fixture = Fixture::new();
    fixture.write("real/app.log", "x\n");
    std::os::unix::fs::symlink("real/app.log", fixture.path("link.log")).unwrap();
    std::os::unix::fs::symlink("nowhere", fixture.path("dangling.log")).unwrap();
    std::os::unix::fs::symlink(".", fixture.path("real/up")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(fixture.path("pipe.log")).status();
    assert!(status.is_ok_and(|status| status.success()));
    assert_eq!(fixture.listed(), ["link.log", "real/app.log"]);
    assert_eq!(fixture.text("link.log"), "x\n");
    // Opening it would block for ever.
    assert_eq!(fixture.logs.read("pipe.log"), Err(Error::NotFound));
}

#[test]
fn each_of_several_grants_is_a_first_segment() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(a.path().join("1.log"), "a\n").unwrap();
    fs::create_dir(b.path().join("sub")).unwrap();
    fs::write(b.path().join("sub/2.log"), "b\n").unwrap();
    let grant = |name: &str, path: &Path| (name.to_owned(), path.to_owned());
    let over = |grants| Store::new(grants, "");
    let store = over(vec![grant("/app", a.path()), grant("/var/log", b.path())]).unwrap();
    let logs = Logs::over(store, None, None, NOON.parse().unwrap()).unwrap();
    let listed: Vec<String> =
        logs.list_resources(None).unwrap().resources.into_iter().map(|resource| resource.reference).collect();
    assert_eq!(listed, ["app/1.log", "var-log/sub/2.log"]);
    assert!(listed.iter().all(|reference| logs.read(reference).is_ok()));
    for reference in ["1.log", "other/1.log", "app/2.log"] {
        assert_eq!(logs.read(reference), Err(Error::NotFound), "{reference}");
    }
    assert!(over(vec![grant("/a/b", a.path()), grant("/a-b", b.path())]).is_err());
    let Err(Error::Denied(why)) = over(Vec::new()) else { panic!("opened") };
    assert!(why.contains("fs = { \"/logs\" ="), "{why}");
}

#[test]
fn settings_are_checked() {
    let over = |lines, zone| {
        let store = Store::new(vec![("/logs".to_owned(), "/".into())], "").unwrap();
        Logs::over(store, lines, zone, NOON.parse().unwrap())
    };
    assert_eq!(over(Some("50"), Some("Europe/Berlin")).unwrap().lines, 50);
    for (lines, zone, expected) in [
        (Some("0"), None, "LINES is \"0\": expected a number from 1 to 10000"),
        (Some("many"), None, "LINES is \"many\""),
        (None, Some("Mars"), "ZONE is \"Mars\": expected a name such as Europe/Berlin"),
    ] {
        let Err(Error::Failed(why)) = over(lines, zone) else { panic!("{expected}") };
        assert!(why.contains(expected), "{why}");
    }
    let few = Fixture::with("", Some("3"), None);
    few.write("app.log", numbered(0, 10));
    assert_eq!(few.lines("app.log").len(), 3);
}

#[test]
fn variables_are_completed() {
    let fixture = Fixture::new();
    for name in ["app.log", "app.log.1", "api.log", "nginx/access.log"] {
        fixture.write(name, "x\n");
    }
    let complete = |template, name, value| fixture.logs.complete(template, &Argument::new(name, value), &[]);
    let values = |template, name, value| complete(template, name, value).unwrap().values;
    assert_eq!(values(TAIL, "path", "ap"), ["api.log", "app.log"]);
    assert_eq!(values(DAY, "path", "n"), ["nginx/access.log"]);
    assert_eq!(values(TAIL, "level", ""), ["trace", "debug", "info", "warn", "error", "fatal"]);
    assert_eq!(values(TAIL, "level", "E"), ["error"]);
    assert_eq!(values(TAIL, "since", "1"), ["15m", "1h", "1d"]);
    assert_eq!(values(TAIL, "text", "x"), [""; 0]);
    assert!(matches!(complete(TAIL, "date", ""), Err(Error::Invalid(_))));
    assert!(matches!(complete("{other}", "path", ""), Err(Error::Invalid(_))));
    // Every variable of a template can be completed, and its suggestions can be read.
    for (template, text) in [(TAIL, TAIL), (DAY, DAY)] {
        let names = text.split(['{', '}', '?', '+', ',', '/']).filter(|name| !name.is_empty() && *name != "by-date");
        for name in names {
            complete(template, name, "").unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let templates: Vec<String> =
        fixture.logs.list_templates().unwrap().into_iter().map(|template| template.template).collect();
    assert_eq!(templates, [TAIL, DAY]);
}
