//! Reads the output of callgrind: instructions, summed for the program and for the machine's libraries, and for the calls of each
//! function.

use std::collections::BTreeMap;

/// The instructions of one thread between two client requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// The title that the program gave it.
    pub(super) title: String,
    /// The thread's number; the first is 1.
    pub(super) thread: u32,
    /// Instructions of the program and of its guest.
    pub(super) program: u64,
    /// Instructions of the machine's libraries.
    pub(super) library: u64,
    /// Instructions of all calls of each function, with what it calls.
    pub(super) calls: BTreeMap<String, u64>,
}

/// Parses a dump. `None` if the program did not request this dump. `is_program` is true for an object file of the program.
pub(super) fn parse(text: &str, is_program: impl Fn(&str) -> bool) -> Option<Dump> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let title = field("desc: Trigger: Client Request: ")?.to_owned();
    let thread = field("thread: ")?.trim().parse().ok()?;
    let mut dump = Dump { title, thread, program: 0, library: 0, calls: BTreeMap::new() };
    let (mut is_own, mut is_call, mut called) = (false, false, "");
    for line in text.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = is_program(object);
        } else if let Some(function) = line.strip_prefix("cfn=") {
            called = function;
        } else if line.starts_with("calls=") {
            // The next line has the inclusive cost of the called function. It is counted at that function.
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '*')) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or_default();
            match (std::mem::take(&mut is_call), is_own) {
                (true, _) => *dump.calls.entry(called.to_owned()).or_default() += cost,
                (false, true) => dump.program += cost,
                (false, false) => dump.library += cost,
            }
        }
    }
    Some(dump)
}

/// The median. 0 if there is nothing.
pub(super) fn median(all: impl Iterator<Item = u64>) -> u64 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 21028
part: 2
thread: 1

desc: Timerange: Basic block 187 - 330
desc: Trigger: Client Request: stdio, 1 KiB

positions: line
events: Ir
summary: 1291

ob=/build/instructions
fl=a.rs
fn=read
10 20
11 3
cob=/lib/libc.so.6
cfn=malloc
calls=2 3280
12 1000

ob=???
fl=???
fn=0x0000000012345678
0 200

ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
3281 1000
fn=free
3300 68

totals: 1291
";

    #[test]
    fn a_called_function_is_counted_once() {
        let dump = parse(DUMP, |object| matches!(object, "/build/instructions" | "???")).unwrap();
        let calls = [("malloc".to_owned(), 1000)].into();
        assert_eq!(dump, Dump { title: "stdio, 1 KiB".to_owned(), thread: 1, program: 223, library: 1068, calls });
        assert_eq!(dump.program + dump.library, 1291);
    }

    #[test]
    fn a_dump_that_the_program_did_not_request_is_none() {
        let ended = DUMP.replace("Client Request: stdio, 1 KiB", "Program termination");
        assert_eq!(parse(&ended, |_| true), None);
        assert_eq!(parse("", |_| true), None);
    }
}
