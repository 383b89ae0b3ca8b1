//! Compares the figures of a run with the performance targets.

use crate::{Record, Spread, spread};

/// The names of the rows that have targets.
pub mod names {
    /// belljar: each read has a fresh sandbox, all limits, and an audit record.
    pub const BELLJAR: &str = "belljar";
    /// belljar without worker processes: `isolation = "none"`.
    pub const UNISOLATED: &str = "belljar, isolation none";
    /// A server with the same SDK (rmcp), but without a sandbox.
    pub const NATIVE: &str = "rmcp, no sandbox";
    /// A loop or hyper alone, with the same answer: no framework, no sandbox.
    pub const BARE: &str = "bare server";
    /// The same, where each read runs the guest on wasmtime alone, in an instance of its own.
    pub const LIMIT: &str = "bare server and engine";
    /// A server with the Python framework FastMCP.
    pub const FASTMCP: &str = "FastMCP";
    /// A server with the MCP SDK for TypeScript.
    pub const SDK: &str = "TypeScript SDK";
    /// The MCP reference server for Node.
    pub const EVERYTHING: &str = "server-everything";
    /// The MCP reference server for files. It supports only stdio.
    pub const FILESYSTEM: &str = "server-filesystem, on stdio";
}

/// The bound of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One performance target.
struct Aim {
    /// The description of the measured figure.
    what: &'static str,
    unit: &'static str,
    bound: Bound,
    /// The bound of the stretch target.
    stretch: Option<f64>,
    /// Computes the figure from the rows.
    measured: fn(&Record) -> Option<Spread>,
}

/// The result for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The name of the target.
    pub what: &'static str,
    /// The bound, for people.
    pub aim: String,
    /// The figure, for people. Empty if it was not measured.
    pub measured: String,
    /// `met`, `met, the stretch too`, `missed`, `no data`.
    pub word: &'static str,
}

fn ratio(record: &Record, group: &str, row: &str, base: &str) -> Option<Spread> {
    Some(record.find(group, row)?.over(record.find(group, base)?))
}

fn value(record: &Record, group: &str, row: &str) -> Option<Spread> {
    Some(record.find(group, row)?.spread())
}

/// The group of the measurements within one process.
const INSIDE: &str = "one process, 1 KiB text";

/// The group of what a caller of the sandbox waits for, on the wall.
pub const CALLER_WAIT: &str = "what the caller of the sandbox waits for, 1 KiB text";

/// The group of reads by 16 clients over HTTP.
pub(crate) const HTTP_16: &str = "HTTP, 1 KiB text, 16 clients";

/// The group of 16 reads in flight over stdio.
pub(crate) const STDIO_16: &str = "stdio, 1 KiB text, 16 in flight";

/// The ratio of two costs of a fresh sandbox: with the engine's default settings, and with belljar's settings. The cost
/// is the additional time over a call on a live instance.
fn stock(record: &Record) -> Option<Spread> {
    let [live, fresh, stock] = ["live instance", "Sandbox::call", "stock pooling"].map(|row| record.find(INSIDE, row));
    let (live, fresh, stock) = (live?, fresh?, stock?);
    let times = |live: f64, fresh: f64, stock: f64| (stock - live) / (fresh - live);
    let rounds = live.rounds.iter().zip(&fresh.rounds).zip(&stock.rounds);
    let rounds: Vec<f64> = rounds.map(|((live, fresh), stock)| times(*live, *fresh, *stock)).collect();
    Some(spread(&rounds))
}

const AIMS: [Aim; 39] = {
    use Bound::{AtLeast, AtMost};
    use names::{BELLJAR, EVERYTHING, FASTMCP, FILESYSTEM, LIMIT, NATIVE, UNISOLATED};
    const fn aim(what: &'static str, unit: &'static str, bound: Bound, measured: fn(&Record) -> Option<Spread>) -> Aim {
        Aim { what, unit, bound, stretch: None, measured }
    }
    const fn stretched(mut aim: Aim, stretch: f64) -> Aim {
        aim.stretch = Some(stretch);
        aim
    }
    [
        aim("`sandbox::call` of a 1 KiB read over the bare tuned engine", "x", AtMost(1.15), |r| {
            ratio(r, INSIDE, "Sandbox::call", "bare engine")
        }),
        aim("a fresh sandbox over a call on a live instance, 1 KiB", "us", AtMost(10.0), |r| {
            Some(r.find(INSIDE, "Sandbox::call")?.above(r.find(INSIDE, "live instance")?))
        }),
        aim("the same with stock pooling settings, over ours", "x", AtLeast(4.0), stock),
        stretched(
            aim(
                "HTTP read 1 KiB, 16 clients, isolation none, over a bare server and the bare engine",
                "x",
                AtMost(1.5),
                |r| ratio(r, HTTP_16, UNISOLATED, LIMIT),
            ),
            1.3,
        ),
        aim("the same with workers, the default", "x", AtMost(1.9), |r| ratio(r, HTTP_16, BELLJAR, LIMIT)),
        aim(
            "stdio read 1 KiB, 16 in flight, isolation none, over a bare loop and the bare engine",
            "x",
            AtMost(1.3),
            |r| ratio(r, STDIO_16, UNISOLATED, LIMIT),
        ),
        aim("the same with workers, the default", "x", AtMost(1.7), |r| ratio(r, STDIO_16, BELLJAR, LIMIT)),
        aim("stdio read 1 KiB, belljar over bare rmcp with no sandbox at all", "x", AtMost(1.2), |r| {
            ratio(r, "stdio, 1 KiB text", BELLJAR, NATIVE)
        }),
        aim("HTTP read 1 KiB, 16 clients, belljar over bare rmcp", "x", AtMost(0.8), |r| {
            ratio(r, HTTP_16, BELLJAR, NATIVE)
        }),
        aim("HTTP read 1 KiB, FastMCP over belljar", "x", AtLeast(16.0), |r| {
            ratio(r, "HTTP, 1 KiB text", FASTMCP, BELLJAR)
        }),
        aim("the same with 16 clients", "x", AtLeast(16.0), |r| ratio(r, HTTP_16, FASTMCP, BELLJAR)),
        aim("HTTP read 1 KiB, server-everything over belljar (warm)", "x", AtLeast(7.0), |r| {
            ratio(r, "HTTP, 1 KiB text", EVERYTHING, BELLJAR)
        }),
        aim("the same with 16 clients", "x", AtLeast(7.0), |r| ratio(r, HTTP_16, EVERYTHING, BELLJAR)),
        aim("4 KiB file through `files` over HTTP, over server-filesystem on stdio", "x", AtMost(1.0), |r| {
            ratio(r, "HTTP, 4 KiB file", BELLJAR, FILESYSTEM)
        }),
        aim("1 MiB text over HTTP, belljar over bare rmcp", "x", AtMost(1.3), |r| {
            ratio(r, "HTTP, 1 MiB text", BELLJAR, NATIVE)
        }),
        aim("8 MiB text over stdio, belljar over bare rmcp", "x", AtMost(1.1), |r| {
            ratio(r, "stdio, 8 MiB text", BELLJAR, NATIVE)
        }),
        aim("8 MiB text over HTTP, belljar over bare rmcp", "x", AtMost(1.1), |r| {
            ratio(r, "HTTP, 8 MiB text", BELLJAR, NATIVE)
        }),
        aim("HTTP read 1 KiB, worker processes over isolation none", "x", AtMost(1.25), |r| {
            ratio(r, "HTTP, 1 KiB text", BELLJAR, UNISOLATED)
        }),
        aim("the same with 16 clients", "x", AtMost(1.25), |r| {
            ratio(r, "HTTP, 1 KiB text, 16 clients", BELLJAR, UNISOLATED)
        }),
        aim("the same with 1 MiB", "x", AtMost(1.3), |r| ratio(r, "HTTP, 1 MiB text", BELLJAR, UNISOLATED)),
        aim("all limits, metering and audit on against off, a 1 ms read of many small calls", "x", AtMost(1.15), |r| {
            ratio(r, "limits and records, a read of 1 ms: many small calls", "on", "off")
        }),
        aim("the same, a 1 ms read that is one loop", "x", AtMost(1.05), |r| {
            ratio(r, "limits and records, a read of 1 ms: a loop", "on", "off")
        }),
        aim("the same, a 1 ms read of a large body", "x", AtMost(1.05), |r| {
            ratio(r, "limits and records, a read of 1 ms: a large body", "on", "off")
        }),
        aim("what the caller of the sandbox waits for with an instance made ahead, 1 KiB", "us", AtMost(4.0), |r| {
            value(r, CALLER_WAIT, "with a spare instance")
        }),
        aim("100 cached Rust components ready and listed", "ms", AtMost(100.0), |r| {
            value(r, "start, warm cache", "100 components")
        }),
        aim("1,000 cached Rust components ready and listed", "ms", AtMost(400.0), |r| {
            value(r, "start, warm cache", "1,000 components")
        }),
        aim("RSS per idle mounted Rust component", "MiB", AtMost(0.6), |r| {
            value(r, "memory, idle", "each mounted component")
        }),
        aim("RSS of an idle host", "MiB", AtMost(40.0), |r| value(r, "memory, idle", "a host without mounts")),
        aim("read cost at 1,000 mounts and 1,000,000 listed resources over 1 mount", "x", AtMost(1.1), |r| {
            ratio(r, "reading at scale", "1,000 mounts, 1,000,000 resources", "1 mount")
        }),
        aim("a remembered access token and a decision by 20 rules", "us", AtMost(3.0), |r| {
            value(r, "authorization", "a remembered token and a decision")
        }),
        aim("an ES256 access token for the first time", "us", AtMost(150.0), |r| {
            value(r, "authorization", "an ES256 token for the first time")
        }),
        aim("HTTP read 1 KiB with a remembered token and 20 rules, over one without both", "x", AtMost(1.05), |r| {
            let group = "a read of 1 KiB over HTTP";
            ratio(r, group, "a remembered token and 20 rules", "anonymous, without rules")
        }),
        aim("a list of 1,000,000 entries filtered by 20 rules, over an unfiltered one", "x", AtMost(1.1), |r| {
            ratio(r, "a list of 1,000,000 entries over HTTP", "by 20 rules, over HTTP", "for everybody, over HTTP")
        }),
        aim("p99 of a read beside 50 principals at their quota, over alone", "x", AtMost(1.5), |r| {
            ratio(r, "p99 of a read over HTTP, with a key", "beside 50 principals at their quota", "alone")
        }),
        aim("a call of a tool that returns 1 KiB, over a read of 1 KiB", "x", AtMost(1.15), |r| {
            ratio(r, "1 KiB by a tool", "a call of a tool", "a read")
        }),
        aim("100 skills with 2,000 files, the first list", "us", AtMost(300_000.0), |r| {
            value(r, "skills", "the first list")
        }),
        aim("the same when nothing changed", "us", AtMost(5000.0), |r| {
            value(r, "skills", "a list when nothing changed")
        }),
        aim("(beside the aims) stdio read 1 KiB, FastMCP over belljar", "x", AtLeast(1.0), |r| {
            ratio(r, "stdio, 1 KiB text", FASTMCP, BELLJAR)
        }),
        aim("(beside the aims) stdio read 1 KiB, server-everything over belljar", "x", AtLeast(1.0), |r| {
            ratio(r, "stdio, 1 KiB text", EVERYTHING, BELLJAR)
        }),
    ]
};

/// The verdicts on all targets, in a fixed order.
pub fn verdicts(record: &Record) -> Vec<Verdict> {
    AIMS.iter().map(|aim| judge(aim, (aim.measured)(record))).collect()
}

fn judge(aim: &Aim, measured: Option<Spread>) -> Verdict {
    let unit = if aim.unit == "x" { "x".to_owned() } else { format!(" {}", aim.unit) };
    let is_met = |spread: Spread, bound: f64| match aim.bound {
        Bound::AtMost(_) => spread.value <= bound,
        Bound::AtLeast(_) => spread.value >= bound,
    };
    let (sign, bound) = match aim.bound {
        Bound::AtMost(most) => ("<=", most),
        Bound::AtLeast(least) => (">=", least),
    };
    let stretch = aim.stretch.map(|stretch| format!(", stretch {stretch}{unit}")).unwrap_or_default();
    let word = match measured {
        // NaN is neither above nor below a bound.
        None => "no data",
        Some(spread) if !spread.value.is_finite() => "no data",
        Some(spread) if aim.stretch.is_some_and(|stretch| is_met(spread, stretch)) => "met, the stretch too",
        Some(spread) if is_met(spread, bound) => "met",
        Some(_) => "missed",
    };
    Verdict {
        what: aim.what,
        aim: format!("{sign} {bound}{unit}{stretch}"),
        measured: measured.map_or(String::new(), |spread| shown(spread, &unit)),
        word,
    }
}

/// Formats a figure with its spread. A single measurement has no spread.
fn shown(spread: Spread, unit: &str) -> String {
    let Spread { value, low, high } = spread;
    let digits = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    #[expect(clippy::float_cmp, reason = "low and high are the same value if there was one round")]
    if low == high || !low.is_finite() {
        return format!("{value:.digits$}{unit}");
    }
    format!("{value:.digits$}{unit} ({low:.digits$} - {high:.digits$})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(rows: &[(&str, &str, &[f64])], what: &str) -> (String, &'static str) {
        let mut record = Record::new();
        for (group, row, rounds) in rows {
            record.row(group, row, "us", rounds);
        }
        let all = verdicts(&record);
        let verdict = all.into_iter().find(|verdict| verdict.what.starts_with(what)).expect("an aim");
        (verdict.measured, verdict.word)
    }

    #[test]
    fn upper_and_lower_bounds_give_a_verdict() {
        let http = |ours: f64, limit: f64, peer: f64| {
            vec![
                (HTTP_16, names::UNISOLATED, vec![ours]),
                (HTTP_16, names::LIMIT, vec![limit]),
                ("HTTP, 1 KiB text", names::BELLJAR, vec![ours]),
                ("HTTP, 1 KiB text", names::FASTMCP, vec![peer]),
            ]
        };
        let word = |rows: &[(&'static str, &'static str, Vec<f64>)], what| {
            let rows: Vec<_> = rows.iter().map(|(group, row, rounds)| (*group, *row, rounds.as_slice())).collect();
            word(&rows, what).1
        };
        let over = "HTTP read 1 KiB, 16 clients, isolation none";
        assert_eq!(word(&http(151.0, 100.0, 0.0), over), "missed");
        assert_eq!(word(&http(150.0, 100.0, 0.0), over), "met");
        assert_eq!(word(&http(130.0, 100.0, 0.0), over), "met, the stretch too");
        let peer = "HTTP read 1 KiB, FastMCP over belljar";
        assert_eq!(word(&http(100.0, 1.0, 1599.0), peer), "missed");
        assert_eq!(word(&http(100.0, 1.0, 1600.0), peer), "met");
        assert_eq!(word(&[], peer), "no data");
        assert_eq!(word(&http(0.0, 1.0, 0.0), peer), "no data", "0 / 0");
    }

    #[test]
    fn spread_is_round_by_round() {
        // In both rows, each round is twice as slow as the round before. So the ratio is constant.
        let rows: [(&str, &str, &[f64]); 2] = [
            ("HTTP, 1 MiB text", names::BELLJAR, &[120.0, 240.0, 480.0]),
            ("HTTP, 1 MiB text", names::NATIVE, &[100.0, 200.0, 400.0]),
        ];
        assert_eq!(word(&rows, "1 MiB text over HTTP"), ("1.20x".to_owned(), "met"));
    }

    #[test]
    fn the_cost_of_a_sandbox_is_the_time_above_a_live_call() {
        let rows: [(&str, &str, &[f64]); 3] =
            [(INSIDE, "live instance", &[2.0]), (INSIDE, "Sandbox::call", &[11.0]), (INSIDE, "stock pooling", &[47.0])];
        assert_eq!(word(&rows, "a fresh sandbox over"), ("9.00 us".to_owned(), "met"));
        assert_eq!(word(&rows, "the same with stock"), ("5.00x".to_owned(), "met"));
    }
}
