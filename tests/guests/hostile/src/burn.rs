//! Uses up the resources of a call: time, fuel, memory, stack, handles.

use std::hint::black_box;
use std::time::{Duration, Instant};

use belljar_guest::{Error, Result};

use crate::number;

/// Runs a verb of this module. Any other verb is not found.
pub(crate) fn run_verb(verb: &str, argument: &str) -> Result<String> {
    match verb {
        "spin" => spin(),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number(argument)? as u64));
            Ok(format!("slept {argument} ms"))
        }
        "fill" => fill(),
        "grow" => Ok(grow(number(argument)?)),
        "hold" => {
            let (mib, ms) = pair(argument)?;
            let blocks = blocks(mib);
            std::thread::sleep(Duration::from_millis(ms as u64));
            Ok(format!("held {} MiB", black_box(blocks).len()))
        }
        "work" => {
            let (sleep, spin) = pair(argument)?;
            std::thread::sleep(Duration::from_millis(sleep as u64));
            work(Duration::from_millis(spin as u64));
            Ok(format!("worked for {spin} ms"))
        }
        "backtrack" => Ok(format!("matches: {}", backtrack(argument.as_bytes()))),
        "recurse" => Ok(recurse(number(argument)?)),
        "trap" => trap(),
        #[expect(clippy::panic, reason = "the test asks for a panic")]
        "panic" => panic!("the hostile guest panics: \x1b[31m\u{202e}{argument}"),
        "exit" => std::process::exit(i32::try_from(number(argument)?).unwrap_or(1)),
        #[cfg(target_os = "wasi")]
        "forever" => host::forever(),
        #[cfg(target_os = "wasi")]
        "busy" => host::busy(),
        #[cfg(target_os = "wasi")]
        "never" => host::never(),
        #[cfg(target_os = "wasi")]
        "handles" => Ok(host::handles(number(argument)?)),
        #[cfg(target_os = "wasi")]
        "zeroes" => Ok(host::zeroes(amount(argument)?)),
        #[cfg(target_os = "wasi")]
        "poll" => Ok(host::poll_all(number(argument)?)),
        #[cfg(target_os = "wasi")]
        "random" => Ok(host::random(amount(argument)?)),
        _ => Err(Error::NotFound),
    }
}

/// Computes for ever.
pub(crate) fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = black_box(n).wrapping_add(1);
    }
}

/// Fills memory for ever, with few instructions that each take long.
fn fill() -> ! {
    let mut block = vec![0u8; 16 << 20];
    let mut byte = 0u8;
    loop {
        byte = byte.wrapping_add(1);
        black_box(&mut block).fill(byte);
    }
}

/// Takes memory and writes to it, a MiB at a time.
fn grow(mib: usize) -> String {
    format!("{} MiB", black_box(blocks(mib)).len())
}

fn blocks(mib: usize) -> Vec<Vec<u8>> {
    (0..mib).map(|_| vec![1; 1 << 20]).collect()
}

/// Computes for `time`.
pub(crate) fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for n in 0..10_000u32 {
            black_box(n);
        }
    }
}

/// Matches `(x+x+)+y` like a backtracking regular expression: tries every way to divide the `x`s.
fn backtrack(text: &[u8]) -> bool {
    let run = text.iter().take_while(|byte| **byte == b'x').count();
    let divided = |part: usize| part >= 2 && (text.get(part) == Some(&b'y') || text.get(part..).is_some_and(backtrack));
    (1..=run).rev().any(|part| black_box(divided(black_box(part))))
}

/// An argument of two amounts: `A/B`.
fn pair(argument: &str) -> Result<(usize, usize)> {
    let (one, other) = argument.split_once('/').unwrap_or((argument, "0"));
    Ok((number(one)?, number(other)?))
}

/// An amount that may be larger than the address space of a guest (64 bits).
#[cfg(target_os = "wasi")]
fn amount(argument: &str) -> Result<u64> {
    argument.parse().map_err(|_| Error::invalid(format_args!("\"{argument}\" is no amount")))
}

/// Calls itself `depth` times. For 0, never stops.
fn recurse(depth: usize) -> String {
    fn frames(left: usize) -> usize {
        if left == 1 { 1 } else { black_box(frames(black_box(left.wrapping_sub(1)))) + 1 }
    }
    format!("{} frames", frames(depth))
}

/// Executes `unreachable`.
pub(crate) fn trap() -> ! {
    #[cfg(target_family = "wasm")]
    {
        core::arch::wasm32::unreachable()
    }
    #[cfg(not(target_family = "wasm"))]
    {
        std::process::abort()
    }
}

/// Verbs that call functions of the host.
#[cfg(target_os = "wasi")]
mod host {
    use std::hint::black_box;

    use wasip2::cli::stdout::get_stdout;
    use wasip2::clocks::monotonic_clock::{subscribe_duration, subscribe_instant};
    use wasip2::io::poll::poll;
    use wasip2::random::random::get_random_bytes;

    /// Waits for an event that never comes.
    pub(super) fn forever() -> ! {
        loop {
            subscribe_duration(u64::MAX).block();
        }
    }

    /// Waits for the first of several events that never come.
    pub(super) fn never() -> ! {
        let things = [subscribe_duration(u64::MAX), subscribe_instant(u64::MAX)];
        loop {
            poll(&things.each_ref());
        }
    }

    /// Polls a ready timer again and again.
    pub(super) fn busy() -> ! {
        loop {
            subscribe_duration(0).block();
        }
    }

    /// Creates handles and never drops them.
    pub(super) fn handles(count: usize) -> String {
        for _ in 0..count {
            std::mem::forget(subscribe_duration(1_000_000_000));
        }
        format!("{count} handles")
    }

    /// Makes the host write zeroes in one call.
    pub(super) fn zeroes(bytes: u64) -> String {
        format!("{:?}", get_stdout().write_zeroes(bytes))
    }

    /// Polls a list that contains the same timer `count` times.
    pub(super) fn poll_all(count: usize) -> String {
        let timer = subscribe_duration(1_000_000);
        format!("{} are ready", poll(&vec![&timer; count]).len())
    }

    pub(super) fn random(bytes: u64) -> String {
        format!("{} random bytes", black_box(get_random_bytes(bytes)).len())
    }
}
