//! `belljar connect` with files of clients in a home directory.

use std::fs;
use std::path::{Path, PathBuf};

use belljar_tests::{Client, Era, Site, process};
use serde_json::Value;

use crate::support::{WITNESS, empty, shared, stdout_and_stderr};

/// The files that the clients of one user have, each with other servers and settings.
const FILES: &[(&str, &str, &str)] = &[
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"git\": {\n      \"type\": \"stdio\",\n      \"command\": \"uvx\",\n      \"args\": [\n        \"mcp-server-git\"\n      ],\n      \"env\": { \"TOKEN\": \"t0p-secret\" }\n    }\n  }\n}\n",
    ),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "{\"globalShortcut\":\"\"}"),
    ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {\n  }\n}\n"),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t\"servers\": {\n\t\t\"a\": { \"type\": \"http\", \"url\": \"https://a.example\" },\n\t},\n\t\"inputs\": []\n}\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n//\n{\n  \"ui_font_size\": 16, // large\n  \"theme\": { \"mode\": \"system\", },\n}\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "model = \"o\" # mine\n\n[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n\n[tui]\nnotifications = true\n",
    ),
    ("gemini", ".gemini/settings.json", "{\r\n  \"theme\": \"Default\"\r\n}\r\n"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", ""),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_PROVIDER: openai # mine\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    name: developer\n    timeout: 300\n    type: builtin\nGOOSE_MODEL: x\n",
    ),
];

/// A site whose user has all clients.
fn user() -> (Site, PathBuf) {
    let mut site = empty();
    site.mount("clock");
    site.config("");
    let home = site.path("home");
    for (_, file, text) in FILES {
        site.write(Path::new("home").join(file), text);
    }
    site.env("HOME", &home);
    site.env("XDG_CONFIG_HOME", home.join(".config"));
    site.own_state(shared());
    (site, home)
}

#[test]
fn each_client_is_connected_once_and_its_file_restored_byte_for_byte() {
    let (site, home) = user();
    for (client, file, text) in FILES {
        let path = home.join(file);
        let connected = site.run(&["connect", client, "--yes"]);
        let shown = stdout_and_stderr(&connected);
        assert!(connected.status.success() && shown.contains("Connected."), "{client}: {shown}");
        assert!(!shown.contains("t0p-secret"), "{shown}");
        let written = fs::read_to_string(&path).unwrap();
        assert!(
            written.contains("belljar") && written.contains("serve") && written.contains("belljar.toml"),
            "{written}"
        );
        let again = stdout_and_stderr(&site.run(&["connect", client]));
        assert!(again.contains("is already connected; nothing was changed"), "{client}: {again}");
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        // The entry is changed, and the file is restored all the same.
        if *client != "claude-desktop" {
            let changed = site.run(&["connect", client, "--yes", "--http", "http://127.0.0.1:8808/mcp"]);
            assert!(changed.status.success(), "{}", stdout_and_stderr(&changed));
            let written = fs::read_to_string(&path).unwrap();
            assert!(written.contains("8808") && !written.contains("belljar.toml"), "{written}");
        }
        let removed = site.run(&["connect", client, "--remove", "--yes"]);
        assert!(removed.status.success(), "{client}: {}", stdout_and_stderr(&removed));
        assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{client}");
        let absent = stdout_and_stderr(&site.run(&["connect", client, "--remove"]));
        assert!(absent.contains("has no server \"belljar\"; nothing was changed"), "{absent}");
    }
}

#[test]
fn what_a_client_gets_starts_a_server_that_answers() {
    let (site, home) = user();
    assert!(site.run(&["connect", "claude-code", "--yes"]).status.success());
    let text = fs::read_to_string(home.join(".claude.json")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let own = &written["mcpServers"]["belljar"];
    let mut command = std::process::Command::new(own["command"].as_str().unwrap());
    command.args(own["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    // Clients start belljar in a directory of their own.
    command.current_dir("/").env_clear().envs(site.environment());
    let mut client = Client::start(command, Era::Stateless);
    assert!(client.text(WITNESS).contains("UTC"));
    assert!(client.close().status.success());
}

#[test]
fn a_new_file_is_made_and_deleted_and_changes_of_the_client_stay() {
    let (site, home) = user();
    let path = home.join(".cursor/mcp.json");
    fs::remove_file(&path).unwrap();
    assert!(site.run(&["connect", "cursor", "--yes"]).status.success());
    assert!(path.is_file());
    assert!(site.run(&["connect", "cursor", "--remove", "--yes"]).status.success());
    assert!(!path.exists());

    // The client rewrites the file in its own style.
    assert!(site.run(&["connect", "claude-code", "--yes"]).status.success());
    let path = home.join(".claude.json");
    let mut written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    written["numStartups"] = 8.into();
    fs::write(&path, written.to_string()).unwrap();
    assert!(site.run(&["connect", "claude-code", "--remove", "--yes"]).status.success());
    let left: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left["numStartups"], 8);
    assert!(left["mcpServers"].get("belljar").is_none() && left["mcpServers"].get("git").is_some(), "{left}");
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    let (site, home) = user();
    let stranger = "{ \"mcpServers\": { \"belljar\": { \"command\": \"/usr/bin/other\" } } }";
    fs::write(home.join(".cursor/mcp.json"), stranger).unwrap();
    fs::write(home.join(".gemini/settings.json"), "{ \"mcpServers\": [] ").unwrap();
    fs::remove_dir_all(home.join(".codeium")).unwrap();
    for (arguments, code, says) in [
        (&["connect", "claude", "--yes"][..], 2, "there is no client \"claude\"; "),
        (
            &["connect", "cursor", "--yes"],
            1,
            "has a server \"belljar\" that is not belljar; choose another name: --name NAME",
        ),
        (&["connect", "cursor", "--remove", "--yes"], 1, "is not belljar; take it out by hand"),
        (&["connect", "gemini", "--yes"], 1, "cannot use"),
        (&["connect", "windsurf", "--yes"], 1, "is not installed for this user"),
        (&["connect", "claude-code"], 2, "add --yes"),
        (&["connect", "claude-desktop", "--http", "http://127.0.0.1:8808/mcp"], 2, "leave out --http"),
        (&["connect", "cursor", "--http", "mcp.example"], 2, "expected a URL"),
        (&["connect", "cursor", "--name", "a b"], 2, "letters, digits"),
        (&["connect", "--remove"], 2, "expected a client; one of: claude-code, claude-desktop"),
        (&["connect", "zed", "--links"], 2, "opens no links"),
    ] {
        let output = site.run(arguments);
        let shown = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}");
        assert!(shown.contains(says), "{arguments:?}: {shown}");
    }
    assert_eq!(fs::read_to_string(home.join(".cursor/mcp.json")).unwrap(), stranger);
    assert_eq!(fs::read_to_string(home.join(".claude.json")).unwrap(), FILES[0].2);
}

#[test]
fn clients_are_listed_and_entries_and_links_are_printed() {
    let (site, _) = user();
    assert!(site.run(&["connect", "zed", "--yes"]).status.success());
    let listed = site.run_json(&["connect"]);
    let state = |name: &str| {
        let all = listed["clients"].as_array().unwrap();
        all.iter().find(|client| client["client"] == name).unwrap().clone()
    };
    assert_eq!((&state("zed")["connected"], &state("zed")["installed"]), (&true.into(), &true.into()));
    assert_eq!((&state("codex")["connected"], &state("codex")["installed"]), (&false.into(), &true.into()));
    let printed = process::run(
        site.command(site.arguments(&["connect", "codex", "--print", "--http", "http://127.0.0.1:8808/mcp"])),
        belljar_tests::DEADLINE,
    );
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed, "[mcp_servers.belljar]\nurl = \"http://127.0.0.1:8808/mcp\"\n");
    let links = stdout_and_stderr(&site.run(&["connect", "--links"]));
    for start in ["cursor://", "vscode:mcp/install?", "goose://extension?"] {
        assert!(links.contains(start), "{links}");
    }
}
