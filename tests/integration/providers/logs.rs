//! `plugins/logs` over real files: logs that grow, are rotated, truncated and compressed, and logs that are huge, damaged
//! or hostile. The provider cannot read files outside the granted directory.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Client, DEADLINE, Era, Site, Stdio};
use serde_json::Value;

use crate::subscriptions::notifications::Watcher;
use crate::support::{kind, serve, site};

const APP: &str = "belljar://logs/app.log";

/// The default fuel of a call.
const FUEL: u64 = 5_000_000_000;

/// A site with the provider `logs`, these settings, and an empty file `log/app.log`.
fn mounted(more: &str) -> Site {
    let site = site(&format!("[mounts.logs]\nfs = {{ \"/logs\" = \"log\" }}\n{more}\n# logs.wasm\n"));
    site.write("log/app.log", "");
    site
}

fn append(site: &Site, name: &str, text: &str) {
    let mut file = File::options().append(true).create(true).open(site.path("log").join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn path(site: &Site, name: &str) -> PathBuf {
    site.path("log").join(name)
}

/// Compresses a file in place, as log rotation does.
fn compress(site: &Site, name: &str) {
    let bytes = fs::read(path(site, name)).unwrap();
    let packed = File::create(path(site, &format!("{name}.gz"))).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(packed, flate2::Compression::default());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap();
    fs::remove_file(path(site, name)).unwrap();
}

/// The lines `line <first>` to `line <first + count - 1>`.
fn numbered(first: usize, count: usize) -> String {
    (first..first + count).map(|n| format!("line {n}\n")).collect()
}

/// `count` entries of about 110 bytes, ten for each second from midnight on.
fn entries(count: usize) -> String {
    let mut text = String::with_capacity(count * 110);
    for n in 0..count {
        let (seconds, tenth) = (n / 10, n % 10);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let level = ["INFO", "DEBUG", "INFO", "WARN"][n % 4];
        text.push_str(&format!(
            "2026-11-20T{hour:02}:{minute:02}:{second:02}.{tenth}00Z {level} [worker-{}] com.example.Service - handled request \
             number {n} in 17 ms\n",
            n % 8
        ));
    }
    text
}

/// The fuel of the last read of this URI, from the audit record.
fn fuel(site: &Site, uri: &str) -> u64 {
    let reference = uri.strip_prefix("belljar://logs/").unwrap();
    let record = site.await_record(&format!("a read of {uri}"), |record| {
        record["mount"] == "logs" && record["operation"] == "read" && record["reference"] == reference
    });
    assert_eq!(record["outcome"], "ok", "{record}");
    record["usage"]["fuel"].as_u64().unwrap()
}

#[test]
fn a_log_is_one_resource_while_it_grows_and_is_rotated_and_compressed() {
    let site = mounted("");
    let mut client = serve(&site);
    let logs = |client: &mut Client<Stdio>| -> Vec<String> {
        client.uris().into_iter().filter(|uri| uri.starts_with("belljar://logs/")).collect()
    };
    assert_eq!((logs(&mut client), client.text(APP).as_str()), (vec![APP.to_owned()], ""));
    append(&site, "app.log", &numbered(0, 150));
    assert_eq!(client.text(APP), numbered(0, 150));
    append(&site, "app.log", &numbered(150, 150));
    assert_eq!(client.text(APP), numbered(100, 200));

    // The new file is short, so the provider also reads the previous file.
    fs::rename(path(&site, "app.log"), path(&site, "app.log.1")).unwrap();
    append(&site, "app.log", &numbered(300, 10));
    assert_eq!(client.text(APP), numbered(110, 200));
    compress(&site, "app.log.1");
    assert_eq!(client.text(APP), numbered(110, 200));
    assert_eq!(client.text(&format!("{APP}?lines=5")), numbered(305, 5));
    // Rename the files, but create no new `app.log`.
    fs::rename(path(&site, "app.log"), path(&site, "app.log.1")).unwrap();
    fs::rename(path(&site, "app.log.1.gz"), path(&site, "app.log.2.gz")).unwrap();
    assert_eq!(client.text(APP), numbered(110, 200));

    // Truncate the file in place.
    append(&site, "app.log", &numbered(310, 500));
    assert_eq!(client.text(&format!("{APP}?lines=10000")), numbered(0, 810));
    File::options().write(true).open(path(&site, "app.log")).unwrap().set_len(0).unwrap();
    assert_eq!(client.text(&format!("{APP}?lines=10000")), numbered(0, 310));
    assert_eq!(logs(&mut client), [APP]);
    assert!(client.close().status.success());
}

/// One thread writes and rotates without a pause. Each read must return complete last lines, in their order.
#[test]
fn reads_during_rotations_return_complete_lines_in_order() {
    let site = mounted("");
    let mut client = serve(&site);
    let done = AtomicBool::new(false);
    /// Ends the writer, also after a failed assertion.
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let rotations = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Acquire) {
                for _ in 0..20 {
                    append(&site, "app.log", &numbered(n, 10));
                    n += 10;
                }
                for age in (1..4).rev() {
                    let _ = fs::rename(
                        path(&site, &format!("app.log.{age}")),
                        path(&site, &format!("app.log.{}", age + 1)),
                    );
                }
                fs::rename(path(&site, "app.log"), path(&site, "app.log.1")).unwrap();
                append(&site, "app.log", "");
                rotations.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (began, mut lines) = (Instant::now(), 0);
        while rotations.load(Ordering::Relaxed) < 50 || lines <= 1000 {
            let rotated = rotations.load(Ordering::Relaxed);
            assert!(began.elapsed() < DEADLINE, "{rotated} rotations, {lines} lines");
            let text = client.text(&format!("{APP}?lines=300"));
            let number = |line: &str| -> usize { line.strip_prefix("line ").and_then(|n| n.parse().ok()).expect(line) };
            let numbers: Vec<usize> = text.lines().map(number).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{text}");
            lines += numbers.len();
        }
        drop(stop);
    });
}

/// A read of a file of 10 GB costs as much as one of 10 kB: the provider reads only the end.
#[test]
fn reading_a_huge_file_costs_as_much_as_reading_its_end() {
    let site = mounted("");
    let end = numbered(0, 500);
    site.write("log/small.log", format!("{}{end}", numbered(0, 10_000)));
    site.write("log/huge.log", "first\n");
    let huge = File::options().write(true).open(path(&site, "huge.log")).unwrap();
    huge.set_len(10 << 30).unwrap();
    append(&site, "huge.log", &format!("\n{end}"));
    let mut client = serve(&site);
    let mut read = |name: &str| {
        let uri = format!("belljar://logs/{name}.log");
        assert_eq!(client.text(&uri), numbered(300, 200));
        fuel(&site, &uri)
    };
    let (small, huge) = (read("small"), read("huge"));
    assert!(huge < small + small / 4, "{small} for a small file, {huge} for a huge one");
    assert!(huge < 5_000_000, "{huge}");
}

/// If a file is too long for one search, the answer names the next read. A chain of such reads reaches the beginning, without
/// reaching a limit of the host.
#[test]
fn a_long_search_can_be_continued() {
    // On a busy machine, the provider's own limit of two seconds ends a search earlier. Then the test needs more reads.
    let site = mounted("");
    // The file has 80 MB, and the wanted line is at its beginning.
    fs::write(path(&site, "app.log"), format!("2026-11-20T00:00:00.000Z FATAL wanted\n{}", entries(700_000))).unwrap();
    let mut client = serve(&site);
    let mut uri = format!("{APP}?level=fatal");
    let mut steps = 0;
    let text = loop {
        let text = client.text(&uri);
        let fuel = fuel(&site, &uri);
        assert!(fuel < FUEL * 3 / 4, "{fuel} for {uri}");
        steps += 1;
        let Some((_, place)) = text.lines().next().and_then(|line| line.split_once("read again with before=")) else {
            break text;
        };
        assert!(text.starts_with("[logs: stopped at the work limit of one read; ") && steps < 40, "{text}");
        uri = format!("{APP}?level=fatal&before={}", place.trim_end_matches(']'));
    };
    assert_eq!(text, "2026-11-20T00:00:00.000Z FATAL wanted\n");
    assert!(steps >= 3, "{steps}");

    // The provider finds a day, an hour and the end without reading the rest.
    let uri = "belljar://logs/by-date/2026-11-20/app.log?until=2026-11-20T01:00:00Z&lines=2";
    let hour = client.text(uri);
    let expected = entries(36_000).lines().skip(35_998).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(hour, expected);
    let fuel = fuel(&site, uri);
    assert!(fuel < 50_000_000, "{fuel}");
    assert_eq!(client.text("belljar://logs/by-date/2026-11-21/app.log"), "");
}

/// Queries select entries by level, time and text. The error for a wrong query names the expected values.
#[test]
fn queries_select_entries_and_wrong_queries_are_reported() {
    let site = mounted("");
    append(
        &site,
        "app.log",
        "2026-11-20T10:00:00Z INFO start\n2026-11-20T10:00:01Z ERROR broken\n\tat a.B(C.java:1)\n",
    );
    append(&site, "app.log", "2026-11-21T10:00:00Z \u{1b}[33mWARN\u{1b}[0m slow\n");
    let mut client = serve(&site);
    let error = "2026-11-20T10:00:01Z ERROR broken\n\tat a.B(C.java:1)\n";
    let warn = "2026-11-21T10:00:00Z WARN slow\n";
    assert_eq!(client.text(&format!("{APP}?level=error")), error);
    assert_eq!(client.text(&format!("{APP}?level=warn")), format!("{error}{warn}"));
    assert_eq!(client.text(&format!("{APP}?text=c.java")), error);
    assert_eq!(client.text("belljar://logs/by-date/2026-11-21/app.log"), warn);
    assert_eq!(client.text(&format!("{APP}?since=2026-11-21T00:00:00Z")), warn);
    for (query, expected) in [
        ("?level=loud", "trace, debug, info, warn, error, fatal"),
        ("?since=yesterday", "such as 2026-11-21T10:00:00Z"),
        ("?lines=0", "from 1 to 10000"),
        ("?tail=5", "lines, since, until, level, text, regex, before"),
        ("?regex=(x", "unclosed group"),
    ] {
        let error = client.read(&format!("{APP}{query}")).expect_err(query);
        assert!(error.message.contains(expected), "{query}: {error}");
    }
    let templates = client.templates();
    for template in [
        "{+path}{?lines,since,until,level,text,regex,before,bytes}",
        "by-date/{date}/{+path}{?lines,until,level,text,regex,before}",
    ] {
        assert!(templates.contains(&format!("belljar://logs/{template}")), "{templates:?}");
    }
}

/// Damaged and hostile files give an error or a note in the answer, and never a trap.
#[test]
fn damaged_and_hostile_files_give_an_error_or_a_note() {
    let site = mounted("");
    let mut random = fastrand::Rng::with_seed(7);
    let noise: Vec<u8> = (0..300_000).map(|_| random.u8(..)).collect();
    // Compressed files: a gibibyte of one letter, a wrong size, a truncated one, and one that is not compressed.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1024 {
        bomb.write_all(&[b'b'; 1 << 20]).unwrap();
    }
    let mut bomb = bomb.finish().unwrap();
    site.write("log/bomb.log.1.gz", &bomb);
    let length = bomb.len();
    bomb[length - 4..].fill(0);
    site.write("log/liar.log.1.gz", &bomb);
    site.write("log/cut.log.1.gz", &bomb[..length / 1000]);
    site.write("log/noise.log.1.gz", &noise);
    site.write("log/noise.log", &noise);
    site.write("log/line.log", "x".repeat(20 << 20));
    let mut client = serve(&site);
    for name in ["bomb", "liar"] {
        let uri = format!("belljar://logs/{name}.log");
        let text = client.text(&uri);
        assert!(text.starts_with(&format!("[logs: {name}.log.1.gz was not read: ")) && text.len() < 200, "{text}");
        let fuel = fuel(&site, &uri);
        assert!(fuel < FUEL * 3 / 4, "{fuel}");
    }
    // The truncated file has one line without a line break, so no line of it is complete.
    let text = client.text("belljar://logs/cut.log");
    assert!(text.starts_with("[logs: cut.log.1.gz is damaged or incomplete") && text.lines().count() == 1, "{text}");
    let text = client.text("belljar://logs/line.log");
    assert!(
        text.ends_with(&format!(" ... ({} more bytes)\n", (20 << 20) - 8192)) && text.len() < 9000,
        "{}",
        text.len()
    );
    let error = client.read("belljar://logs/noise.log").expect_err("an error");
    assert_eq!(kind(&error), "failed", "{error}");
    let listed = client.uris();
    assert!(!listed.contains(&"belljar://logs/noise.log".to_owned()), "{listed:?}");
}

/// The provider cannot read files outside of the granted directory by any path. Without a grant, the error names the missing
/// grant.
#[test]
fn only_the_granted_directory_is_read() {
    let site = mounted("");
    site.write("beside/secret.log", "secret\n");
    std::os::unix::fs::symlink(site.path("beside/secret.log"), path(&site, "absolute.log")).unwrap();
    std::os::unix::fs::symlink("../beside/secret.log", path(&site, "relative.log")).unwrap();
    std::os::unix::fs::symlink("../beside", path(&site, "dir")).unwrap();
    append(&site, "app.log", "fine\n");
    std::os::unix::fs::symlink("../beside/secret.log", path(&site, "app.log.1")).unwrap();
    let mut client = serve(&site);
    assert_eq!(client.text(APP), "fine\n");
    let logs: Vec<String> = client.uris().into_iter().filter(|uri| uri.starts_with("belljar://logs/")).collect();
    assert_eq!(logs, [APP]);
    for name in ["absolute.log", "relative.log", "dir/secret.log", "app.log.1", "%2e%2e/beside/secret.log", "../beside"]
    {
        let answer = client.read(&format!("belljar://logs/{name}"));
        let error = answer.expect_err(name);
        assert!(!error.to_string().contains("secret\n"), "{name}: {error}");
    }

    let without_grant = crate::support::site("# logs.wasm\n");
    let mut client = serve(&without_grant);
    let error = client.read(APP).expect_err("an error");
    assert_eq!(kind(&error), "denied", "{error}");
    let hint: &Value = &error.data["hint"];
    assert!(error.message.contains("no directory is granted") || hint.is_string(), "{error}");
}

/// A subscriber of a log gets a notification after a write or a rotation. The list does not change, because it shows
/// neither writes nor rotations.
#[test]
fn subscribers_of_a_log_get_notifications_of_writes() {
    let site = mounted("");
    append(&site, "app.log", "one\n");
    append(&site, "other.log", "one\n");
    for era in Era::ALL {
        let mut watcher = Watcher::stdio(&site, era, &[APP, "belljar://logs/other.log"], era == Era::Stateless);
        let mut assert_notified = |why: &str, expected: &str| {
            assert_eq!(watcher.next(DEADLINE).as_deref(), Some(expected), "{era:?}, {why}");
        };
        append(&site, "app.log", "two\n");
        assert_notified("written to", APP);
        // A rotation has two steps. On a busy machine each step may give a notification.
        fs::rename(path(&site, "app.log"), path(&site, "app.log.1")).unwrap();
        append(&site, "app.log", "");
        assert_notified("rotated", APP);
        watcher.settles(APP, "rotated");
        fs::remove_file(path(&site, "app.log.1")).unwrap();
        let mut assert_notified = |why: &str, expected: &str| {
            assert_eq!(watcher.next(DEADLINE).as_deref(), Some(expected), "{era:?}, {why}");
        };
        assert_notified("an older file is gone", APP);
        // A file that is not a log gives no notification. The next notification is that of the list (an empty text), because
        // a log was added.
        append(&site, "app.pid", "1");
        site.write(format!("log/new-{era:?}.log"), "");
        assert_notified("a new log", "");
    }
}

/// A log of 4 GiB is read in pieces. No piece costs more than another, and none needs more memory.
#[test]
fn pieces_of_a_huge_log_cost_the_same_everywhere() {
    let site = mounted("");
    let size = 4_u64 << 30;
    let lines = entries(1000);
    let file = File::options().write(true).open(path(&site, "app.log")).unwrap();
    file.set_len(size).unwrap();
    for at in [0, size / 2, size - lines.len() as u64] {
        std::os::unix::fs::FileExt::write_all_at(&file, lines.as_bytes(), at).unwrap();
    }
    let mut client = serve(&site);
    for range in ["0-65535".to_owned(), format!("{}-{}", size / 2, size / 2 + 65_535), "-65536".to_owned()] {
        let uri = format!("{APP}?bytes={range}");
        let text = client.text(&uri);
        let expected = if range == "-65536" { &lines[lines.len() - 65_536..] } else { &lines[..65_536] };
        assert!(text == expected, "{range}");
        let record = site.await_record(&uri, |record| {
            record["operation"] == "read" && record["reference"] == format!("app.log?bytes={range}")
        });
        let usage = &record["usage"];
        assert!(usage["fuel"].as_u64().unwrap() < 2_000_000, "{range}: {record}");
        assert!(usage["memory"].as_u64().unwrap() < 8 << 20, "{range}: {record}");
    }
    let last = client.text(&format!("{APP}?lines=2"));
    assert_eq!(last, lines.lines().skip(998).map(|line| format!("{line}\n")).collect::<String>());
}
