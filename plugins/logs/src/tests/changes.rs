//! Tests of revisions, and of reads while another thread writes, rotates or truncates the log.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn writing_and_rotating_change_the_revision_of_a_log() {
    let fixture = Fixture::new();
    fixture.write("app.log", "one\n");
    fixture.write("other.log", "one\n");
    let of = |reference| fixture.logs.resource_revision(reference).unwrap();
    let mut known = vec![of("app.log")];
    let other = of("other.log");
    let mut step = |change: &dyn Fn()| {
        change();
        let now = of("app.log");
        assert!(!known.contains(&now), "{now} again");
        assert_eq!(of("app.log?level=error&since=15m"), now);
        known.push(now);
    };
    step(&|| fixture.append("app.log", "two\n"));
    step(&|| fixture.touch("app.log", "2026-11-21T10:00:00.000000001Z"));
    step(&|| fs::rename(fixture.path("app.log"), fixture.path("app.log.1")).unwrap());
    step(&|| fixture.write("app.log", ""));
    step(&|| fixture.write_packed("app.log.2.gz", "zero\n"));
    step(&|| fs::remove_file(fixture.path("app.log.1")).unwrap());
    assert_eq!(of("other.log"), other);
    fs::remove_file(fixture.path("other.log")).unwrap();
    assert_eq!(fixture.logs.resource_revision("other.log"), Err(Error::NotFound));
}

#[test]
fn only_new_and_deleted_logs_change_the_revision_of_the_list() {
    let fixture = Fixture::new();
    fixture.write("app.log", "one\n");
    let list = || (fixture.logs.catalog_revision().unwrap(), fixture.listed());
    let first = list();
    fixture.append("app.log", "two\n");
    fs::rename(fixture.path("app.log"), fixture.path("app.log.1")).unwrap();
    assert_eq!(list(), first);
    fixture.write("app.log", "");
    fixture.write("x.pid", "1");
    assert_eq!(list(), first);
    fixture.write("new.log", "");
    let second = list();
    assert!(first.0 != second.0 && first.1 != second.1);
    fs::remove_file(fixture.path("new.log")).unwrap();
    assert_eq!(list(), first);
    let overview = || fixture.logs.resource_revision("").unwrap();
    let before = overview();
    fixture.append("app.log", "three\n");
    assert_ne!(overview(), before);
}

/// While one thread writes, rotates and compresses, each read returns consecutive whole lines, each line once.
#[test]
fn reads_return_whole_lines_while_the_log_is_rotated() {
    let fixture = Fixture::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            for round in 0..60 {
                for _ in 0..20 {
                    fixture.append("app.log", &numbered(n, 10));
                    n += 10;
                }
                // Like `logrotate`: renames one file after the other.
                for age in (1..4).rev() {
                    let _ = fs::rename(
                        fixture.path(&format!("app.log.{age}")),
                        fixture.path(&format!("app.log.{}", age + 1)),
                    );
                }
                fs::rename(fixture.path("app.log"), fixture.path("app.log.1")).unwrap();
                if round % 2 == 0 {
                    fixture.write("app.log", "");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            done.store(true, Ordering::Release);
        });
        let mut readings = 0;
        while !done.load(Ordering::Acquire) {
            let tail = match fixture.logs.read("app.log?lines=100") {
                Ok(reading) => reading,
                // Before the first file exists.
                Err(Error::NotFound) => continue,
                Err(error) => panic!("{error}"),
            };
            let Body::Text(text) = &tail.contents[0].body else { panic!("a blob") };
            let numbers: Vec<usize> =
                text.lines().map(|line| line.strip_prefix("line ").unwrap().parse().unwrap()).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
            readings += 1;
        }
        assert!(readings > 20, "{readings}");
    });
}

/// Reads of a log that is truncated and written again give no error and only whole lines.
#[test]
fn reads_return_whole_lines_while_the_log_is_truncated() {
    let fixture = Fixture::new();
    fixture.write("app.log", "");
    let done = AtomicBool::new(false);
    let line = format!("<{}>\n", "x".repeat(98));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                for _ in 0..10 {
                    fixture.append("app.log", &line.repeat(100));
                }
                fs::File::options().write(true).open(fixture.path("app.log")).unwrap().set_len(0).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            for given in fixture.lines("app.log?lines=1000") {
                assert_eq!(given, line.trim_end());
            }
        }
    });
}
