//! Samples of each client's file: connected, changed and taken out again.

use super::client::CLIENTS;
use super::entry::{self, Entry};
use super::format::Format;
use super::note::Note;
use super::*;

/// Files as their clients, and people, write them.
const SAMPLES: &[(Format, &str)] = &[
    (Format::Json, ""),
    (Format::Json, "{}"),
    (Format::Json, "{ }\n"),
    (Format::Json, "{\n  \"mcpServers\": {}\n}\n"),
    (
        Format::Json,
        "{\n\t\"mcpServers\": {\n\t\t\"git\": { \"command\": \"uvx\", \"args\": [\"mcp-server-git\"] }\n\t}\n}",
    ),
    (Format::Json, "{\"numStartups\":7,\"tips\":{\"a\":1},\"projects\":{\"/home/you/a\":{\"allowedTools\":[]}}}"),
    (
        Format::Json,
        "// Zed settings\n{\n  \"theme\": \"One\", // dark\n  /* servers */\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n    },\n  },\n}\n",
    ),
    (
        Format::Json,
        "{\r\n  \"mcpServers\": {\r\n    \"a\": { \"url\": \"https://x.example\" }\r\n  },\r\n  \"z\": 1\r\n}\r\n",
    ),
    (Format::Toml, ""),
    (
        Format::Toml,
        "model = \"o\"\n\n[mcpServers.git] # versions\ncommand = \"uvx\"\nargs = [\n  \"a\", # one\n]\n\n[tui]\nx = true\n",
    ),
    (Format::Toml, "# only a comment\n"),
    (Format::Toml, "mcpServers.git = { command = \"uvx\" }\n"),
    (Format::Yaml, ""),
    (Format::Yaml, "GOOSE_MODEL: x # model\n"),
    (Format::Yaml, "extensions:\nGOOSE_MODEL: x\n"),
    (Format::Yaml, "mcpServers: {}\n"),
    (Format::Yaml, "a: 1"),
    (
        Format::Yaml,
        "mcpServers:\n  # built in\n  developer:\n    bundled: true\n    envs: {}\n    args: []\n    text: |\n      two\n      lines\n\n  # last\n  memory:\n    enabled: false\nGOOSE_PROVIDER: anthropic\n",
    ),
    (Format::Yaml, "mcpServers:\n    ünï: { type: stdio }\n"),
];

fn program(config: &str) -> Entry {
    Entry::Program { command: "/usr/bin/belljar".to_owned(), args: vec!["serve".to_owned(), config.to_owned()] }
}

#[test]
fn a_connection_is_found_changed_and_taken_out_byte_for_byte() {
    let file = Path::new("/home/you/file");
    for client in CLIENTS {
        for (format, sample) in SAMPLES {
            let set = |text: &str, entry: &Entry| {
                let node = client.node(entry).map_err(Failure::message).unwrap();
                let after = format.set(Some(text), "mcpServers", "belljar", &node).unwrap();
                let found = format.get(Some(&after), "mcpServers", "belljar").unwrap();
                assert_eq!(found, Some(node.to_json()), "{} {after}", client.name);
                after
            };
            let others = |text: &str| match format {
                Format::Json => text.matches("\"command\": \"x\"").count(),
                _ => text
                    .lines()
                    .filter(|line| !line.trim().is_empty() && sample.lines().any(|own| own == *line))
                    .count(),
            };
            let first = set(sample, &program("a"));
            assert!(entry::is_own(&format.get(Some(&first), "mcpServers", "belljar").unwrap().unwrap()));
            assert!(others(&first) >= others(sample).saturating_sub(1), "{first}");
            assert_eq!(set(&first, &program("a")), first, "{}", client.name);
            let undone = Note::of(file, Some(sample), &first).undo(&first);
            assert_eq!(undone.as_deref(), Some(*sample), "{} {first}", client.name);
            // A change of the entry, and a file whose note is lost.
            let second = set(&first, &program("another"));
            let removed = format.remove(&second, "mcpServers", "belljar").unwrap();
            assert_eq!(format.get(Some(&removed), "mcpServers", "belljar").unwrap(), None, "{removed}");
            assert_eq!(others(&removed), others(&first), "{removed}");
        }
    }
}

#[test]
fn every_url_is_written_in_the_key_of_its_client() {
    let url = Entry::Url("https://mcp.example/mcp".to_owned());
    let key = |name: &str| {
        let node = find(name).map_err(Failure::message).unwrap().node(&url);
        node.map(|node| node.to_json().to_string()).map_err(Failure::message)
    };
    assert_eq!(key("cursor").unwrap(), "{\"url\":\"https://mcp.example/mcp\"}");
    assert_eq!(key("gemini").unwrap(), "{\"httpUrl\":\"https://mcp.example/mcp\"}");
    assert_eq!(key("windsurf").unwrap(), "{\"serverUrl\":\"https://mcp.example/mcp\"}");
    assert_eq!(key("vscode").unwrap(), "{\"type\":\"http\",\"url\":\"https://mcp.example/mcp\"}");
    assert!(key("goose").unwrap().contains("\"uri\":\"https://mcp.example/mcp\""));
    assert!(key("claude-desktop").unwrap_err().contains("leave out --http"));
    assert!(find("claude").map_err(Failure::message).err().unwrap().contains("claude-code"));
}

#[test]
fn files_that_cannot_be_edited_are_named_with_the_reason() {
    let node = CLIENTS.first().unwrap().node(&program("a")).map_err(Failure::message).unwrap();
    for (format, text, says) in [
        (Format::Json, "{ \"mcpServers\": 3 }", "\"mcpServers\": expected an object"),
        (Format::Json, "[]", "the whole file"),
        (Format::Json, "{ 'a': 1 }", "Single"),
        (Format::Json, "{", "Unterminated"),
        (Format::Toml, "mcpServers = 3", "\"mcpServers\": expected a table"),
        (Format::Toml, "a = ", "line 1"),
        (Format::Yaml, "mcpServers: { a: { b: 1 } }", "\"mcpServers\": expected a block of lines"),
        (Format::Yaml, "- 1", "the whole file"),
        (Format::Yaml, "{ a: 1 }", "the whole file"),
        (Format::Yaml, "a: 1\n---\nb: 1\n", "the whole file"),
        (Format::Yaml, "a: [", "line 2"),
    ] {
        let error = format.set(Some(text), "mcpServers", "belljar", &node).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(&says.to_lowercase()), "{text}: {error}");
    }
}

#[test]
fn a_note_that_no_longer_fits_is_not_used() {
    let note = Note::of(Path::new("/f"), Some("a b"), "a new b");
    assert_eq!(note.undo("x a new b y").as_deref(), Some("x a b y"));
    assert_eq!(note.undo("a b"), None);
    assert_eq!(note.undo("new new "), None);
}

#[test]
fn links_escape_what_they_carry() {
    let entry = Entry::Program { command: "/opt/a b".to_owned(), args: vec!["--config=\"ü\"".to_owned()] };
    let link = |name: &str| {
        let client = find(name).map_err(Failure::message).unwrap();
        client.link.unwrap()("bell-jar", &entry, &client.node(&entry).map_err(Failure::message).unwrap())
    };
    assert!(link("cursor").starts_with("cursor://anysphere.cursor-deeplink/mcp/install?name=bell%2Djar&config=ey"));
    assert!(link("vscode").starts_with("vscode:mcp/install?%7B%22"));
    assert_eq!(
        link("goose"),
        "goose://extension?cmd=%2Fopt%2Fa%20b&arg=%2D%2Dconfig%3D%22%C3%BC%22&id=bell%2Djar&name=bell%2Djar&description=Resources%20of%20sandboxed%20providers"
    );
    for name in ["cursor", "vscode", "goose"] {
        assert!(link(name).bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
