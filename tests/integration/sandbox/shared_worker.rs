//! Workers that are not of one mount, in the real binary. The one that mounts without grants share: which mounts run in it,
//! what it forgets, and who leaves it after it ended. And those of one call.

use std::collections::BTreeSet;

use belljar_tests::{Client, Stdio, wait_until};
use serde_json::json;

use super::workers::{kill, workers};
use crate::support::{SPINS, WITNESS, await_computing, kind, serve, site, stdout_and_stderr, threads};

/// The names of the components whose compiled code a process maps, as numbers of the mapped files.
fn code(process: u32) -> BTreeSet<String> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    maps.lines()
        .filter(|line| line.ends_with(".cwasm"))
        .filter_map(|line| line.rsplit('/').next())
        .map(str::to_owned)
        .collect()
}

/// The one worker of a server in which no mount has grants.
fn shared(client: &mut Client<Stdio>) -> u32 {
    let all = workers(client);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn without_configuration_mounts_without_grants_share_a_process_and_others_have_their_own() {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.notes]\ncomponent = \"files.wasm\"\n\
         fs = { \"/data\" = \"notes\" }\n",
    );
    site.write("notes/a.txt", "first");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
    let sharing = shared(&mut client);
    assert_eq!(client.text("belljar://notes/a.txt"), "first");
    let others: Vec<u32> = workers(&mut client).into_iter().filter(|worker| *worker != sharing).collect();
    assert_eq!(others.len(), 1);
    assert_eq!((code(sharing).len(), code(others[0]).len()), (2, 1));
    assert!(code(sharing).is_disjoint(&code(others[0])));
    assert!(client.close().status.success());
}

/// Bytes of shared memory that a process has.
fn shared_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn large_bodies_come_through_memory_that_is_given_back() {
    let site = site("total-memory = \"2GiB\"\n[limits]\nresult = \"128MiB\"\nmemory = \"512MiB\"\ntime = \"60s\"\n");
    site.mount_as("guest_sized", "sized.wasm");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://sized/text/1024"), "x".repeat(1024));
    let sharing = shared(&mut client);
    assert_eq!(shared_memory(sharing), 0);
    let lines = client.text("belljar://sized/log/8388608");
    assert_eq!((lines.len(), lines.lines().count()), (8 << 20, (8 << 20) / 64));
    assert!(shared_memory(sharing) >= 4 << 20, "it came through the memory");
    wait_until("the end of what no answer uses", || match shared_memory(sharing) {
        ..=0x40_0000 => Ok(()),
        more => Err(format!("{more} bytes")),
    });
    // Larger than the memory: it comes through the socket.
    let text = client.text("belljar://sized/text/70000000");
    assert!(text.len() == 70_000_000 && text.bytes().all(|byte| byte == b'x'));
    assert_eq!(shared(&mut client), sharing, "it is the same process");
    assert!(client.close().status.success());
}

/// True if a process has asked for huge pages.
fn asks_for_huge_pages(process: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap();
    // proc_pid_smaps(5): "hg" is the advice.
    maps.lines().any(|line| line.starts_with("VmFlags:") && line.split_whitespace().any(|flag| flag == "hg"))
}

/// True if this kernel can forbid huge pages for memory that does not ask for them: Linux 6.18 can, and an older one that
/// is set up so.
fn has_huge_pages() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap());
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(18));
    modes.is_ok_and(|modes| is_new || modes.contains("[madvise]"))
}

#[test]
fn only_a_process_with_large_answers_asks_for_huge_pages() {
    let mount = |name| format!("[mounts.{name}]\ncomponent = \"sized.wasm\"\nisolation = \"mount\"\n");
    let site = site(&[mount("large"), mount("small"), "[limits]\nresult = \"8MiB\"\n".to_owned()].concat());
    site.mount_as("guest_sized", "sized.wasm");
    let mut client = serve(&site);
    let mut worker = |mount: &str| {
        let before = workers(&mut client);
        assert_eq!(client.text(&format!("belljar://{mount}/text/1024")).len(), 1024);
        workers(&mut client).into_iter().find(|worker| !before.contains(worker)).expect("a worker of its own")
    };
    let (large, small) = (worker("large"), worker("small"));
    assert!(!asks_for_huge_pages(large) && !asks_for_huge_pages(small), "each for a small answer");
    for _ in 0..2 {
        let text = client.text("belljar://large/text/4194304");
        assert!(text.len() == 4 << 20 && text.bytes().all(|byte| byte == b'x'));
    }
    assert_eq!(asks_for_huge_pages(large), has_huge_pages(), "after a large answer");
    assert!(!asks_for_huge_pages(small), "another process");
    assert!(client.close().status.success());
}

/// How many threads of a process run tasks.
fn task_threads(process: u32) -> usize {
    let names = threads(process).into_iter().filter_map(|thread| std::fs::read_to_string(thread.join("comm")).ok());
    names.filter(|name| name.trim() == "tokio-rt-worker").count()
}

#[test]
fn one_client_is_served_by_one_thread_unless_guests_run_there() {
    let processors = std::thread::available_parallelism().unwrap().get();
    for (config, expected) in [("", 1), ("isolation = \"none\"\n", processors)] {
        let site = site(config);
        let mut client = serve(&site);
        // Threads that may block have the same name, and end a second after their work.
        wait_until("the end of the other threads", || match task_threads(client.wire().process.id()) {
            count if count == expected => Ok(()),
            count => Err(format!("{count} threads with \"{config}\"")),
        });
        assert!(client.text(WITNESS).contains("UTC"));
        if expected < processors {
            assert_eq!(task_threads(shared(&mut client)), processors, "mounts share it");
        }
        assert!(client.close().status.success());
    }
}

#[test]
fn a_mount_that_is_removed_leaves_the_process() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
    let sharing = shared(&mut client);
    assert_eq!(code(sharing).len(), 2);
    std::fs::remove_file(site.path("plugins/hostile.wasm")).unwrap();
    wait_until("the end of the mount in the worker", || {
        let code = code(sharing);
        (code.len() == 1).then_some(()).ok_or_else(|| format!("{code:?}"))
    });
    assert!(client.text(WITNESS).contains("UTC"));
    assert_eq!(shared(&mut client), sharing);
    assert!(client.close().status.success());
}

#[test]
fn a_mount_that_was_called_when_the_process_ended_has_its_own_from_then_on() {
    let site = site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{SPINS}"));
    let mut client = serve(&site);
    let sharing = shared(&mut client);
    let running = client.send("resources/read", json!({ "uri": "belljar://hostile/spin" }));
    await_computing(&[sharing]);
    kill(sharing);
    let error = client.wait(running).unwrap_err();
    assert_eq!(kind(&error), "internal", "{error}");
    // The first call of each starts a worker: the shared one for the witness, and one for the mount.
    assert!(client.text(WITNESS).contains("UTC"));
    let again = shared(&mut client);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
    let own: Vec<u32> = workers(&mut client).into_iter().filter(|worker| *worker != again).collect();
    assert_eq!((own.len(), code(own[0]).len(), code(again).len()), (1, 1, 1));
    // The end of its own worker does not touch the others.
    kill(own[0]);
    assert!(client.text(WITNESS).contains("UTC"));
    assert!(workers(&mut client).contains(&again));
    assert!(client.close().status.success());
}

#[test]
fn each_call_has_a_process_if_the_configuration_says_so() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nisolation = \"call\"\n");
    let mut client = serve(&site);
    let sharing = shared(&mut client);
    // Of the others, one is ready for the next call, and one may still end.
    let others = |client: &mut Client<Stdio>| {
        assert_eq!(client.text("belljar://hostile/ok"), "fine");
        let mut all = workers(client);
        assert!(all.remove(&sharing));
        all
    };
    for _ in 0..3 {
        let earlier = wait_until("a process of a call", || {
            let all = others(&mut client);
            (!all.is_empty()).then_some(all).ok_or("none")
        });
        wait_until("the end of every such process", || {
            let all = others(&mut client);
            all.is_disjoint(&earlier).then_some(()).ok_or_else(|| format!("{all:?}, earlier {earlier:?}"))
        });
    }
    let output = site.run(&["check"]);
    assert!(stdout_and_stderr(&output).contains("in a worker process for each call"));
    assert!(client.close().status.success());
}
