//! Links that connect a client when a person opens them. Each client asks before it adds the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::entry::{Entry, Node};

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The link of Cursor: the entry as JSON in base64.
pub(super) fn cursor(name: &str, _: &Entry, node: &Node) -> String {
    let config = STANDARD.encode(node.to_json().to_string());
    format!("cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}", escaped(name), escaped(&config))
}

/// The link of VS Code: the entry as JSON, with its name.
pub(super) fn vscode(name: &str, _: &Entry, node: &Node) -> String {
    let mut json = node.to_json();
    if let Some(fields) = json.as_object_mut() {
        fields.insert("name".to_owned(), name.into());
    }
    format!("vscode:mcp/install?{}", escaped(&json.to_string()))
}

/// The link of Goose: each word of the command, or the URL.
pub(super) fn goose(name: &str, entry: &Entry, _: &Node) -> String {
    let target = match entry {
        Entry::Program { command, args } => {
            let words = args.iter().map(|word| format!("&arg={}", escaped(word)));
            format!("cmd={}{}", escaped(command), words.collect::<String>())
        }
        Entry::Url(url) => format!("url={}", escaped(url)),
    };
    let name = escaped(name);
    format!("goose://extension?{target}&id={name}&name={name}&description=Resources%20of%20sandboxed%20providers")
}
