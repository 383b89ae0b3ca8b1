//! Attempts on the front by what a worker says. The front must end the worker or refuse the answer; the mount must work
//! again at the next call; and the reads of another mount must all succeed meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Process, RpcError, Stdio, wait_until};
use serde_json::Value;

use super::*;
use crate::support::{assert_clean, kind};

/// The time limit of calls of an attacked mount, in milliseconds.
const TIME: u64 = 4_000;

/// The memory that the front may gain during all attempts, in bytes: frames and answers of the largest size.
const MEMORY: u64 = 128 << 20;

/// What must come of an attempt.
#[derive(Clone, Copy)]
enum Ending {
    /// The front ends the worker; the log has this reason.
    Killed(&'static str),
    /// The call reaches its time limit, and the front ends the worker.
    Late,
    /// The client gets an error of this kind, and the worker goes on.
    Refused(&'static str),
    /// The client gets this text, and the worker goes on.
    Answered(&'static str),
    /// The front ends the worker, or the client gets an answer.
    Either,
}
use Ending::{Answered, Either, Killed, Late, Refused};

/// The attempts: the name, the argument, and what must come of it.
const ALL: &[(&str, &str, Ending)] = &[
    ("long-frame", "", Killed("at most")),
    ("truncated-frame", "", Late),
    ("garbage", "", Killed("not a message")),
    ("unknown-number", "", Killed("answered a call that does not run")),
    ("unknown-entry", "", Killed("answered a call that does not run")),
    ("guess-numbers", "", Killed("answered a call that does not run")),
    ("twice", "", Killed("answered a call that does not run")),
    ("ready-again", "", Killed("answered a call that does not run")),
    ("refuse-again", "", Killed("answered a call that does not run")),
    ("unknown-grant", "", Killed("a decision that it cannot make")),
    ("forged-allowed", "", Killed("a decision that it cannot make")),
    ("unknown-consent", "", Killed("a decision that it cannot make")),
    ("entries", "20001", Killed("more than 20000 entries")),
    ("entries", "20000", Answered("sent")),
    ("refusals", "20000", Answered("sent")),
    ("printed", "1", Answered("sent")),
    ("printed", "2", Killed("the output of a call twice")),
    ("entries", "1000000000", Killed("more than 20000 entries")),
    ("streams", "257", Either),
    ("streams", "100000", Either),
    // A slow front finds too many open streams before it finds that the worker takes none.
    ("slow-streams", "15000", Killed("streams")),
    ("descriptor", "", Killed("lacks its descriptors")),
    // The kernel ends a read before bytes that come with a descriptor, so the front may wait for more.
    ("hidden-descriptor", "", Either),
    ("large-answer", "300000", Refused("limit")),
    ("large-answer", "30000000", Killed("at most")),
    ("bodies", "67108860\n0\n5", Killed("memory beyond the end")),
    ("bodies", "0\n1\n5", Killed("a body that its answer does not have")),
    ("bodies", "0\n0\n300000", Killed("into memory; at most 262144")),
    ("bodies", "0\n0\n100000", Either),
    ("many-contents", "100000", Either),
    ("wrong-reply", "", Either),
    ("wrong-reference", "", Either),
    ("forged-cure", "", Refused("denied")),
    ("absurd-usage", "", Answered("modest")),
    ("deceptive-trap", "100000", Either),
    ("deceptive-refusal", "100000", Either),
    ("deceptive-failure", "100000", Either),
    ("silent", "", Late),
    ("hang", "", Late),
    ("spin", "", Late),
    ("stop", "", Late),
    ("close", "", Killed("signal 9")),
    ("exit", "", Killed("exit code 0")),
    ("abort", "", Killed("signal 6")),
    ("call-i386", "", Either),
];

/// The name of the mount of an attempt.
fn mount_of(at: usize) -> String {
    format!("m{at:02}")
}

/// A site with a mount for each attempt, and a neighbour.
fn attacked_site() -> Site {
    let mut site = empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    let mut config = "audit = \"audit.jsonl\"\nisolation = \"mount\"\nlist-time = \"60s\"\n[limits]\ntime = \"60s\"\n\
                      [mounts.other]\ncomponent = \"hostile.wasm\"\n"
        .to_owned();
    for at in 0..ALL.len() {
        let name = mount_of(at);
        config += &format!(
            "[mounts.{name}]\ncomponent = \"hostile.wasm\"\n[mounts.{name}.limits]\ntime = \"{TIME}ms\"\nresult = \"256KiB\"\n"
        );
    }
    site.config(&config);
    site.env("BELLJAR_UNGUARDED", "");
    site
}

/// Reads until it succeeds, because the first call may meet the end of the worker before this. At most three times.
fn works_again(client: &mut Client<Http>, mount: &str) -> Result<usize, RpcError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match client.read(&format!("belljar://{mount}/ok")) {
            Ok(_) => return Ok(tries),
            Err(error) if tries == 3 => return Err(error),
            Err(_) => {}
        }
    }
}

/// What is wrong with the answer to an attempt.
fn judge(answer: &Result<Value, RpcError>, ending: Ending, log: &str) -> Option<String> {
    let text = answer.as_ref().ok().and_then(|answer| answer["contents"][0]["text"].as_str());
    let kind = answer.as_ref().err().map(kind);
    if let Err(error) = answer {
        assert_clean(&error.message);
        assert!(!format!("{error} {}", error.data).contains("forged-command"), "{error} {}", error.data);
        if error.message.len() > 4096 {
            return Some(format!("an error of {} bytes", error.message.len()));
        }
    }
    let is_right = match ending {
        Killed(reason) => log.contains(reason),
        Late => kind == Some("limit"),
        Refused(wanted) => kind == Some(wanted),
        Answered(wanted) => text == Some(wanted),
        Either => true,
    };
    (!is_right)
        .then(|| format!("{:?}, {kind:?}, log: {log}", text.map(|text| text.chars().take(80).collect::<String>())))
}

#[test]
fn a_lying_worker_harms_only_its_own_mount() {
    let Some(unguarded) = unguarded() else { return };
    let site = attacked_site();
    let server = Server::start(command(&unguarded, &site, &["serve", "--http", "127.0.0.1:0"]));
    let is_over = AtomicBool::new(false);
    let mut client = server.client(Era::Stateless);
    assert_eq!(client.text("belljar://other/ok"), "fine");
    let holdings = |process: &Process| (process.files(), process.memory());
    let (files, memory) = holdings(&server.process);
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    let reads = std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut client = server.client(Era::Stateless);
            let (mut reads, mut slowest) = (0, Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(client.text("belljar://other/ok"), "fine");
                (reads, slowest) = (reads + 1, slowest.max(began.elapsed()));
                std::thread::sleep(Duration::from_millis(2));
            }
            (reads, slowest)
        });
        for (at, (name, argument, ending)) in ALL.iter().enumerate() {
            let mount = mount_of(at);
            client.read(&format!("belljar://{mount}/ok")).expect("a worker that starts");
            let before = server.process.stderr().len();
            let began = Instant::now();
            let answer = client.read(&attempt(&mount, name, argument));
            let took = began.elapsed();
            match works_again(&mut client, &mount) {
                Ok(1) => {}
                Ok(tries) => seen.push(format!("{name} {argument}: worked again at read {tries}")),
                Err(error) => wrong.push(format!("{name} {argument}: does not work again: {error}")),
            }
            // A neighbour's log may be between.
            let stderr = server.process.stderr();
            let log: Vec<&str> = stderr[before..].lines().filter(|line| line.contains(&mount)).collect();
            log.iter().for_each(|line| assert_clean(line));
            let log = log.join("\n");
            wrong.extend(judge(&answer, *ending, &log).map(|why| format!("{name} {argument}: {why}")));
            let (files, memory) = holdings(&server.process);
            let answer = answer
                .as_ref()
                .map_or_else(|error| error.message.chars().take(120).collect(), |_| "answered".to_owned());
            seen.push(format!(
                "{name} {argument}: {took:.1?}, {files} files, peak {} MiB, now {} MiB; {answer}",
                server.process.peak_memory() >> 20,
                memory >> 20
            ));
            if neighbour.is_finished() {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        neighbour.join()
    });
    if std::env::var_os("BELLJAR_TEST_REPORT").is_some() {
        #[expect(clippy::print_stderr, reason = "a table for people")]
        {
            eprintln!("before: {files} files, {} MiB; neighbour: {reads:?}\n{}", memory >> 20, seen.join("\n"));
        }
    }
    assert!(wrong.is_empty(), "{} attempts ended wrongly:\n{}", wrong.len(), wrong.join("\n"));
    let (reads, _) = reads.expect("the neighbour's reads");
    assert!(reads > ALL.len(), "{reads} reads of the neighbour");
    let gained = server.process.peak_memory().saturating_sub(memory);
    assert!(gained < MEMORY, "the front gained {} MiB", gained >> 20);
    check_records(&site);
}

/// The records have what belljar itself measured, and not what the worker says.
fn check_records(site: &Site) {
    let at = ALL.iter().position(|(name, ..)| *name == "absurd-usage").unwrap();
    let record = site.await_record("the call with absurd numbers", |record| {
        record["mount"] == mount_of(at).as_str() && record.to_string().contains("absurd-usage")
    });
    assert!(!site.audit().iter().any(|record| record.to_string().contains("forged-command")));
    let mut numbers = Vec::new();
    collect(&record, &mut numbers);
    // The largest number is the time of the record.
    assert!(numbers.iter().all(|number| *number < 1e13), "{record}");
}

fn collect(value: &Value, into: &mut Vec<f64>) {
    match value {
        Value::Number(number) => into.extend(number.as_f64()),
        Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
        Value::Object(all) => all.values().for_each(|value| collect(value, into)),
        _ => {}
    }
}

/// A worker can answer another call of its own mount, and none of another mount: each mount has a socket of its own.
#[test]
fn a_forged_answer_does_not_cross_mounts() {
    let Some(unguarded) = unguarded() else { return };
    let site = attacked_site();
    let mut client = Client::connect(Stdio::start(command(&unguarded, &site, &["serve"])), Era::Stateless);
    for mount in ["m00", "m01", "other"] {
        assert_eq!(client.text(&format!("belljar://{mount}/ok")), "fine");
    }
    // The call waits in the worker of `other`. Its number there is small, and the attacker tries all small numbers.
    let waiting = client.send("resources/read", serde_json::json!({ "uri": attempt("other", "silent", "") }));
    await_silence(&mut client, "other");
    client.read(&attempt("m00", "guess-numbers", "")).expect_err("an end of the worker");
    assert!(client.wait_for(waiting, Duration::from_millis(300)).is_none(), "the answer crossed mounts");
    client.cancel(waiting);
    // In the same mount, an attacker may forge: it runs all calls of the mount anyway.
    let uri = attempt("m01", "silent", "");
    let own = client.send("resources/read", serde_json::json!({ "uri": uri }));
    await_silence(&mut client, "m01");
    let reference = uri.strip_prefix("belljar://m01/").unwrap().to_owned();
    assert_eq!(client.text(&attempt("m01", "answer-neighbour", &reference)), "sent");
    let answer = client.wait(own).expect("the forged answer");
    assert_eq!(answer["contents"][0]["text"], "forged");
}

/// A worker that goes on after a cancellation does not keep the record of the call.
#[test]
fn a_cancelled_call_is_recorded_although_its_worker_says_nothing() {
    let Some(unguarded) = unguarded() else { return };
    let site = attacked_site();
    let mut client = Client::connect(Stdio::start(command(&unguarded, &site, &["serve"])), Era::Stateless);
    assert_eq!(client.text("belljar://m00/ok"), "fine");
    let id = client.send("resources/read", serde_json::json!({ "uri": attempt("m00", "silent", "") }));
    await_silence(&mut client, "m00");
    client.cancel(id);
    site.await_record("the call", |record| record["mount"] == "m00" && record["outcome"] == "cancelled");
    assert_eq!(client.text("belljar://m00/ok"), "fine");
}

/// Waits until a call is silent in the worker of a mount.
fn await_silence(client: &mut Client<Stdio>, mount: &str) {
    wait_until("a silent call", || match client.text(&attempt(mount, "silent-number", "")) {
        number if number == "0" => Err("none"),
        _ => Ok(()),
    });
}
