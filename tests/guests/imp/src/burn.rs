//! Uses up what a call has: time, fuel, memory, stack, handles.

use std::hint::black_box;
use std::time::Duration;

use belljar_guest::{Error, Result};

use crate::number;

/// Runs a verb of this module; others are not found.
pub(crate) fn deed(verb: &str, argument: &str) -> Result<String> {
    match verb {
        "spin" => spin(),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number(argument)? as u64));
            Ok(format!("slept {argument} ms"))
        }
        "fill" => fill(),
        "grow" => Ok(grow(number(argument)?)),
        "recurse" => Ok(recurse(number(argument)?)),
        "trap" => trap(),
        #[expect(clippy::panic, reason = "asked for")]
        "panic" => panic!("the imp panics: \x1b[31m\u{202e}{argument}"),
        "exit" => std::process::exit(i32::try_from(number(argument)?).unwrap_or(1)),
        #[cfg(target_os = "wasi")]
        "forever" => host::forever(),
        #[cfg(target_os = "wasi")]
        "busy" => host::busy(),
        #[cfg(target_os = "wasi")]
        "handles" => Ok(host::handles(number(argument)?)),
        #[cfg(target_os = "wasi")]
        "zeroes" => Ok(host::zeroes(number(argument)?)),
        #[cfg(target_os = "wasi")]
        "poll" => Ok(host::poll_all(number(argument)?)),
        #[cfg(target_os = "wasi")]
        "random" => Ok(host::random(number(argument)?)),
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

/// Fills memory for ever: few instructions, each of which takes long.
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
    let blocks: Vec<Vec<u8>> = (0..mib).map(|_| vec![1; 1 << 20]).collect();
    format!("{} MiB", black_box(blocks).len())
}

/// Calls itself `depth` times over, and never stops for 0.
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

/// What needs the host's help.
#[cfg(target_os = "wasi")]
mod host {
    use std::hint::black_box;

    use wasip2::cli::stdout::get_stdout;
    use wasip2::clocks::monotonic_clock::subscribe_duration;
    use wasip2::io::poll::poll;
    use wasip2::random::random::get_random_bytes;

    /// Waits for something that never comes.
    pub(super) fn forever() -> ! {
        loop {
            subscribe_duration(u64::MAX).block();
        }
    }

    /// Asks the host again and again whether nothing has come yet.
    pub(super) fn busy() -> ! {
        loop {
            subscribe_duration(0).block();
        }
    }

    /// Takes handles and gives none back.
    pub(super) fn handles(count: usize) -> String {
        for _ in 0..count {
            std::mem::forget(subscribe_duration(1_000_000_000));
        }
        format!("{count} handles")
    }

    /// Has the host write zeroes, all at once.
    pub(super) fn zeroes(bytes: usize) -> String {
        format!("{:?}", get_stdout().write_zeroes(bytes as u64))
    }

    /// Waits for one thing, so many times over.
    pub(super) fn poll_all(count: usize) -> String {
        let timer = subscribe_duration(1_000_000);
        format!("{} are ready", poll(&vec![&timer; count]).len())
    }

    pub(super) fn random(bytes: usize) -> String {
        format!("{} random bytes", black_box(get_random_bytes(bytes as u64)).len())
    }
}
