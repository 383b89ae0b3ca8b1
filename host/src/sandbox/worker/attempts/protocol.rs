//! Attempts on the front by what a worker says: wrong frames, forged messages, floods, and silence. The test judges them,
//! because the worker cannot see what the front does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::kernel::{AttemptArguments, address, call, negative};
use crate::grants::{FrontRequest, RecordEntry};
use crate::interfaces::Reply;
use crate::model::{Body, Consent, Contents, Decision, DecisionKind, ReadError, Reading, Usage};
use crate::sandbox::spec::Outcome;
use crate::sandbox::worker::answer_memory::BodyRange;
use crate::sandbox::worker::message::ToFront;

/// The socket to the front.
const SOCKET: usize = 0;

/// The number of the last call that is silent.
static SILENT: AtomicU64 = AtomicU64::new(0);

/// What the worker does after an attempt.
pub(in crate::sandbox) enum Then {
    /// Answers with this text.
    Say(String),
    /// Answers with this outcome.
    Answer(Box<Outcome>),
    /// Never answers.
    Nothing,
}

/// Makes the attempt of this name in call `number`. `None` if there is none.
pub(in crate::sandbox) fn run(name: &str, number: u64, arguments: &AttemptArguments, reference: &str) -> Option<Then> {
    let count = arguments.number(0);
    let done = Then::Say("sent".to_owned());
    Some(match name {
        "long-frame" => sent(&[0xff, 0xff, 0xff, 0x7f, 0, 1]),
        "truncated-frame" => sent(&[0xe8, 3, 0, 0, 0, 1, 2, 3]),
        "garbage" => sent(&[[6, 0, 0, 0, 0].as_slice(), &[0xfa; 6]].concat()),
        "unknown-number" => said(&ToFront::Outcome(number + 1_000_000, text(reference, "forged"), None)),
        "unknown-entry" => said(&ToFront::Entry(number + 1_000_000, RecordEntry::Progress(1.0, None, None))),
        // Ends another call of the same worker.
        "answer-neighbour" => {
            say(&ToFront::Outcome(
                SILENT.load(Ordering::Relaxed),
                text(&String::from_utf8_lossy(arguments.path(0).to_bytes()), "forged"),
                None,
            ));
            done
        }
        "guess-numbers" => {
            (1..=64).for_each(|guess| say(&ToFront::Outcome(guess, text("attempt/silent", "forged"), None)));
            Then::Nothing
        }
        "twice" => {
            say(&ToFront::Outcome(number, text(reference, "first"), None));
            Then::Answer(text(reference, "second"))
        }
        "ready-again" => said(&ToFront::Ready("full".to_owned())),
        "refuse-again" => said(&ToFront::Refused("no".to_owned())),
        "unknown-grant" => said(&decision(number, "root", DecisionKind::Allowed)),
        "forged-allowed" => said(&decision(number, "http", DecisionKind::Allowed)),
        "unknown-consent" => {
            let consent = Consent { grant: "root".into(), target: "everything".to_owned() };
            said(&ToFront::Entry(number, RecordEntry::Consent(consent)))
        }
        "entries" => {
            (0..count).for_each(|_| say(&ToFront::Entry(number, RecordEntry::Progress(1.0, None, None))));
            done
        }
        "refusals" => {
            (0..count).for_each(|_| say(&decision(number, "http", DecisionKind::Denied)));
            done
        }
        "printed" => {
            (0..count).for_each(|_| say(&ToFront::Entry(number, RecordEntry::Printed(vec![b'\n'; 60_000], u64::MAX))));
            done
        }
        "streams" => {
            (0..count).for_each(|id| {
                say(&ToFront::Open(number, id as u64, FrontRequest::Connect("localhost".to_owned(), 1)));
            });
            Then::Nothing
        }
        "descriptor" => {
            send_descriptor(number, 1);
            Then::Nothing
        }
        "hidden-descriptor" => {
            (0..100).for_each(|_| send_descriptor(number, 0));
            done
        }
        "large-answer" => Then::Answer(text(reference, &"x".repeat(count))),
        // Bodies in the shared memory: the start, the place among the bodies, and the length.
        "bodies" => {
            let (place, len) = (u32::try_from(arguments.number(1)).unwrap_or(u32::MAX), arguments.number(2) as u64);
            let bodies = BodyRange { start: count as u64, bodies: vec![(place, len)] };
            said(&ToFront::Outcome(number, text(reference, ""), Some(bodies)))
        }
        "many-contents" => Then::Answer(many_contents(count)),
        "wrong-reply" => {
            Then::Answer(Box::new(Outcome { result: Ok(Reply::ListTools(Vec::new())), ..failed(ReadError::NotFound) }))
        }
        "wrong-reference" => Then::Answer(text("another", "forged")),
        // A command that a person would paste into a shell.
        "forged-cure" => {
            let (grant, target, verdict) = ("fs".to_owned(), "/data".to_owned(), DecisionKind::Denied);
            let cure = || Some("to allow it, run: sh forged-command".to_owned());
            say(&ToFront::Entry(number, RecordEntry::Decision(grant, target.clone(), verdict, cure())));
            let denial = Decision { grant: "fs".into(), target, verdict, cure: cure(), times: 1 };
            let message = "no".to_owned();
            Then::Answer(Box::new(failed(ReadError::Denied { message, denial: Some(denial) })))
        }
        "absurd-usage" => {
            let time = Duration::MAX;
            let usage = Usage { queue: time, fuel: u64::MAX, time, cpu: time, memory: u64::MAX, bytes: u64::MAX };
            Then::Answer(Box::new(Outcome { usage, ..*text(reference, "modest") }))
        }
        "deceptive-trap" => {
            let how = format!("\u{1b}[31m\u{202e}{}\n2026-01-01T00:00:00 forged line", "x".repeat(count));
            Then::Answer(Box::new(failed(ReadError::Trapped(how))))
        }
        "deceptive-refusal" => {
            let message = format!("\u{1b}[31m\u{202e}{}\n2026-01-01T00:00:00 forged line", "x".repeat(count));
            Then::Answer(Box::new(failed(ReadError::Denied { message, denial: None })))
        }
        "deceptive-failure" => {
            let why = format!("\u{1b}[31m\u{202e}{}\n2026-01-01T00:00:00 forged line", "x".repeat(count));
            Then::Answer(Box::new(failed(ReadError::Internal(why))))
        }
        "silent" => {
            SILENT.store(number, Ordering::Relaxed);
            Then::Nothing
        }
        // The number of the call that is silent, or 0.
        "silent-number" => Then::Say(SILENT.load(Ordering::Relaxed).to_string()),
        "slow-streams" => {
            (0..count).for_each(|id| {
                say(&ToFront::Open(number, id as u64, FrontRequest::Connect("localhost".to_owned(), 1)));
                let time = [0_u64, 200_000];
                let _ = call(libc::SYS_nanosleep, &[address(&time), 0]);
            });
            Then::Nothing
        }
        // Takes no message either.
        "hang" => loop {
            let time = [1_u64, 0];
            let _ = call(libc::SYS_nanosleep, &[address(&time), 0]);
        },
        "spin" => loop {
            std::hint::spin_loop();
        },
        "exit" => leave(0),
        "abort" => signal_itself(libc::SIGABRT),
        "stop" => signal_itself(libc::SIGSTOP),
        "close" => {
            let _ = call(libc::SYS_shutdown, &[SOCKET, 2]);
            Then::Nothing
        }
        // The system calls of another processor.
        "call-i386" => Then::Say(call_i386()),
        _ => return None,
    })
}

fn signal_itself(signal: i32) -> Then {
    let own = call(libc::SYS_getpid, &[]).unwrap_or_default();
    let _ = call(libc::SYS_tgkill, &[own, own, negative(signal)]);
    Then::Nothing
}

fn leave(code: usize) -> Then {
    let _ = call(libc::SYS_exit_group, &[code]);
    Then::Nothing
}

fn decision(number: u64, kind: &str, verdict: DecisionKind) -> ToFront {
    ToFront::Entry(number, RecordEntry::Decision(kind.to_owned(), "https://attacker.example".to_owned(), verdict, None))
}

fn failed(error: ReadError) -> Outcome {
    Outcome::failed(error)
}

fn text(reference: &str, text: &str) -> Box<Outcome> {
    let body = Body::Text(text.to_owned());
    contents(vec![Contents { reference: reference.to_owned(), mime_type: None, body, meta: Vec::new() }])
}

/// An answer with very many empty parts: few bytes in a frame, and many in memory.
fn many_contents(count: usize) -> Box<Outcome> {
    let one = Contents { reference: String::new(), mime_type: None, body: Body::Text(String::new()), meta: Vec::new() };
    contents(vec![one; count])
}

fn contents(contents: Vec<Contents>) -> Box<Outcome> {
    let reply = Reply::Read(Reading { part: None, contents, fresh_for: None });
    Box::new(Outcome { result: Ok(reply), ..failed(ReadError::NotFound) })
}

/// Sends a message, and never answers.
fn said(message: &ToFront) -> Then {
    say(message);
    Then::Nothing
}

/// Sends bytes, and never answers.
fn sent(bytes: &[u8]) -> Then {
    send(bytes);
    Then::Nothing
}

/// Sends a message in a correct frame.
fn say<T: Serialize>(message: &T) {
    let Ok(body) = postcard::to_stdvec(message) else { return };
    let length = u32::try_from(body.len()).unwrap_or_default().to_le_bytes();
    send(&[&length, [0].as_slice(), &body].concat());
}

/// Sends bytes to the front, and waits as long as it takes none. Ends this process when the front is gone.
fn send(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match call(
            libc::SYS_sendto,
            &[SOCKET, bytes.as_ptr() as usize, bytes.len(), negative(libc::MSG_NOSIGNAL), 0, 0],
        ) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let time = [0_u64, 1_000_000];
                let _ = call(libc::SYS_nanosleep, &[address(&time), 0]);
            }
            Err(_) => drop(leave(1)),
        }
    }
}

/// Sends a frame with a copy of standard error, and states this number of descriptors.
fn send_descriptor(number: u64, stated: u8) {
    #[repr(C)]
    struct Control {
        length: usize,
        level: i32,
        kind: i32,
        file: i32,
        rest: i32,
    }
    let Ok(body) = postcard::to_stdvec(&ToFront::Entry(number, RecordEntry::Progress(1.0, None, None))) else { return };
    let length = u32::try_from(body.len()).unwrap_or_default().to_le_bytes();
    let frame = [&length, [stated].as_slice(), &body].concat();
    let part = [frame.as_ptr() as usize, frame.len()];
    let control = Control { length: 20, level: libc::SOL_SOCKET, kind: libc::SCM_RIGHTS, file: 2, rest: 0 };
    let _ = (control.level, control.kind, control.file, control.rest);
    let message = [0, 0, address(&part), 1, address(&control), size_of::<Control>(), 0];
    let _ = call(libc::SYS_sendmsg, &[SOCKET, address(&message), negative(libc::MSG_NOSIGNAL)]);
}

/// Asks for a socket by the system calls of a 32-bit processor, which have other numbers.
#[cfg(target_arch = "x86_64")]
fn call_i386() -> String {
    let result: i64;
    #[expect(unsafe_code, reason = "the other entry into the kernel")]
    // SAFETY: the call makes a socket, and touches no memory.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov ebx, 2",
            "int 0x80",
            "pop rbx",
            inout("rax") 359_i64 => result,
            in("rcx") 1, in("rdx") 0, in("rsi") 0, in("rdi") 0,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    format!("the call returned {result}")
}

/// Other processors have no such entry.
#[cfg(not(target_arch = "x86_64"))]
fn call_i386() -> String {
    "the call returned -38".to_owned()
}
