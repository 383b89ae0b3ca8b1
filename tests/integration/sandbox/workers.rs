//! Mounts in worker processes of their own (`isolation = "mount"`), in the real binary: they serve the same, and the end of
//! a worker is seen by the calls in it and by nobody else.

use std::collections::BTreeSet;

use belljar_tests::{Client, Era, Site, Stdio};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{self, SPINS, WITNESS, await_computing, kind, serve, site, stdout_and_stderr};

/// Two mounts with directories of their own in workers, and the witness in belljar's own process.
fn two_workers() -> Site {
    let site = site(
        "# files.wasm\nisolation = \"none\"\n[mounts.one]\ncomponent = \"files.wasm\"\nisolation = \"mount\"\nfs = { \"/data\" = \"one\" }\n\
         [mounts.two]\ncomponent = \"files.wasm\"\nisolation = \"mount\"\nfs = { \"/data\" = \"two\" }\n",
    );
    site.write("one/a.txt", "first");
    site.write("two/a.txt", "second");
    site
}

pub(super) fn workers(client: &mut Client<Stdio>) -> BTreeSet<u32> {
    support::workers(client.wire().process.id()).into_iter().collect()
}

/// Kills a worker, and waits until belljar has noticed its end: then the process is gone.
pub(super) fn kill(process: u32) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    belljar_tests::wait_until("the end of a worker", || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        status.map_or(Ok(()), |status| Err(status.lines().nth(2).unwrap_or_default().to_owned()))
    });
}

#[test]
fn each_mount_has_a_process_of_its_own_that_holds_its_directory_alone() {
    let site = two_workers();
    for era in Era::ALL {
        let mut client = site.stdio(era);
        assert_eq!(client.text("belljar://one/a.txt"), "first");
        assert_eq!(client.text("belljar://two/a.txt"), "second");
        let held: BTreeSet<String> =
            workers(&mut client).iter().flat_map(|worker| directories(&site, *worker)).collect();
        assert_eq!(workers(&mut client).len(), 2);
        assert_eq!(held, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
        for worker in workers(&mut client) {
            assert_eq!(directories(&site, worker).len(), 1, "a worker holds the directory of another mount");
        }
        let own = directories(&site, client.wire().process.id());
        assert!(client.text(WITNESS).contains("UTC") && workers(&mut client).len() == 2, "{own:?}");
        assert!(client.close().status.success());
    }
}

/// The directories of the site that a process has open.
fn directories(site: &Site, process: u32) -> BTreeSet<String> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let below = targets.filter_map(|target| Some(target.strip_prefix(site.path("")).ok()?.to_str()?.to_owned()));
    below.filter(|name| ["one", "two"].contains(&name.as_str())).collect()
}

#[test]
fn a_call_in_a_worker_is_recorded_like_another_one() {
    let mut seen = Vec::new();
    for isolation in ["none", "mount"] {
        let site = site(&format!(
            "# files.wasm\nisolation = \"{isolation}\"\n[mounts.notes]\ncomponent = \"files.wasm\"\n\
             fs = {{ \"/data\" = \"one\" }}\n"
        ));
        site.write("one/a.txt", "first");
        site.write("outside.txt", "not granted");
        std::os::unix::fs::symlink("../outside.txt", site.path("one/link.txt")).unwrap();
        let mut client = serve(&site);
        assert_eq!(client.text("belljar://notes/a.txt"), "first");
        let refused = client.read("belljar://notes/link.txt").unwrap_err();
        let missing = client.read("belljar://notes/none.txt").unwrap_err();
        assert!(client.close().status.success());
        let reads: Vec<Value> =
            site.audit().into_iter().filter(|line| line["operation"] == "read" && line["mount"] == "notes").collect();
        let facts = |line: &Value| json!([line["reference"], line["outcome"], line["grants"], line["denials"]]);
        assert!(reads.iter().all(|line| line["usage"]["fuel"].as_u64() > Some(0)), "{reads:?}");
        seen.push((
            reads.iter().map(facts).collect::<Vec<_>>(),
            refused.data["kind"].clone(),
            missing.data["kind"].clone(),
        ));
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].0[1][3].to_string().contains("stat link.txt"), "{seen:?}");
}

#[test]
fn a_directory_that_went_is_named_in_the_record_and_is_read_again_when_it_is_back() {
    let site = two_workers();
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://one/a.txt"), "first");
    let (one, aside) = (site.path("one"), site.path("aside"));
    std::fs::rename(&one, &aside).unwrap();
    belljar_tests::wait_until("a read without the directory", || {
        client.read("belljar://one/a.txt").map_or(Ok(()), |read| Err(read.to_string()))
    });
    assert_eq!(client.text("belljar://two/a.txt"), "second");
    std::fs::rename(&aside, &one).unwrap();
    belljar_tests::wait_until("a read with the directory", || {
        client.read("belljar://one/a.txt").map(drop).map_err(|error| error.to_string())
    });
    assert!(client.close().status.success());
    let named = |line: &Value| line["denials"].to_string().contains("/data");
    assert!(site.audit().iter().any(named), "{:?}", site.audit());
}

#[test]
fn the_end_of_a_worker_is_seen_by_its_own_calls_only() {
    let site = site(&format!(
        "# files.wasm\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nisolation = \"mount\"\n{SPINS}\
         [mounts.one]\ncomponent = \"files.wasm\"\nisolation = \"mount\"\nfs = {{ \"/data\" = \"one\" }}\n",
    ));
    site.write("one/a.txt", "first");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://one/a.txt"), "first");
    let others = workers(&mut client);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
    let own: Vec<u32> = workers(&mut client).difference(&others).copied().collect();
    assert_eq!(own.len(), 1);
    let running = client.send("resources/read", json!({ "uri": "belljar://hostile/spin" }));
    // The call has reached the worker when the worker computes.
    await_computing(&own);
    kill(own[0]);
    let error = client.wait(running).unwrap_err();
    assert_eq!(kind(&error), "internal", "{error}");
    assert_eq!(client.text("belljar://one/a.txt"), "first");
    assert_eq!(client.text("belljar://hostile/ok"), "fine", "the mount has a new worker");
    assert!(client.close().status.success());
    let record = site.audit().into_iter().find(|line| line["outcome"] == "internal").unwrap();
    assert!(record["details"].as_str().unwrap().contains("signal 9"), "{record}");
}

#[test]
fn a_worker_that_ends_again_and_again_is_given_up_for_a_time() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nisolation = \"mount\"\n");
    let mut client = serve(&site);
    for _ in 0..5 {
        assert_eq!(client.text("belljar://hostile/ok"), "fine");
        workers(&mut client).into_iter().for_each(kill);
    }
    let error = client.read("belljar://hostile/ok").unwrap_err();
    assert_eq!(kind(&error), "unavailable", "{error}");
    assert!(error.message.contains("ended 5 times within a minute; belljar starts it again in"), "{error}");
    assert!(client.text(WITNESS).contains("UTC"));
    assert!(client.close().status.success());
}

#[test]
fn check_says_where_a_mount_runs_and_a_wrong_word_is_named() {
    let site = two_workers();
    let output = site.run(&["check"]);
    let text = stdout_and_stderr(&output);
    assert_eq!(text.matches("runs     in a worker process of its own").count(), 2, "{text}");
    site.config("isolation = \"process\"\n");
    let output = site.run(&["check"]);
    let text = stdout_and_stderr(&output);
    assert!(text.contains("isolation") && text.contains("\"none\", \"shared\", \"mount\" or \"call\""), "{text}");
}
