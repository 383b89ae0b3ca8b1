//! Names in `_meta`: belljar's own, and which a provider may use.
//!
//! MCP asks for prefixes in reverse DNS notation. belljar's is `dev.belljar/`: its labels are a lawful prefix, their second
//! one is the product's name, and nobody else has a reason to use it. A provider cannot put such a name into an answer.

/// The prefix of every name that belljar itself puts into `_meta`.
pub const PREFIX: &str = "dev.belljar/";

/// Which mount something comes from.
pub const MOUNT: &str = "dev.belljar/mount";

/// Which component's bytes gave it.
pub const DIGEST: &str = "dev.belljar/digest";

/// What a page leaves out, and why.
pub const NOTICES: &str = "dev.belljar/notices";

/// Why the call of a tool failed, for programs: `kind`, `mount`, `limit`, `hint`.
pub const ERROR: &str = "dev.belljar/error";

/// Bytes of a name.
const MAX: usize = 128;

/// Second labels of the prefixes that MCP keeps for itself (2026-07-28, basic/index, `_meta`).
const PROTOCOL: [&str; 2] = ["modelcontextprotocol", "mcp"];

/// Names without a prefix that MCP or its extensions give a meaning: progress, trace context, views.
const BARE: [&str; 5] = ["progressToken", "traceparent", "tracestate", "baggage", "ui"];

/// First labels of the prefixes under which hosts look for what only belljar (before 0.2) or a view's host may say.
const OWN: [&str; 2] = ["belljar", "ui"];

/// True if a provider may use `name`: it follows the grammar of MCP, and means nothing to the protocol or to belljar.
pub fn is_free(name: &str) -> bool {
    name.len() <= MAX
        && match name.split_once('/') {
            None => is_name(name) && !BARE.iter().any(|bare| name.eq_ignore_ascii_case(bare)),
            Some((prefix, name)) => (name.is_empty() || is_name(name)) && is_free_prefix(prefix),
        }
}

fn is_free_prefix(prefix: &str) -> bool {
    let is_one_of = |label: Option<&&str>, all: &[&str]| {
        label.is_some_and(|label| all.iter().any(|one| label.eq_ignore_ascii_case(one)))
    };
    let labels: Vec<&str> = prefix.split('.').collect();
    let own: Vec<&str> = PREFIX.trim_end_matches('/').split('.').collect();
    let is_own = labels.len() >= own.len() && labels.iter().zip(&own).all(|(a, b)| a.eq_ignore_ascii_case(b));
    labels.iter().all(|label| is_label(label))
        && !is_own
        && !is_one_of(labels.get(1), &PROTOCOL)
        && !is_one_of(labels.first(), &OWN)
}

/// Begins with a letter, ends with a letter or digit, has hyphens between.
fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Begins and ends with a letter or digit.
fn is_name(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(is_end)
        && name.ends_with(is_end)
        && name.chars().all(|c| is_end(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_protocol_and_of_belljar_are_taken_and_no_others() {
        for taken in [
            "io.modelcontextprotocol/serverInfo",
            "IO.ModelContextProtocol/serverInfo",
            "dev.mcp/x",
            "org.modelcontextprotocol.api/x",
            "com.mcp.tools/x",
            "io.modelcontextprotocol/",
            "progressToken",
            "traceparent",
            "tracestate",
            "baggage",
            "Traceparent",
            "ui",
            "ui/resourceUri",
            MOUNT,
            DIGEST,
            NOTICES,
            ERROR,
            "dev.belljar.x/y",
            "DEV.Belljar/mount",
            "belljar/mount",
        ] {
            assert!(!is_free(taken), "{taken}");
        }
        for free in [
            "com.example.mcp/x",
            "com.example.modelcontextprotocol/x",
            "mcp.example/x",
            "com.example/belljar",
            "com.example.belljar/x",
            "com.example/",
            "a-b.c-d/e_f.g-h",
            "plain",
            "traceparents",
            "com.example/traceparent",
            "com.example/ui",
        ] {
            assert!(is_free(free), "{free}");
        }
        for malformed in [
            "",
            "/",
            "/x",
            "1a.b/x",
            "-a/x",
            "a-/x",
            "a..b/x",
            "a b/x",
            "a/-",
            "a/b/c",
            "a/\u{e9}",
            "\u{e9}/a",
            "x\n",
            &"a".repeat(129),
        ] {
            assert!(!is_free(malformed), "{malformed}");
        }
    }

    #[test]
    fn belljars_own_names_are_lawful() {
        for own in [MOUNT, DIGEST, NOTICES, ERROR] {
            let (prefix, name) = own.split_once('/').unwrap();
            assert!(own.starts_with(PREFIX) && prefix.split('.').all(is_label) && is_name(name), "{own}");
            assert!(!PROTOCOL.contains(&prefix.split('.').nth(1).unwrap()), "{own}");
        }
    }
}
