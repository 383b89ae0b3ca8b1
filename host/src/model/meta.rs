//! Names of keys in `_meta`: belljar's own, and the check of names from providers.
//!
//! MCP asks for prefixes in reverse DNS notation. belljar's prefix is `dev.belljar/`: its labels form a legal prefix,
//! and the second label is the product's name. A provider cannot use it.

/// The prefix of all of belljar's own names.
pub const PREFIX: &str = "dev.belljar/";

/// The mount of a resource or result.
pub const MOUNT: &str = "dev.belljar/mount";

/// The digest of the component that produced a result.
pub const DIGEST: &str = "dev.belljar/digest";

/// The position of contents that are a part of their resource, and the URI of the next part.
pub const PART: &str = "dev.belljar/part";

/// In an entry: the resource is longer than one read gives, and is read in parts.
pub const PARTS: &str = "dev.belljar/parts";

/// The notices of a page: the entries that are missing, and why.
pub const NOTICES: &str = "dev.belljar/notices";

/// What comes before the provider's own names of tools in their public names.
pub const TOOL_PREFIX: &str = "dev.belljar/toolPrefix";

/// The view of a tool, and what a view may do (MCP Apps).
pub const UI: &str = "ui";

/// The page of a tool's view, by its old name.
pub const UI_FLAT: &str = "ui/resourceUri";

/// The error of a failed tool call, for programs: `kind`, `mount`, `limit`, `hint`.
pub const ERROR: &str = "dev.belljar/error";

/// The longest name, in bytes.
const MAX_NAME: usize = 128;

/// Second labels of the prefixes that MCP reserves (2026-07-28, basic/index, `_meta`).
const PROTOCOL: [&str; 2] = ["modelcontextprotocol", "mcp"];

/// Names without a prefix to which MCP or its extensions give a meaning: progress, trace context, views.
const PROTOCOL_NAMES: [&str; 5] = ["progressToken", "traceparent", "tracestate", "baggage", "ui"];

/// First labels of further reserved prefixes: belljar's own before 0.2, and those that the host of a view reads.
const RESERVED: [&str; 2] = ["belljar", "ui"];

/// True if a provider may use `name`: it follows MCP's grammar, and neither the protocol nor belljar reserves it.
pub fn is_free(name: &str) -> bool {
    name.len() <= MAX_NAME
        && match name.split_once('/') {
            None => is_name(name) && !PROTOCOL_NAMES.iter().any(|bare| name.eq_ignore_ascii_case(bare)),
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
        && !is_one_of(labels.first(), &RESERVED)
}

/// True for a label: a letter first, a letter or digit last, hyphens allowed between.
fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// True for a name: a letter or digit first and last; `-`, `_` and `.` allowed between.
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
    fn only_names_of_the_protocol_and_of_belljar_are_reserved() {
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
    fn belljars_own_names_are_valid() {
        for own in [MOUNT, DIGEST, PART, PARTS, NOTICES, TOOL_PREFIX, ERROR] {
            let (prefix, name) = own.split_once('/').unwrap();
            assert!(own.starts_with(PREFIX) && prefix.split('.').all(is_label) && is_name(name), "{own}");
            assert!(!PROTOCOL.contains(&prefix.split('.').nth(1).unwrap()), "{own}");
        }
    }
}
