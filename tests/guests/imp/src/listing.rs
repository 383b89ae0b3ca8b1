//! What the calls that list do: each setting is one way to abuse a list.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_guest::{Annotations, Error, Icon, Info, Page, Resource, Result, Role, Template};

use crate::{burn, entry, speech};

/// Entries of a page that is one of many.
const PAGE: usize = 100;

/// `describe`, as `IMP_DESCRIBE` says.
pub(crate) fn describe(how: &str) -> Info {
    match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        "dressed" => Info::new(speech::CONTROLS).version(speech::CONTROLS).description("long ".repeat(10_000)),
        _ => Info::new("Imp"),
    }
}

/// `list-resources`, as `IMP_LIST` says.
pub(crate) fn resources(how: &str, cursor: Option<&str>) -> Result<Page> {
    let at = cursor.and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or_default();
    let numbered = |count| (at..at + count).map(|n| entry(format!("n/{n}")));
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        // Fine in one second, and not in the next.
        "sometimes" if odd_second() => burn::spin(),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            Page::default()
        }
        // Honest, and not the quickest.
        "late" => {
            std::thread::sleep(Duration::from_millis(50));
            Page::new([entry("ok")])
        }
        "failed" => return Err(Error::failed("the imp does not list")),
        // Another list at each call.
        "changing" => Page::new(["ok".to_owned(), format!("n/{}", nanoseconds())].map(entry)),
        // What a granted file says, a reference on each line: a list that is changed from outside.
        path if path.starts_with('/') => Page::new(lines(path)?.lines().map(entry)),
        "print" => {
            speech::print(10_000);
            Page::new([entry("ok")])
        }
        // Good ones first and last, and between them nothing that may be served.
        "garbage" => Page::new(garbage()),
        "spoof" => Page::new(spoofs()),
        "duplicates" => Page::new(["first", "twice", "twice", "twice", "last"].map(entry)),
        "dressed" => Page::new([dressed()]),
        // A listing without an end, in each of the ways to have none.
        "endless" => Page::new(numbered(PAGE)).next_cursor((at + PAGE).to_string()),
        "endless-empty" => Page::new([]).next_cursor((at + 1).to_string()),
        // One entry at a time, and none of them soon; without an end, and with one.
        "drip" => drip(at, usize::MAX),
        "slow" => drip(at, 20),
        // Forward for ever, and nothing that is new on the way: what cannot be served, what was listed, and now and then an entry.
        "endless-unfit" => Page::new(["/absolute", "a/../b"].map(entry)).next_cursor((at + 1).to_string()),
        "endless-same" => Page::new(["count", "ok"].map(entry)).next_cursor((at + 1).to_string()),
        "trickle" => {
            let new = at.is_multiple_of(10).then(|| entry(format!("n/{at}")));
            Page::new(new).next_cursor((at + 1).to_string())
        }
        // Cursors that come round, after a few pages and after many; the entries are new each time.
        "circle" | "large-circle" => {
            let length = if how == "circle" { 3 } else { 100 };
            Page::new([entry(format!("n/{}", nanoseconds()))]).next_cursor(((at + 1) % length).to_string())
        }
        "echo" => Page::new([entry("ok")]).next_cursor("echo"),
        "long-cursor" => Page::new([entry("ok")]).next_cursor("x".repeat(5000)),
        // One page that is too large to be taken, and one that is not.
        "huge" => Page::new(numbered(1_000_000)),
        "large" => Page::new(numbered(10_000)),
        // The first page is fine, the second is not.
        "late-trap" if cursor.is_some() => burn::trap(),
        "late-trap" => Page::new([entry("ok")]).next_cursor("more"),
        _ => Page::new(["count", "ok"].map(entry)),
    })
}

/// A number that no later call gets.
pub(crate) fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

/// A granted file that holds a list.
pub(crate) fn lines(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|_| Error::denied(format_args!("cannot open \"{path}\"")))
}

fn odd_second() -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|time| time.as_secs() % 2 == 1)
}

/// The page that holds the entry number `at` of `count`.
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

/// Names that belong to others, in every spelling that could be mistaken for one's own.
fn spoofs() -> Vec<Resource> {
    let names =
        ["own", "belljar://clock/utc", "../clock/utc", "/clock/utc", "//clock/utc", "inner/x", "%2e%2e/clock/utc"];
    names.into_iter().map(entry).collect()
}

/// One entry with something wrong in every field but its reference.
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
        .meta("io.modelcontextprotocol/reserved", "1")
        .meta("belljar/mount", "\"another\"")
        .meta("dev.belljar/mount", "\"another\"")
        .meta("traceparent", "\"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\"")
        .meta("progressToken", "7")
        .meta("ui", "{}")
        .meta("com.mcp.tools/x", "1")
        .meta("com.example/no-json", "}{")
        .meta("com.example/large", format!("\"{}\"", "m".repeat(100_000)));
    resource.icons.extend((0..100).map(|_| Icon::new("https://example.com/icon.png")));
    resource
}

/// `list-templates`, as `IMP_TEMPLATES` says.
pub(crate) fn templates(how: &str) -> Result<Vec<Template>> {
    let all = |names: &[&str]| names.iter().map(|name| Template::new(*name).name("imp")).collect();
    Ok(match how {
        "loop" => burn::spin(),
        "trap" => burn::trap(),
        // Some would match the names of others, were they believed; some are none at all.
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
        // Some can lead to what another has, below `below/x/`.
        "below" => all(&["{+any}", "below/x{/any}", "below/x/{any}", "below/{any}"]),
        // Honest ones, whose variables can be completed: see `suggest`.
        "verbs" => all(&["errors/{kind}/{words}", "text/{length}"]),
        "" => Vec::new(),
        _ => return Err(Error::failed("the imp has no such templates")),
    })
}
