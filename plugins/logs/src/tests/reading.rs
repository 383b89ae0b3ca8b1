//! Tests of the lines that a read returns, and of the files that it reads.

use super::*;

#[test]
fn a_read_returns_the_last_lines() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(0, 1000));
    let all = fixture.lines("app.log");
    assert_eq!((all.len(), all[0].as_str(), all[199].as_str()), (200, "line 800", "line 999"));
    assert_eq!(fixture.text("app.log?lines=2"), "line 998\nline 999\n");
    assert_eq!(fixture.lines("app.log?lines=10000").len(), 1000);
    assert_eq!(fixture.logs.read("other.log"), Err(Error::NotFound));
}

/// For lines of all lengths relative to the blocks, the result equals the end of the file.
#[test]
fn the_last_lines_equal_those_of_the_whole_file() {
    let fixture = Fixture::new();
    let mut state = 1_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for (case, end) in ["", "\n", "\n\n", "last", "\r\n"].into_iter().enumerate() {
        let mut whole = String::new();
        for n in 0..6000 {
            let length = if n % 400 == 0 { random(7000) } else { random(120) };
            whole.push_str(&"x".repeat(length as usize));
            whole.push_str(&format!("{n}\n"));
        }
        whole.push_str(end);
        let name = format!("{case}.log");
        fixture.write(&name, &whole);
        fixture.write_packed(&format!("packed{case}.log.1.gz"), &whole);
        let expected: Vec<&str> = whole.lines().collect();
        for count in [1, 2, 3, 100, 1000, 5999, 6000, 10_000] {
            let from = expected.len().saturating_sub(count);
            for name in [name.clone(), format!("packed{case}.log")] {
                let lines = fixture.lines(&format!("{name}?lines={count}"));
                assert!(lines == expected[from..], "{name}: the last {count}");
            }
        }
    }
}

#[test]
fn a_read_continues_in_older_files() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(300, 50));
    fixture.write("app.log.1", numbered(200, 100));
    fixture.write_packed("app.log.2.gz", numbered(100, 100));
    fixture.write_packed("app.log.10.gz", numbered(0, 100));
    let lines = fixture.lines("app.log");
    assert_eq!((lines.len(), lines[0].as_str(), lines[199].as_str()), (200, "line 150", "line 349"));
    assert_eq!(fixture.files("app.log"), ["app.log", "app.log.1", "app.log.2.gz"]);
    assert_eq!(fixture.files("app.log?lines=50"), ["app.log"]);
    let all = fixture.lines("app.log?lines=10000");
    assert_eq!(all, numbered(0, 350).lines().collect::<Vec<_>>());
    // A rotated file read by its own name gives only its own lines.
    assert_eq!(fixture.text("app.log.1?lines=1"), "line 299\n");
    assert_eq!(fixture.text("app.log.2.gz?lines=10000"), numbered(100, 100));
    assert_eq!(fixture.files("app.log.1?lines=10000"), ["app.log.1"]);
}

#[test]
fn files_named_after_days_are_one_log() {
    let fixture = Fixture::new();
    fixture.write("app-2026-11-21.log", numbered(20, 10));
    fixture.write("app-2026-11-20.log", numbered(10, 10));
    fixture.write_packed("app-2026-11-19.log.gz", numbered(0, 10));
    assert_eq!(fixture.listed(), ["app.log"]);
    assert_eq!(fixture.text("app.log"), numbered(0, 30));
    // The log's name is often a link to the file of today, which must not be read twice.
    std::os::unix::fs::symlink("app-2026-11-21.log", fixture.path("app.log")).unwrap();
    assert_eq!(fixture.text("app.log"), numbered(0, 30));
    assert_eq!(fixture.files("app.log"), ["app-2026-11-21.log", "app-2026-11-20.log", "app-2026-11-19.log.gz"]);
}

#[test]
fn a_file_under_compression_is_read_once() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(20, 10));
    fixture.write("app.log.1", numbered(10, 10));
    // The compressed file is half written.
    fixture.write("app.log.1.gz", &packed(numbered(10, 10).as_bytes())[..20]);
    assert_eq!(fixture.text("app.log"), numbered(10, 20));
}

#[test]
fn a_damaged_file_is_read_up_to_the_damage_with_a_note() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(50_000, 10));
    let whole = packed(numbered(0, 50_000).as_bytes());
    fixture.write("app.log.1.gz", &whole[..whole.len() / 2]);
    let text = fixture.text("app.log?lines=1000");
    assert!(text.starts_with("[logs: app.log.1.gz is damaged or incomplete"), "{}", &text[..100]);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.last(), Some(&"line 50009"));
    let numbers: Vec<usize> = lines.iter().map(|line| line.strip_prefix("line ").unwrap().parse().unwrap()).collect();
    assert_eq!(numbers.len(), 1000);
    assert!(numbers[..990].windows(2).all(|pair| pair[0] + 1 == pair[1]), "a line is missing or incomplete");
    fixture.write("app.log.1.gz", "no gzip at all");
    assert_eq!(fixture.lines("app.log").len(), 11);
}

#[test]
fn long_lines_are_cut_and_control_characters_removed() {
    let fixture = Fixture::new();
    let long = "l".repeat(300_000);
    fixture.write("app.log", format!("first\n{long}\n\x1b[31mred\x1b[0m\r\n{long}"));
    let lines = fixture.lines("app.log");
    let cut = format!("{} ... (291808 more bytes)", "l".repeat(8192));
    assert_eq!(lines, ["first", &cut, "red", &cut]);
    fixture.write("app.log", b"gr\xfcn\nend\n");
    let lines = fixture.lines("app.log");
    assert!(lines[0].starts_with("[logs: bytes that are not UTF-8"));
    assert_eq!(lines[1..], ["gr\u{fffd}n", "end"]);
}

#[test]
fn a_huge_sparse_file_is_read_from_its_end() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(0, 10));
    let file = fs::File::options().write(true).open(fixture.path("app.log")).unwrap();
    file.set_len(10 << 30).unwrap();
    fixture.append("app.log", &format!("\n{}", numbered(100, 300)));
    let lines = fixture.lines("app.log");
    assert_eq!((lines.len(), lines[0].as_str(), lines[199].as_str()), (200, "line 200", "line 399"));
    // The reader stops at a hole in the file.
    assert!(fixture.lines("app.log?lines=1000").ends_with(&["line 399".to_owned()]));
    assert_eq!(fixture.lines("app.log?lines=1000").iter().filter(|line| !line.is_empty()).count(), 300);
}

#[test]
fn a_read_at_the_text_limit_has_a_note() {
    let fixture = Fixture::new();
    fixture.write("app.log", format!("{}\n", "x".repeat(1000)).repeat(2000));
    let lines = fixture.lines("app.log?lines=2000");
    assert!(
        lines[0].starts_with("[logs: stopped at 1024 KiB of text; for older entries, read again with before=app.log:")
    );
    assert_eq!(lines.len(), 1 + 1024 * 1024 / 1001);
}

/// The lines of a read and of all reads that its notes lead to, oldest first.
fn followed(fixture: &Fixture, reference: &str) -> (Vec<String>, usize) {
    let (mut all, mut rounds, mut before) = (Vec::new(), 0, String::new());
    loop {
        rounds += 1;
        let text = fixture.text(&format!("{reference}{before}"));
        let (notes, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("[logs: "));
        all.splice(0..0, lines.into_iter().map(str::to_owned));
        match notes.first().and_then(|note| note.split_once("before=")) {
            Some((_, place)) => before = format!("&before={}", place.trim_end_matches(']')),
            None => return (all, rounds),
        }
    }
}

#[test]
fn following_the_notes_reads_a_whole_log() {
    let fixture = Fixture::new();
    let line = |n: usize| format!("{n} ünï {}\n", "x".repeat(n % 700));
    let all: Vec<String> = (0..12_000).map(line).collect();
    let part = |from: usize, to: usize| all[from..to].concat();
    let wide = |text: String| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    fixture.write("app.log", part(10_000, 12_000));
    fixture.write("app.log.1", wide(part(7_000, 10_000)));
    fixture.write_packed("app.log.2.gz", part(3_000, 7_000));
    fixture.write("app.log.3", part(0, 3_000).trim_start());
    let (lines, rounds) = followed(&fixture, "app.log?lines=10000");
    // The last read ends at the number of lines, without a note.
    assert!((4..9).contains(&rounds), "{rounds}");
    assert_eq!(lines.len(), 12_000);
    assert!(lines.iter().zip(&all).all(|(line, expected)| line == expected.trim_end_matches('\n')));
    for filter in ["text=9", "regex=%5E%5Cd*9", "level=info&text=x"] {
        let (lines, _) = followed(&fixture, &format!("app.log?lines=10000&{filter}"));
        let expected = all.iter().filter(|line| match filter {
            "text=9" => line.contains('9'),
            "level=info&text=x" => false,
            _ => line.split(' ').next().unwrap().contains('9'),
        });
        assert!(lines.iter().map(String::as_str).eq(expected.map(|line| line.trim_end_matches('\n'))), "{filter}");
    }
}

#[test]
fn a_place_is_found_after_a_rotation_and_refused_after_a_change() {
    let fixture = Fixture::new();
    fixture.write("app.log", format!("{}\n", "x".repeat(1000)).repeat(2000));
    let text = fixture.text("app.log?lines=2000");
    let (_, place) = text.lines().next().unwrap().split_once("before=").unwrap();
    let reference = format!("app.log?lines=2000&before={}", place.trim_end_matches(']'));
    fs::rename(fixture.path("app.log"), fixture.path("app.log.1")).unwrap();
    fixture.write("app.log", numbered(0, 5));
    let rest = fixture.lines(&reference);
    assert_eq!(rest.len() + text.lines().count() - 1, 2000);
    fixture.write("app.log.1", "short\n");
    let Err(Error::Invalid(why)) = fixture.logs.read(&reference) else { panic!("read") };
    assert!(why.contains("read again without it"), "{why}");
}

#[test]
fn the_mount_itself_lists_the_logs() {
    let fixture = Fixture::new();
    fixture.write("a (1)/[x].log", "12345\n");
    fixture.write("a (1)/[x].log.1", "1\n");
    fixture.touch("a (1)/[x].log", "2026-11-21T10:00:00Z");
    fixture.touch("a (1)/[x].log.1", "2026-11-20T10:00:00Z");
    assert_eq!(
        fixture.text(""),
        "# Logs\n\n- [a (1)/\\[x\\].log](a%20%281%29/%5Bx%5D.log): 8 bytes in 2 files, last written to \
         2026-11-21T10:00:00Z\n"
    );
    assert_eq!(Fixture::new().text(""), "# Logs\n\n(none)\n");
}
