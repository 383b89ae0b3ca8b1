//! The console of a real server in a real browser: nothing that a client or a provider says becomes markup or script, and
//! the page can be read by everyone.
//!
//! To make the picture of `docs/guide/operate.md` again: `BELLJAR_BLESS=1 cargo test --release -p belljar-tests --test
//! integration server::console`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Client, Era, Server, debian, is_deceptive, places};
use serde_json::{Value, json};

use super::admin::started;

/// Texts that a browser, a terminal or a person could take for something else.
fn hostile_texts() -> Vec<String> {
    vec![
        "<img src=x onerror=window.__pwned=1>".to_owned(),
        "\"><script>window.__pwned=1</script>".to_owned(),
        "javascript:window.__pwned=1".to_owned(),
        "</code></td></table><h1>belljar is fine</h1>".to_owned(),
        "\u{202e}gnp.exe\u{2066}\u{200f}".to_owned(),
        "a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}".repeat(20),
        "line\nbreak\tand\u{1b}[2J".to_owned(),
        "W".repeat(3000),
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{fdfd}".to_owned(),
    ]
}

/// Sends requests with hostile texts in every place that a client can choose.
fn attack(server: &Server) {
    for text in hostile_texts() {
        let mut client = Client::connect_silently(server.wire(Era::Session), Era::Session);
        let about = json!({ "name": text, "version": text });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        client.request("initialize", hello).unwrap();
        client.notify("notifications/initialized", json!({}));
        let _ = client.request("resources/read", json!({ "uri": text }));
        let _ = client.request("resources/read", json!({ "uri": format!("belljar://fixture/{text}") }));
        let _ = client.request("tools/call", json!({ "name": text }));
        let _ = client.request(&text, json!({}));
    }
}

/// Reads of each kind: allowed, refused, stopped by a limit.
fn use_all(server: &Server) {
    let mut client = server.client(Era::Stateless);
    for at in 0..10 {
        client.text("belljar://fixture/static-text");
        let _ = client.read(&format!("belljar://fixture/nothing-{at}"));
        client.text(&format!("belljar://hostile/http/host-{at}.invalid"));
    }
    client.read("belljar://hostile/spin").unwrap_err();
    client.uris();
}

/// What the browser sees. `None` if this machine lacks Node or the browser.
fn look(admin: SocketAddr, pictures: &Path) -> Option<Value> {
    let (node, chromium) = (places::node()?, places::program(&debian::CHROMIUM)?);
    let mut command = Command::new(node);
    command.arg(places::client_script("node/console.mjs")).arg(format!("http://localhost:{}/", admin.port()));
    command.arg(chromium).arg(pictures);
    let output = belljar_tests::process::run(command, Duration::from_secs(400));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    Some(serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}")))
}

const LIMIT: &str = "[mounts.hostile]\n[mounts.hostile.limits]\nfuel = 1000000";

#[test]
fn nothing_that_others_say_runs_in_the_console_and_everybody_can_read_it() {
    let (site, server, admin) = started(LIMIT);
    attack(&server);
    use_all(&server);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        // Requests go on while the browser looks.
        let live = scope.spawn(|| {
            let mut client = server.client(Era::Stateless);
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                client.text("belljar://fixture/static-text");
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let seen = std::panic::catch_unwind(|| look(admin, &site.path("pictures")));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        live.join().unwrap();
        seen
    });
    let Some(seen) = seen.unwrap() else { return };
    assert!(server.stop().status.success());
    // No script ran, and no text became markup.
    assert_eq!((&seen["pwned"], &seen["dialogs"]), (&Value::Null, &json!(0)), "{seen}");
    for none in ["csp_violations", "console_errors", "foreign_requests"] {
        assert_eq!(seen[none], json!([]), "{none}");
    }
    assert_eq!(seen["raw_bidi_controls"], false);
    let sections = seen["sections"].as_object().unwrap();
    let text = sections.values().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    assert!(!text.chars().any(|c| c != '\n' && is_deceptive(c)), "{text:?}");
    for part in
        ["<img src=x", "fixture", "hostile", "grant hostile --http http://host-9.invalid", "mounts.hostile.limits.fuel"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Everybody can read it: light and dark, narrow and wide, by keyboard.
    let views = seen["views"].as_array().unwrap();
    assert_eq!(views.len(), 4);
    for view in views {
        assert_eq!(view["scrolls_sideways"], false, "{view}");
        assert_eq!(view["boxes_that_scroll_sideways"], json!([]), "{view}");
        assert!(view["contrast"]["checked"].as_u64().unwrap() > 100, "{view}");
        assert_eq!(view["contrast"]["failures"], 0, "{view}");
    }
    let stops = seen["tab_order"].as_array().unwrap();
    assert!(stops.len() > 5, "{stops:?}");
    assert!(stops.iter().all(|stop| stop["focus_is_visible"] == true && stop["name"] != ""), "{stops:?}");
    assert_eq!(seen["pause_stops"], true);
    if std::env::var_os("BELLJAR_BLESS").is_some() {
        take_picture();
    }
}

/// Takes the picture of the guide, of a site with usual requests.
fn take_picture() {
    let (site, server, admin) = started(LIMIT);
    use_all(&server);
    look(admin, &site.path("pictures")).unwrap();
    let place = places::repository().join("docs/guide/console.png");
    std::fs::copy(site.path("pictures/console-light-1400.png"), place).unwrap();
}

#[test]
fn the_data_of_the_console_is_bounded() {
    let (site, server, admin) = started("");
    let mut client = server.client(Era::Stateless);
    for at in 0..600 {
        client.text(&format!("belljar://hostile/http/host-{at}.invalid"));
        let _ = client.read(&format!("belljar://fixture/{}", "x".repeat(1500)));
    }
    let state = super::admin::state(admin);
    assert_eq!(state["denials"].as_array().map(Vec::len), Some(200));
    assert_eq!(state["slowest"].as_array().map(Vec::len), Some(50));
    assert_eq!(state["denials"][0]["what"].as_str().map(|what| what.contains("host-599")), Some(true), "latest first");
    assert!(state.to_string().len() < 1 << 20);
    drop((client, site));
    assert!(server.stop().status.success());
}
