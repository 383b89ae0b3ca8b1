//! The files of MCP clients, and the belljar that serves all clients.

use std::path::Path;

use serde_json::Value;

use super::finding::SetupFinding;
use crate::cli::connect::{self, ClientEntry};
use crate::server::shared_socket::SharedSocket;

/// What the clients start, and the belljars that were started for them.
pub(super) fn findings() -> Vec<SetupFinding> {
    let mut all: Vec<SetupFinding> = connect::connected().into_iter().map(of_client).collect();
    if all.is_empty() {
        all.push(SetupFinding::warning(
            "clients",
            "no MCP client is connected",
            "to see which are installed: belljar connect",
        ));
    }
    for socket in SharedSocket::all().unwrap_or_default() {
        let Some(instance) = socket.files().instance() else { continue };
        let config = instance.config.display();
        let again = format!("run: belljar up --place {}", instance.place);
        all.push(match socket.status() {
            None => SetupFinding::bad("up", format!("the belljar for {config} was started, and does not serve"), again),
            Some(status) if status.version != env!("CARGO_PKG_VERSION") => SetupFinding::warning(
                "up",
                format!(
                    "the belljar for {config} is version {}, this is {}",
                    status.version,
                    env!("CARGO_PKG_VERSION")
                ),
                format!("{again} --restart"),
            ),
            Some(status) => SetupFinding::good(
                "up",
                format!("one belljar serves {config} (pid {}, clients: {})", status.pid, status.clients.len()),
            ),
        });
    }
    all
}

fn of_client(ClientEntry { name, title, entry }: ClientEntry) -> SetupFinding {
    const AREA: &str = "clients";
    match entry.map(|entry| missing_path(&entry)) {
        Err(why) => {
            SetupFinding::bad(AREA, format!("the configuration of {title} cannot be read: {why}"), "mend the file")
        }
        Ok(None) => SetupFinding::good(AREA, format!("{title} is connected")),
        Ok(Some(path)) => SetupFinding::bad(
            AREA,
            format!("{title} starts belljar with a path that does not exist: \"{path}\""),
            format!("run: belljar connect {name}"),
        ),
    }
}

/// The first absolute path in an entry that does not exist.
fn missing_path(entry: &Value) -> Option<String> {
    match entry {
        Value::String(text) => {
            let path = Path::new(text);
            (path.is_absolute() && !path.exists()).then(|| text.clone())
        }
        Value::Array(all) => all.iter().find_map(missing_path),
        Value::Object(all) => all.values().find_map(missing_path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_found_anywhere_in_an_entry() {
        assert_eq!(missing_path(&json!({ "command": "/proc/self/exe", "args": ["serve", "--config", "/"] })), None);
        let stale = json!({ "command": "/proc/self/exe", "args": ["serve", "--config", "/no/such/file"] });
        assert_eq!(missing_path(&stale).as_deref(), Some("/no/such/file"));
        assert_eq!(missing_path(&json!({ "url": "http://127.0.0.1/mcp" })), None);
    }
}
