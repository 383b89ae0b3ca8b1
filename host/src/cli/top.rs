//! `belljar top`: what a running belljar does, by mount and by caller, in the terminal.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::{output, table};
use crate::model::error::show_bytes;
use crate::model::text;
use crate::server::configuration;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;

/// The help of `top`.
pub(super) const HELP: &str = "Examples:
  belljar top
  belljar top --sort calls
  belljar top --json

The command asks the endpoint of [admin] in the configuration:
  [admin]
  listen = \"127.0.0.1:8809\"

On a terminal, it shows a new state every second until Ctrl-C. Otherwise it prints one state.";

/// The most bytes of an answer.
const MAX_ANSWER: usize = 16 << 20;

/// The time for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The time between two states.
const INTERVAL: Duration = Duration::from_secs(1);

/// The widest name, in characters.
const MAX_NAME: usize = 40;

/// Rows of callers on a terminal.
const MAX_CALLERS: usize = 10;

/// Rows of mounts on a terminal.
const MAX_MOUNTS: usize = 20;

/// Clears the screen, and moves to its beginning.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// The options of `top`.
#[derive(Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The order of the rows.
    #[arg(long, value_enum, default_value_t = Order::Cpu)]
    sort: Order,
    /// Print one state as JSON.
    #[arg(long)]
    json: bool,
}

/// The order of the rows: largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// By processor time.
    Cpu,
    /// By calls, or requests.
    Calls,
    /// By bytes of the answers.
    Bytes,
    /// By failures.
    Failed,
    /// By name.
    Name,
}

/// What the endpoint says.
#[derive(Deserialize)]
struct State {
    version: String,
    state: String,
    now: u64,
    started: u64,
    memory: Used,
    turns: Used,
    mounts: Vec<MountRow>,
    callers: Vec<CallerRow>,
}

#[derive(Deserialize)]
struct Used {
    used: u64,
    limit: u64,
}

#[derive(Deserialize)]
struct MountRow {
    name: String,
    state: String,
    calls: u64,
    served: u64,
    failed: u64,
    denied: u64,
    bytes: u64,
    cpu_micros: u64,
}

#[derive(Deserialize)]
struct CallerRow {
    principal: String,
    client: Option<String>,
    requests: u64,
    failed: u64,
    bytes: u64,
    cpu_micros: u64,
}

/// One row, whatever it is about.
struct Row {
    name: String,
    state: String,
    count: u64,
    failed: u64,
    denied: Option<u64>,
    bytes: u64,
    cpu_micros: u64,
}

/// Shows what the server does.
pub(super) fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    let config = configuration::file(&args.at)?;
    let Some(address) = config.admin.listen else {
        return Err(Failure::Failed(
            "the configuration has no endpoint to ask; add  [admin]  with  listen = \"127.0.0.1:8809\"  and restart belljar"
                .to_owned(),
        ));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ask = || runtime.block_on(async { tokio::time::timeout(ANSWER_TIME, state_text(address)).await });
    let mut earlier = HashMap::new();
    loop {
        let began = Instant::now();
        let text = match ask() {
            Ok(Ok(text)) => text,
            Ok(Err(why)) => return Err(unreachable_server(address, &why)),
            Err(_) => return Err(unreachable_server(address, "it does not answer")),
        };
        if args.json {
            output::print(&(text + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let state: State = serde_json::from_str(&text)
            .map_err(|error| unreachable_server(address, &format!("its answer is another one: {error}")))?;
        let is_live = std::io::stdout().is_terminal();
        let page = page(state, args.sort, &mut earlier, is_live);
        match is_live {
            true => table::print(&format!("{CLEAR}{page}"))?,
            false => {
                table::print(&page)?;
                return Ok(ExitCode::SUCCESS);
            }
        }
        std::thread::sleep(INTERVAL.saturating_sub(began.elapsed()));
    }
}

fn unreachable_server(address: SocketAddr, why: &str) -> Failure {
    let why = text::excerpt(why, 200);
    Failure::Failed(format!(
        "no belljar serves [admin] at {address}: {why}; start one with this configuration, or restart the one that runs"
    ))
}

/// The state as JSON text, or why there is none.
async fn state_text(address: SocketAddr) -> Result<String, String> {
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    #[expect(clippy::disallowed_methods, reason = "the operator's own endpoint on this machine")]
    let stream = TcpStream::connect(address).await.map_err(|error| fail(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| fail(&error))?;
    let request = Request::get("/api/state").header(header::HOST, "localhost").body(Empty::<Bytes>::new());
    let request = request.map_err(|error| fail(&error))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| fail(&error))?;
        if !response.status().is_success() {
            return Err(format!("the status is {}", response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(|error| fail(&error))?;
        String::from_utf8(body.to_bytes().to_vec()).map_err(|error| fail(&error))
    };
    tokio::select! {
        text = exchange => text,
        ended = connection => Err(ended.err().map_or_else(|| "it closed the connection".to_owned(), |error| fail(&error))),
    }
}

/// The state for people. `earlier`: the counts of the state before, for the rates.
fn page(state: State, order: Order, earlier: &mut HashMap<String, u64>, is_live: bool) -> String {
    let State { version, state: word, now, started, memory, turns, mounts, callers } = state;
    let up = humantime::format_duration(Duration::from_secs(now.saturating_sub(started) / 1000));
    let version = text::excerpt(&version, 20);
    let word = text::excerpt(&word, 20);
    let mut out = format!(
        "belljar {version}  {word}  up {up}  memory {} of {}  calls at once {} of {}\n",
        show_bytes(memory.used),
        show_bytes(memory.limit),
        turns.used,
        turns.limit
    );
    let mounts = mounts.into_iter().map(|mount| Row {
        name: mount.name,
        state: mount.state,
        count: mount.calls.saturating_add(mount.served),
        failed: mount.failed,
        denied: Some(mount.denied),
        bytes: mount.bytes,
        cpu_micros: mount.cpu_micros,
    });
    let callers = callers.into_iter().map(|caller| Row {
        name: match caller.client {
            Some(client) => format!("{} ({client})", caller.principal),
            None => caller.principal,
        },
        state: String::new(),
        count: caller.requests,
        failed: caller.failed,
        denied: None,
        bytes: caller.bytes,
        cpu_micros: caller.cpu_micros,
    });
    for (title, rows, most) in
        [("MOUNT", mounts.collect::<Vec<_>>(), MAX_MOUNTS), ("CALLER", callers.collect(), MAX_CALLERS)]
    {
        out.push('\n');
        add_rows(&mut out, title, rows, order, if is_live { most } else { usize::MAX }, earlier);
    }
    out
}

fn add_rows(
    out: &mut String,
    title: &str,
    mut rows: Vec<Row>,
    order: Order,
    most: usize,
    earlier: &mut HashMap<String, u64>,
) {
    rows.sort_by(|one, other| {
        let key = |row: &Row| match order {
            Order::Cpu => row.cpu_micros,
            Order::Calls => row.count,
            Order::Bytes => row.bytes,
            Order::Failed => row.failed,
            Order::Name => 0,
        };
        key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name))
    });
    let is_of_mounts = title == "MOUNT";
    let heads =
        [title, "STATE", if is_of_mounts { "READS" } else { "REQUESTS" }, "PER S", "FAILED", "REFUSED", "CPU", "BYTES"];
    let mut cells: Vec<[String; 8]> = vec![heads.map(str::to_owned)];
    let hidden = rows.len().saturating_sub(most);
    for row in &rows {
        let before = earlier.insert(format!("{title} {}", row.name), row.count);
        if cells.len() > most {
            continue;
        }
        cells.push([
            text::excerpt(&row.name, MAX_NAME),
            text::excerpt(&row.state, MAX_NAME),
            row.count.to_string(),
            before.map_or_else(|| "-".to_owned(), |before| row.count.saturating_sub(before).to_string()),
            row.failed.to_string(),
            row.denied.map_or_else(String::new, |denied| denied.to_string()),
            humantime::format_duration(Duration::from_millis(row.cpu_micros / 1000)).to_string(),
            show_bytes(row.bytes),
        ]);
    }
    // Callers have neither a state nor refusals.
    let columns: Vec<usize> = (0..heads.len()).filter(|column| is_of_mounts || !matches!(column, 1 | 5)).collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| table::width(cells.iter().filter_map(|row| row.get(column)), usize::MAX))
        .collect();
    for (at, row) in cells.iter().enumerate() {
        let mut line = String::new();
        for column in &columns {
            let (Some(cell), Some(width)) = (row.get(*column), widths.get(*column)) else { continue };
            let style = match (at, *column) {
                (0, _) => table::FAINT,
                (_, 0) => table::NAME,
                (_, 1) if cell != "served" => table::BAD,
                _ => anstyle::Style::new(),
            };
            let is_text = *column < 2;
            let spaces = if is_text { 0 } else { width.saturating_sub(cell.chars().count()) };
            line.push_str(&" ".repeat(spaces));
            line.push_str(&table::padded(style, cell, if is_text { *width } else { 0 }));
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if hidden > 0 {
        out.push_str(&format!("and {hidden} more; to see them: belljar top --json\n"));
    }
    if rows.is_empty() {
        out.push_str(if is_of_mounts { "No mount is served.\n" } else { "No request came yet.\n" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(reads: u64) -> State {
        let text = serde_json::json!({
            "version": "0.1.0", "state": "ready", "now": 61_000, "started": 1000,
            "memory": { "used": 1 << 20, "limit": 1 << 30 }, "turns": { "used": 1, "limit": 64 },
            "mounts": [
                { "name": "a", "state": "served", "calls": 1, "served": 0, "failed": 0, "denied": 0, "bytes": 5, "cpu_micros": 9000 },
                { "name": "b", "state": "served", "calls": reads, "served": 2, "failed": 1, "denied": 3, "bytes": 2048, "cpu_micros": 5000 },
                { "name": "c", "state": "quarantined", "calls": 0, "served": 0, "failed": 0, "denied": 0, "bytes": 0, "cpu_micros": 0 },
            ],
            "callers": [{ "principal": "local", "client": "\u{202e}x\u{1b}[2J 1", "requests": 7, "failed": 1, "bytes": 9, "cpu_micros": 1 }],
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn rows_are_sorted_and_have_rates_from_the_second_state_on() {
        let mut earlier = HashMap::new();
        let first = anstream::adapter::strip_str(&page(state(10), Order::Cpu, &mut earlier, true)).to_string();
        assert!(
            first.starts_with("belljar 0.1.0  ready  up 1m  memory 1MiB of 1GiB  calls at once 1 of 64\n"),
            "{first}"
        );
        let rows = |page: &str| {
            page.lines().filter(|line| line.len() > 2).map(|line| line[..2].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(rows(&first)[2..5], ["a ", "b ", "c "], "{first}");
        let second = anstream::adapter::strip_str(&page(state(15), Order::Calls, &mut earlier, true)).to_string();
        assert_eq!(rows(&second)[2..5], ["b ", "a ", "c "], "{second}");
        let words: Vec<_> = second.lines().find(|line| line.starts_with("b ")).unwrap().split_whitespace().collect();
        assert_eq!(words, ["b", "served", "17", "5", "1", "3", "5ms", "2KiB"]);
        assert!(!second.contains(['\u{202e}', '\u{1b}']), "{second:?}");
    }
}
