//! The tokens that the tools of all real providers cost a model. A client puts the whole list in front of each conversation.
//!
//! `docs/guide/tools.md` has the figure between two marks. After a change of a tool, this test writes it:
//! `BELLJAR_BLESS=1 cargo test --release -p belljar-tests --test integration clients::tokens`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Era, places, process, wait_until_within};
use serde_json::{Value, json};

/// The most tokens of the whole list: a hundredth of the context of common models.
const MOST: u64 = 2_500;

/// The page with the figure, and the lines around the figure.
const PAGE: &str = "docs/guide/tools.md";
const MARKS: [&str; 2] = ["<!-- tokens: the test clients::tokens writes from here -->\n", "<!-- tokens: to here -->\n"];

/// The real providers: the folders of `plugins/`. All their components must be built.
fn providers() -> Vec<String> {
    let folders = fs::read_dir(places::repository().join("plugins")).unwrap().map(|entry| entry.unwrap());
    let mut all: Vec<String> = folders
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    all.sort();
    assert!(all.len() >= 10, "{all:?}");
    all
}

/// Each listed tool of a server with all real providers, without grants.
fn tools() -> Vec<Value> {
    let site = crate::support::empty();
    providers().iter().for_each(|provider| site.mount(provider));
    site.config("list-time = \"300s\"\n");
    let mut client = site.stdio(Era::Stateless);
    client.patience = Duration::from_secs(400);
    // The list does not wait for slow compilations: it has notices instead.
    let mut page = wait_until_within(Duration::from_secs(400), "the tools of all providers", || {
        let page = client.request("tools/list", json!({})).unwrap();
        if page["_meta"]["dev.belljar/notices"].is_null() { Ok(page) } else { Err(page) }
    });
    assert_eq!(page["nextCursor"], Value::Null, "one page has all tools");
    client.close();
    page["tools"].as_array_mut().map(std::mem::take).unwrap()
}

/// The number of tokens of each tool. `None` if this machine lacks Node.
fn count(tools: &[Value]) -> Option<Vec<u64>> {
    let mut command = Command::new(places::node()?);
    command.arg(places::client_script("node/tokens.mjs")).arg(Value::from(tools.to_vec()).to_string());
    let output = process::run(command, Duration::from_secs(60));
    assert!(output.status.success(), "{}", crate::support::stdout_and_stderr(&output));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The generated part of the page. Rounded up to 50, so that a changed word does not change the page.
fn sentence(tools: usize, tokens: u64, own: u64) -> String {
    let rounded = |tokens: u64| tokens.div_ceil(50) * 50;
    format!(
        "The {tools} tools of all providers of this repository take at most {} tokens of a model's context (`o200k_base`). \
         belljar's own three tools take at most {} of them.\n",
        rounded(tokens),
        rounded(own)
    )
}

/// `page` with `part` between the marks. `None` if the marks are missing.
fn with_part(page: &str, part: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some([before, MARKS[0], part, MARKS[1], after].concat())
}

#[test]
#[expect(clippy::print_stdout, reason = "shows the tokens of each tool, for people")]
fn the_list_of_all_tools_is_short() {
    // `None`: `cargo xtask test` has already reported that this machine lacks the tools of other languages, or Node.
    if crate::providers::support::lacks_build_tools() || places::node().is_none() {
        return;
    }
    let tools = tools();
    let Some(counts) = count(&tools) else { return };
    assert_eq!(counts.len(), tools.len());
    let mut by_mount: BTreeMap<&str, u64> = BTreeMap::new();
    for (tool, tokens) in tools.iter().zip(&counts) {
        // belljar's own tools have no mount.
        let mount = tool["_meta"]["dev.belljar/mount"].as_str().unwrap_or("belljar");
        println!("{tokens:5}  {mount:10} {}", tool["name"].as_str().unwrap());
        *by_mount.entry(mount).or_default() += tokens;
    }
    let sum: u64 = counts.iter().sum();
    println!("{sum:5}  all: {by_mount:?}");
    let own = by_mount.get("belljar").copied().unwrap_or_default();
    assert!(own > 100, "belljar's own tools are listed: {by_mount:?}");
    assert!(sum <= MOST, "{} tools take {sum} tokens, more than {MOST}: {by_mount:?}", tools.len());

    let path = places::repository().join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let expected =
        with_part(&page, &sentence(tools.len(), sum, own)).unwrap_or_else(|| panic!("{PAGE} lacks the marks"));
    if std::env::var_os("BELLJAR_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(page == expected, "the figures in {PAGE} are not those of this run: run the test with BELLJAR_BLESS=1");
    }
}

#[test]
fn a_changed_figure_is_found() {
    let page = format!("a\n{}{}{}b\n", MARKS[0], sentence(12, 1_801, 640), MARKS[1]);
    assert!(page.contains("12 tools") && page.contains("1850 tokens") && page.contains("650 of them"), "{page}");
    assert_eq!(with_part(&page, &sentence(12, 1_850, 601)).as_ref(), Some(&page));
    assert_ne!(with_part(&page, &sentence(12, 1_851, 601)).as_ref(), Some(&page));
    assert_eq!(with_part("no marks", "a\n"), None);
}
