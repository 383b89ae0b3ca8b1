//! A store that is killed, stopped, emptied, full, closed or replaced. No answer is wrong, and reads go on.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use belljar_tests::{Era, Redis, Site, places, wait_until};
use belljar_upstream::Authority;

use super::Group;
use crate::subscriptions::notifications::Watcher;
use crate::support::{empty, kind};

const FIXTURE: &[(&str, &str)] = &[("guest_fixture", "fixture.wasm")];

/// The component whose resources are watched.
const WATCHED: &[(&str, &str)] = &[("files", "files.wasm")];

const URI: &str = "belljar://fixture/static-text";

/// A rate that the tests do not reach, so that each read is counted.
const RATE: &str = "[[allow]]\nwho = \"anyone\"\nrate = \"1000000/day per caller\"\n";

/// A rate so small that no units are set aside.
const SMALL_RATE: &str = "[[allow]]\nwho = \"anyone\"\nrate = \"200/s per caller\"\n";

#[test]
fn reads_go_on_whatever_happens_to_the_store() {
    for rate in [RATE, SMALL_RATE] {
        let Some(mut group) = Group::start(2, FIXTURE, rate, |_| {}) else { return };
        let expected = group.client(0).text(URI);
        let (is_over, reads, busy) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let Group { redis, replicas, .. } = &mut group;
        std::thread::scope(|scope| {
            for replica in replicas.iter() {
                let (is_over, reads, busy, expected) = (&is_over, &reads, &busy, &expected);
                scope.spawn(move || {
                    let mut client = replica.server.client(Era::Stateless);
                    while !is_over.load(Ordering::Relaxed) {
                        match client.read(URI) {
                            Ok(answer) => {
                                assert_eq!(answer["contents"][0]["text"], expected.as_str());
                                reads.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => {
                                assert_eq!(kind(&error), "busy", "{error}");
                                busy.fetch_add(1, Ordering::Relaxed);
                                std::thread::sleep(Duration::from_millis(5));
                            }
                        }
                    }
                });
            }
            for round in 0..20 {
                let before = reads.load(Ordering::Relaxed);
                match round % 5 {
                    0 => redis.kill(),
                    1 => redis.hold(false),
                    2 => assert_eq!(redis.ask(&["FLUSHALL"]), "+OK"),
                    3 => assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "1"]), "+OK"),
                    _ => assert_eq!(redis.ask(&["CONFIG", "SET", "requirepass", "new"]), "+OK"),
                }
                // Reads go on meanwhile.
                wait_until("reads while the store fails", || {
                    let now = reads.load(Ordering::Relaxed);
                    if now >= before + 50 { Ok(()) } else { Err(now) }
                });
                match round % 5 {
                    1 => redis.hold(true),
                    2 => {}
                    // What it had is gone: the replicas meet an empty store.
                    _ => redis.restart(),
                }
                for replica in replicas.iter() {
                    replica.await_ready("\"store\":\"up\"");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let (reads, busy) = (reads.into_inner(), busy.into_inner());
        assert!(reads > 1000, "{reads} reads, {busy} refused");
    }
}

#[test]
fn what_is_wrong_with_the_store_is_said() {
    let Some(mut group) = Group::start(1, FIXTURE, RATE, |_| {}) else { return };
    let replica = &group.replicas[0];
    assert_eq!(replica.metric("belljar_store_up"), 1.0);
    assert_eq!(group.redis.ask(&["CONFIG", "SET", "requirepass", "secret-word"]), "+OK");
    // The connection is made again when it ends.
    assert_eq!(group.redis.ask(&["AUTH", "secret-word"]), "+OK");
    group.redis.kill();
    let about = replica.await_ready("\"store\":\"down: it ");
    assert!(about.contains("\"state\":\"ready\""), "a replica without its store still serves: {about}");
    replica.await_ready("it refuses connections");
    assert_eq!(replica.metric("belljar_store_up"), 0.0);
    let log = replica.server.process.stderr();
    assert!(log.contains("the store of [replicas]") && log.contains("this replica works alone"), "{log}");
    group.redis.restart();
    group.await_store();
    assert!(group.replicas[0].server.process.stderr().contains("is reached again"));
}

#[test]
fn a_password_is_needed_and_given() {
    let Some(redis) = Redis::start(&["--requirepass", "a-long-password"]) else { return };
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    super::restrict(site.write("replicas.key", "5e".repeat(32)));
    super::restrict(site.write("right", "a-long-password"));
    super::restrict(site.write("wrong", "another-password"));
    let config = |password: &str| {
        format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[secrets]\nright = {{ file = \"right\" }}\nwrong = {{ file = \"wrong\" }}\n\
             [replicas]\nkey = \"replicas.key\"\nstore = {:?}\n{password}",
            redis.url()
        )
    };
    for (password, said) in [
        ("", "down: it wants a password; add  password"),
        ("password = \"wrong\"\n", "down: it refuses the user or the password of [replicas]"),
        ("password = \"right\"\n", "\"store\":\"up\""),
    ] {
        site.config(&config(password));
        let replica = super::Replica { server: site.http(), site: empty() };
        replica.await_ready(said);
        let log = replica.server.process.stderr();
        assert!(!log.contains("a-long-password") && !log.contains("another-password"), "{log}");
        replica.server.client(Era::Stateless).text(URI);
    }
}

/// What `belljar check` says of the store, as text.
fn checked(site: &Site) -> String {
    let output = site.run(&["check"]);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_store_with_tls_must_show_a_certificate_that_is_trusted() {
    let authority = Authority::new();
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    super::restrict(site.write("replicas.key", "5e".repeat(32)));
    let (certificate, key) = authority.pair(&["127.0.0.1"]);
    let [certificate, key] = [("cert.pem", certificate), ("key.pem", key)].map(|(name, text)| site.write(name, text));
    site.write("ca.pem", authority.pem());
    let Some(redis) = Redis::start_tls(&certificate, &key) else { return };
    for (ca, said, found) in [
        ("", "down: it has a certificate that is not trusted", "the store has a certificate that is not trusted"),
        ("[network]\nca = \"ca.pem\"\n", "\"store\":\"up\"", "(reached)"),
    ] {
        let replicas = format!("[replicas]\nkey = \"replicas.key\"\nstore = {:?}\n", redis.url());
        site.config(&format!("[admin]\nlisten = \"127.0.0.1:0\"\n{ca}{replicas}"));
        let replica = super::Replica { server: site.http(), site: empty() };
        replica.await_ready(said);
        replica.server.client(Era::Stateless).text(URI);
        let text = checked(&site);
        assert!(text.contains(&format!("store    {}", redis.url())) && text.contains(found), "{text}");
    }
}

#[test]
fn when_down_refuse_refuses_only_what_has_a_rate() {
    const CONFIG: &str = "when-down = \"refuse\"\n---\n\
                          [[allow]]\nwho = \"anyone\"\ndo = [\"read\"]\nrate = \"100/min per caller\"\n\
                          [[allow]]\nwho = \"anyone\"\ndo = [\"list\"]\n";
    let Some(mut group) = Group::start(1, FIXTURE, CONFIG, |_| {}) else { return };
    wait_until("a read", || group.client(0).read(URI));
    group.redis.kill();
    let refused = wait_until("a refusal", || group.client(0).read(URI).map_or_else(Ok, |_| Err("it is served")));
    assert_eq!(kind(&refused), "busy", "{refused}");
    assert!(refused.message.contains("the store that counts requests cannot be reached; retry in"), "{refused}");
    assert!(!group.client(0).uris().is_empty());
    group.redis.restart();
    group.await_store();
    wait_until("a read", || group.client(0).read(URI));
}

#[test]
fn a_server_that_is_no_redis_harms_nothing() {
    let Some(mut group) = Group::start(1, FIXTURE, RATE, |_| {}) else { return };
    group.redis.kill();
    let listener = wait_until("the port", || TcpListener::bind(group.redis.address()));
    let is_over = AtomicBool::new(false);
    listener.set_nonblocking(true).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Answers each connection in another way: with nothing, an HTTP page, a reply without end, and replies that fit
            // no question.
            let answers: [&[u8]; 5] = [
                b"",
                b"HTTP/1.1 200 OK\r\n\r\n",
                b"$99999999999\r\n",
                b"%1\r\n+a\r\n+b\r\n+OK\r\n+OK\r\n",
                b"*1000000\r\n",
            ];
            let mut at = 0;
            while !is_over.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                let _ = stream.set_nonblocking(false);
                let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answers[at % answers.len()]);
                at += 1;
                if at % answers.len() == 3 {
                    // As many bytes as it takes.
                    let junk = vec![b'x'; 1 << 20];
                    while stream.write_all(&junk).is_ok() {}
                }
            }
        });
        let replica = &group.replicas[0];
        replica.await_ready("\"store\":\"down: it ");
        let memory = replica.server.process.memory();
        let mut client = replica.server.client(Era::Stateless);
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_secs(8) {
            client.text(URI);
        }
        is_over.store(true, Ordering::Relaxed);
        let gained = replica.server.process.memory().saturating_sub(memory);
        assert!(gained < 64 << 20, "{gained} bytes more");
    });
    drop(listener);
    group.redis.restart();
    group.await_store();
}

#[test]
fn a_replica_that_starts_without_its_store_serves() {
    let Some(mut group) = Group::start(0, FIXTURE, RATE, |_| {}) else { return };
    group.redis.kill();
    let replica = group.replica(FIXTURE, RATE);
    replica.server.client(Era::Stateless).text(URI);
    replica.await_ready("\"store\":\"down: it ");
    group.replicas.push(replica);
    group.redis.restart();
    group.await_store();
    group.client(0).text(URI);
}

#[test]
fn the_user_of_the_guide_may_do_all_that_is_needed() {
    let guide = std::fs::read_to_string(places::repository().join("docs/guide/replicas.md")).unwrap();
    let line = guide.lines().find_map(|line| line.strip_prefix("user belljar ")).expect("the user of the guide");
    let Some(mut group) = Group::start(0, WATCHED, "", |shared| drop(shared.write("notes/a.md", "text"))) else {
        return;
    };
    let rules = line.replace(">PASSWORD", ">a-long-password");
    let words: Vec<&str> = ["ACL", "SETUSER", "belljar"].into_iter().chain(rules.split_whitespace()).collect();
    assert_eq!(group.redis.ask(&words), "+OK", "{words:?}");
    super::restrict(group.shared.write("password", "a-long-password"));
    // The commands of all scripts.
    let scripts = std::fs::read_dir(places::repository().join("host/src/store/redis")).unwrap();
    for script in
        scripts.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "lua"))
    {
        for command in std::fs::read_to_string(&script).unwrap().split("redis.call('").skip(1) {
            let command = command.split('\'').next().unwrap().to_lowercase();
            assert!(line.contains(&format!(" +{command}")), "{command} of {}", script.display());
        }
    }
    // Rates, rounds and generations.
    let config = "user = \"belljar\"\npassword = \"store\"\n---\n[secrets]\nstore = { file = \"{shared}password\" }\n\
                  [watch]\npoll = \"200ms\"\n[[allow]]\nwho = \"anyone\"\nrate = \"1000/min per caller\"\n\
                  [mounts.files]\nfs = { \"/\" = \"{shared}notes\" }\n";
    let replica = group.replica(WATCHED, config);
    group.replicas.push(replica);
    group.await_store();
    let mut watcher = Watcher::http(&group.replicas[0].server, Era::Stateless, &["belljar://files/a.md"], false);
    std::fs::rename(group.shared.write("next", "other"), group.shared.path("notes/a.md")).unwrap();
    assert!(watcher.next(belljar_tests::DEADLINE).is_some());
    group.client(0).text("belljar://files/a.md");
    wait_until("a beat", || {
        let beats = group.replicas[0].admin("/metrics");
        if beats.contains("belljar_replicas{") { Ok(()) } else { Err(beats) }
    });
    let replica = &group.replicas[0];
    let log = replica.server.process.stderr();
    assert!(!log.contains("does not let this user"), "{log}");
    // It may do nothing else.
    let denied = group.redis.ask(&["ACL", "DRYRUN", "belljar", "CONFIG", "GET", "maxmemory"]);
    assert!(denied.contains("no permissions"), "{denied}");
    assert!(
        group.redis.ask(&["ACL", "DRYRUN", "belljar", "GET", "other"]).contains("no permissions"),
        "keys of others"
    );
}
