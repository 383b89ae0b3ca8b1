//! Attacks through `describe`, lists and templates. Each value of a setting selects one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_guest::{Annotations, Error, Icon, Info, Page, Resource, Result, Role, Template};

use crate::{burn, entry, speech};

/// The entries of one page in lists of several pages.
const PAGE: usize = 100;

/// `describe`, as `HOSTILE_DESCRIBE` says.
pub(crate) fn describe(how: &str) -> Info {
    match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "dressed" => Info::new(speech::CONTROLS).version(speech::CONTROLS).description("long ".repeat(10_000)),
        _ => Info::new("Hostile guest"),
    }
}

/// `list-resources`, as `HOSTILE_LIST` says.
pub(crate) fn resources(how: &str, cursor: Option<&str>) -> Result<Page> {
    let at = cursor.and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or_default();
    let numbered = |count| (at..at + count).map(|n| entry(format!("n/{n}")));
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        // Loops in every other second.
        "sometimes" if odd_second() => burn::spin(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            Page::default()
        }
        // A valid but slow list.
        "late" => {
            std::thread::sleep(Duration::from_millis(50));
            Page::new([entry("ok")])
        }
        "failed" => return Err(Error::failed("the hostile guest does not list")),
        // A different list at each call.
        "changing" => Page::new(["ok".to_owned(), format!("n/{}", nanoseconds())].map(entry)),
        // Lists the references in a granted file, one on each line. So a test can change the list.
        path if path.starts_with('/') => Page::new(lines(path)?.lines().map(entry)),
        // Lists a resource of the person for whom the upstream at this URL answers.
        #[cfg(target_os = "wasi")]
        url if url.starts_with("http") => {
            let said = crate::fetch::fetch(&format!("GET {url}"))?;
            let whose = ["alice", "bob"].into_iter().find(|name| said.contains(&format!("mail for {name}")));
            Page::new(whose.map(|name| entry(format!("of-{name}"))))
        }
        "print" => {
            speech::print(10_000);
            Page::new([entry("ok")])
        }
        // Valid entries first and last, and only invalid ones between them.
        "garbage" => Page::new(garbage()),
        "spoof" => Page::new(spoofs()),
        "duplicates" => Page::new(["first", "twice", "twice", "twice", "last"].map(entry)),
        "dressed" => Page::new([dressed()]),
        // Lists that never end: with entries, and without.
        "endless" => Page::new(numbered(PAGE)).next_cursor((at + PAGE).to_string()),
        "endless-empty" => Page::new([]).next_cursor((at + 1).to_string()),
        // One entry on each slow page: without an end, and with 20 entries.
        "drip" => drip(at, usize::MAX),
        "slow" => drip(at, 20),
        // Endless pages with invalid entries, with the same entries, or with a new entry on every tenth page.
        "endless-unfit" => Page::new(["/absolute", "a/../b"].map(entry)).next_cursor((at + 1).to_string()),
        "endless-same" => Page::new(["count", "ok"].map(entry)).next_cursor((at + 1).to_string()),
        "trickle" => {
            let new = at.is_multiple_of(10).then(|| entry(format!("n/{at}")));
            Page::new(new).next_cursor((at + 1).to_string())
        }
        // Cursors that repeat, after 3 pages and after 100. The entries are always new.
        "circle" | "large-circle" => {
            let length = if how == "circle" { 3 } else { 100 };
            Page::new([entry(format!("n/{}", nanoseconds()))]).next_cursor(((at + 1) % length).to_string())
        }
        "echo" => Page::new([entry("ok")]).next_cursor("echo"),
        "long-cursor" => Page::new([entry("ok")]).next_cursor("x".repeat(5000)),
        // A page that is too large for the host, and a large one that is allowed.
        "huge" => Page::new(numbered(1_000_000)),
        "large" => Page::new(numbered(10_000)),
        // The first page is valid, and the second call traps.
        "late-trap" if cursor.is_some() => burn::trap(),
        "late-trap" => Page::new([entry("ok")]).next_cursor("more"),
        _ => Page::new(["count", "ok"].map(entry)),
    })
}

/// The current time in nanoseconds: a number that differs in each call.
pub(crate) fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

/// The lines of a granted file.
pub(crate) fn lines(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|_| Error::denied(format_args!("cannot open \"{path}\"")))
}

fn odd_second() -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|time| time.as_secs() % 2 == 1)
}

/// A slow page with one entry: number `at` of `count`.
fn drip(at: usize, count: usize) -> Page {
    std::thread::sleep(Duration::from_millis(300));
    let page = Page::new([entry(format!("n/{at}"))]);
    if at + 1 < count { page.next_cursor((at + 1).to_string()) } else { page }
}

fn garbage() -> Vec<Resource> {
    let long = "l".repeat(3000);
    let bad = [
        "/absolute",
        "//authority/x",
        "..",
        "a/../b",
        "%2e%2E/b",
        "..%2fb",
        "..%5Cb",
        "with space",
        "with\u{202e}override",
        "with\x1b[31mescape",
        "nul\0",
        "newline\n",
        "percent%",
        "percent%zz",
        "%00",
        "%ff",
        "fragment#x",
        "{braces}",
        "back\\slash",
        "scheme:path",
        "http://elsewhere/",
        "javascript:1",
        "\u{e9}",
        &long,
    ];
    ["good/first"].into_iter().chain(bad).chain(["good/last"]).map(entry).collect()
}

/// Names of other mounts, in all spellings that the host could take for names of this mount.
fn spoofs() -> Vec<Resource> {
    let names =
        ["own", "belljar://clock/utc", "../clock/utc", "/clock/utc", "//clock/utc", "inner/x", "%2e%2e/clock/utc"];
    names.into_iter().map(entry).collect()
}

/// An entry with an invalid value in every field except the reference.
fn dressed() -> Resource {
    let mut resource = entry("dressed")
        .name(format!("{}{}", speech::CONTROLS, "n".repeat(5000)))
        .title(format!("{}{}", speech::CONTROLS, "t".repeat(5000)))
        .description(format!("{}{}", speech::CONTROLS, "d".repeat(100_000)))
        .mime_type("text/html\r\nX-Injected: yes")
        .size(u64::MAX)
        .annotations(
            Annotations::new().audience(Role::User).audience(Role::User).priority(f64::NAN).last_modified("yesterday"),
        )
        .icon(Icon::new("javascript:alert(1)"))
        .icon(Icon::new("https://example.com/icon.png").mime_type("image/png\n").size("48x48").size("huge"))
        .meta("com.example/fine", "[1,2]")
        .meta("com.example/no-json", "}{")
        .meta("com.example/large", format!("\"{}\"", "m".repeat(100_000)));
    for (key, value) in speech::RESERVED_META {
        resource = resource.meta(key, value);
    }
    resource.icons.extend((0..100).map(|_| Icon::new("https://example.com/icon.png")));
    resource
}

/// `list-templates`, as `HOSTILE_TEMPLATES` says.
pub(crate) fn templates(how: &str) -> Result<Vec<Template>> {
    let all = |names: &[&str]| names.iter().map(|name| Template::new(*name).name("hostile")).collect();
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        // Some of these would match names of other mounts, and some are invalid templates.
        "capture" => all(&[
            "mine/{id}",
            "{scheme}://{+rest}",
            "belljar://clock/{+zone}",
            "//{host}/x",
            "/{+any}",
            "{/any*}",
            "../{+any}",
            "%2e%2e/{+any}",
            "inner/{+any}",
            "{#fragment}",
            "{",
            "{}",
            "plain",
            "a\x1b[31m{b}",
        ]),
        "many" => (0..2000).map(|n| Template::new(format!("t{n}/{{x}}"))).collect(),
        "long" => {
            vec![Template::new("{a}".repeat(500)), Template::new("x".repeat(5000) + "{a}"), Template::new("{ok}")]
        }
        "twice" => all(&["{a}", "{a}", "{b}"]),
        // Templates that also match names of another mount, whose base is `below/x/`.
        "below" => all(&["{+any}", "below/x{/any}", "below/x/{any}", "below/{any}"]),
        // Valid templates, with variables that `suggest` completes.
        "verbs" => all(&["errors/{kind}/{words}", "text/{length}"]),
        "" => Vec::new(),
        _ => return Err(Error::failed("the hostile guest has no such templates")),
    })
}
