//! The reads that a profile is made of: of a mount in the worker that mounts share, and of one with a directory. Each over HTTP
//! and stdio, one at a time and 16 together, with worker processes and without.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use belljar_tests::{Client, Era, KeepAliveConnection, Server, Stdio};
use serde_json::{Value, json};

/// Requests at the same time.
const TOGETHER: usize = 16;

/// Reads of one client over HTTP, in a row.
const READS: usize = 1500;

/// Bytes of the files that are read.
const SIZES: [usize; 3] = [1 << 10, 4 << 10, 256 << 10];

/// The zones that the provider `clock` is asked for, one for each client.
const ZONES: [&str; TOGETHER] = [
    "UTC",
    "Europe/Berlin",
    "Asia/Tokyo",
    "America/Lima",
    "Africa/Cairo",
    "Africa/Lagos",
    "America/Chicago",
    "America/New_York",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Seoul",
    "Australia/Sydney",
    "Europe/Madrid",
    "Europe/Oslo",
    "Europe/Rome",
    "Pacific/Auckland",
];

/// Reads with `program`.
///
/// # Errors
/// A read fails.
pub(super) fn run(program: &Path, providers: &Path, site: &Path) -> Result<()> {
    for isolation in ["shared", "none"] {
        prepare(providers, site, isolation)?;
        over_http(program, site)?;
        over_stdio(program, site)?;
    }
    Ok(())
}

/// Writes a directory with a configuration, the providers, and files. The program that counts must be able to write its
/// counts, so it has no wall.
fn prepare(providers: &Path, site: &Path, isolation: &str) -> Result<()> {
    let _ = fs::remove_dir_all(site);
    for directory in ["plugins", "notes"] {
        fs::create_dir_all(site.join(directory))?;
    }
    let configuration = format!(
        "wall = \"off\"\nisolation = \"{isolation}\"\nplugins = \"plugins\"\ncache = \"cache\"\nstate = \"state\"\n\
         audit = \"audit.jsonl\"\n\
         [mounts.clock]\ncomponent = \"clock.wasm\"\ncache = \"off\"\nlimits.cpu = \"10000%\"\n\
         [mounts.notes]\ncomponent = \"files.wasm\"\ncache = \"off\"\nlimits.cpu = \"10000%\"\nfs = {{ \"/data\" = \"notes\" }}\n"
    );
    fs::write(site.join("belljar.toml"), configuration)?;
    for provider in ["clock.wasm", "files.wasm"] {
        let from = providers.join(provider);
        fs::copy(&from, site.join("plugins").join(provider)).with_context(|| {
            format!("cannot copy \"{}\": build the providers with `cargo xtask build`", from.display())
        })?;
    }
    for place in 0..TOGETHER {
        for size in SIZES {
            let line = format!("a line of \"{place}\" with {size} bytes in all\n");
            let text: String = line.chars().cycle().take(size).collect();
            fs::write(site.join(format!("notes/{place}-{size}.txt")), text)?;
        }
    }
    Ok(())
}

fn serve(program: &Path, site: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--config", "belljar.toml"]).current_dir(site);
    command
}

/// What client `place` reads, in the order of its reads. No two clients read the same, because reads of the same are made once.
fn uri(place: usize, read: usize) -> String {
    match read % 40 {
        0 => format!("belljar://notes/{place}-{}.txt", SIZES[2]),
        1..4 => format!("belljar://notes/{place}-{}.txt", SIZES[1]),
        4..12 => format!("belljar://notes/{place}-{}.txt", SIZES[0]),
        _ => format!("belljar://clock/{}", ZONES[place]),
    }
}

/// The requests of client `place`.
fn requests(place: usize) -> impl Iterator<Item = Value> {
    let others = ["resources/list", "tools/list", "resources/templates/list", "server/discover"];
    (0..READS).map(move |read| {
        let id = read as u64 + 1;
        match others.get(read % 200) {
            Some(method) => Era::Stateless.message(id, method, json!({})),
            None => Era::Stateless.message(id, "resources/read", json!({ "uri": uri(place, read) })),
        }
    })
}

fn over_http(program: &Path, site: &Path) -> Result<()> {
    let mut command = serve(program, site);
    command.args(["--http", "127.0.0.1:0"]);
    let server = Server::start(command);
    server.client(Era::Stateless).uris();
    for clients in [1, TOGETHER] {
        let one = |place| {
            let wire = server.wire(Era::Stateless);
            let mut connection = KeepAliveConnection::to(&server);
            requests(place).try_for_each(|message| {
                let response = connection.exchange(&server.request(&wire, &message));
                if response.status != 200 || !response.text().contains("\"result\"") {
                    bail!("{message} was answered with {} {}", response.status, response.text());
                }
                Ok(())
            })
        };
        thread::scope(|scope| {
            let one = &one;
            let all: Vec<_> = (0..clients).map(|place| scope.spawn(move || one(place))).collect();
            all.into_iter().try_for_each(|client| client.join().unwrap_or_else(|_| bail!("a client failed")))
        })?;
    }
    server.stop();
    Ok(())
}

fn over_stdio(program: &Path, site: &Path) -> Result<()> {
    let mut client: Client<Stdio> = Client::connect(Stdio::start(serve(program, site)), Era::Stateless);
    client.uris();
    let failed = |read: usize, result: std::result::Result<Value, belljar_tests::RpcError>| match result {
        Ok(_) => Ok(()),
        Err(error) => bail!("read {read} over stdio failed: {error:?}"),
    };
    for read in 0..READS {
        let result = client.read(&uri(0, read));
        failed(read, result)?;
    }
    for read in 0..READS / TOGETHER {
        let ids: Vec<_> = (0..TOGETHER)
            .map(|place| client.send("resources/read", json!({ "uri": uri(place, read * TOGETHER + place) })))
            .collect();
        for id in ids {
            let result = client.wait(id);
            failed(read, result)?;
        }
    }
    client.close();
    Ok(())
}
