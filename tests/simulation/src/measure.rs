//! Measures the constants at a real redis-server, and compares what the simulation says with what the real one needs.
//!
//! The figure is the processor time of the server's main thread, from `INFO cpu`, divided by the requests. It includes the
//! system calls of the connections. One request runs at a time, so no two requests share a system call.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use belljar::store::{DialFailure, StoreDialer, StoreStream};
use belljar_tests::redis::Redis;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::constants::{COSTS, NETWORK};
use crate::probes::{PROBES, Probe};
use crate::redis::SimulatedRedis;
use crate::usage::Usage;
use crate::world::shared_store;

/// Requests of one measurement.
const REQUESTS: u32 = 20_000;

/// On a busy machine, an answer may be late, and a measurement begins anew.
const ATTEMPTS: usize = 20;

/// A connection that sends words and waits for whole answers.
struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Sends one request. The answer must fit into one read.
    fn ask(&mut self, words: &[&[u8]]) -> anyhow::Result<Vec<u8>> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.0.write_all(&request)?;
        let mut answer = vec![0; 1 << 16];
        let length = self.0.read(&mut answer)?;
        answer.truncate(length);
        Ok(answer)
    }

    /// The processor time of the server's main thread.
    fn processor(&mut self) -> anyhow::Result<Duration> {
        let info = String::from_utf8(self.ask(&[b"INFO", b"cpu"])?)?;
        let field = |name: &str| -> anyhow::Result<f64> {
            let line = info.lines().find_map(|line| line.strip_prefix(name)).context("no processor time in INFO")?;
            Ok(line.trim().parse()?)
        };
        let seconds = field("used_cpu_sys_main_thread:")? + field("used_cpu_user_main_thread:")?;
        Ok(Duration::from_secs_f64(seconds))
    }

    /// The nanoseconds of processor time of one such request.
    fn cost(&mut self, words: &[&[u8]], times: u32) -> anyhow::Result<f64> {
        let before = self.processor()?;
        for _ in 0..times {
            let answer = self.ask(words)?;
            anyhow::ensure!(!answer.starts_with(b"-"), "{}", String::from_utf8_lossy(&answer));
        }
        Ok((self.processor()? - before).as_nanos() as f64 / f64::from(times))
    }
}

/// Measures parts of requests, by requests that differ in one thing.
fn parts(address: SocketAddr) -> anyhow::Result<String> {
    /// Commands in a script, values of a list, and listeners.
    const MANY: usize = 200;
    let mut client = Client::connect(address)?;
    let request = client.cost(&[b"PING"], REQUESTS)?;
    let mut script = |text: String, times| -> anyhow::Result<f64> {
        let name = client.ask(&[b"SCRIPT", b"LOAD", text.as_bytes()])?;
        let name = name.get(5..45).context("no name of a script")?.to_vec();
        client.cost(&[b"EVALSHA", &name, b"0"], times)
    };
    let empty = script("return 1".to_owned(), REQUESTS)?;
    // The commands of the scripts for quotas and rounds.
    let calls = "redis.call('TIME') redis.call('HMGET', 'h', 'u', 't') redis.call('HSET', 'h', 'u', '12.5', 't', '1') \
                 redis.call('PEXPIRE', 'h', '5000') redis.call('GET', 'g') redis.call('ZADD', 'z', '1800000000000', 'm') ";
    let full = script(format!("{}return 1", calls.repeat(20)), REQUESTS / 10)?;
    script(format!("for i = 1, {MANY} do redis.call('HSET', 'l', i, string.rep('x', 90)) end return 1"), 1)?;
    let one = script("redis.call('HVALS', 'none') return 1".to_owned(), REQUESTS)?;
    let list = script("redis.call('HVALS', 'l') return 1".to_owned(), REQUESTS / 10)?;
    client.ask(&[b"SET", b"large", &[b'x'; 32 << 10]])?;
    let large = client.cost(&[b"GET", b"large"], REQUESTS)?;
    let message = [b'x'; 200];
    let quiet = client.cost(&[b"PUBLISH", b"news", &message], REQUESTS)?;
    let mut listeners = Vec::new();
    for _ in 0..MANY {
        let mut listener = Client::connect(address)?;
        listener.ask(&[b"SUBSCRIBE", b"news"])?;
        listeners.push(listener);
    }
    // Listeners do not read: the messages fit into the buffers of their sockets.
    let loud = client.cost(&[b"PUBLISH", b"news", &message], REQUESTS / 100)?;
    let per = |nanoseconds: f64| format!("{:.2} us", nanoseconds / 1000.0);
    Ok(format!(
        "a request: {}; a script: {}; a command in a loop: {}; a value: {}; a delivery: {}; a KiB: {}",
        per(request),
        per(empty - request),
        per((full - empty) / 120.0),
        per((list - one) / MANY as f64),
        per((loud - quiet) / MANY as f64),
        per((large - request) / 32.0),
    ))
}

/// Connects to a real Redis.
struct TcpDialer(SocketAddr);

impl StoreDialer for TcpDialer {
    fn dial(&self, _: Instant) -> BoxFuture<'_, Result<Box<dyn StoreStream>, DialFailure>> {
        async move {
            let stream =
                tokio::net::TcpStream::connect(self.0).await.map_err(|error| DialFailure(error.to_string()))?;
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn StoreStream>)
        }
        .boxed()
    }
}

/// Runs a probe at stores that reach Redis by `dialer`. `processor` reads the processor time of the store. Gives the
/// nanoseconds for each time that the probe ran.
async fn cost_of(
    probe: &Probe,
    dialer: Arc<dyn StoreDialer>,
    mut processor: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<f64> {
    let mut connections = tokio::task::JoinSet::new();
    let mut stores = Vec::new();
    for number in 0..probe.replicas {
        let store = shared_store(Arc::clone(&dialer), number);
        let own = Arc::clone(&store);
        connections.spawn(async move { own.run(|_| {}).await });
        store.first_attempt().await;
        anyhow::ensure!(store.status().link.is_up, "the store is not reached: {:?}", store.status().link.why);
        stores.push(store);
    }
    probe.run(&stores, 0).await;
    let before = processor()?;
    for time in 1..=probe.times {
        probe.run(&stores, time).await;
    }
    let cost = (processor()? - before).as_nanos() as f64 / f64::from(probe.times);
    for store in &stores {
        let link = store.status().link;
        anyhow::ensure!(link.failed == 0, "{}: the store failed {} times: {:?}", probe.name, link.failed, link.why);
    }
    Ok(cost)
}

/// Measures, and says it as a table.
///
/// # Errors
/// If no redis-server is installed, or it fails.
pub(crate) fn run() -> anyhow::Result<String> {
    let mut redis = Redis::start(&[]).context("BELLJAR_SKIP says that redis-server is not installed")?;
    let real = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut text = format!("{}\n\n", parts(redis.address())?);
    text += "| request | measured, us | simulated, us |\n|---|---|---|\n";
    for probe in PROBES {
        let mut measured = Err(anyhow::anyhow!("not measured"));
        for _ in 0..ATTEMPTS {
            redis.restart();
            let mut client = Client::connect(redis.address())?;
            let dialer = Arc::new(TcpDialer(redis.address()));
            measured = real.block_on(cost_of(probe, dialer, || client.processor()));
            if measured.is_ok() {
                break;
            }
        }
        let measured = measured?;
        let simulated = simulated(probe).context("simulated")?;
        let _ = writeln!(text, "| {} | {:.1} | {:.1} |", probe.name, measured / 1000.0, simulated / 1000.0);
    }
    Ok(text)
}

/// The cost of a probe at the simulated Redis.
fn simulated(probe: &Probe) -> anyhow::Result<f64> {
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    paused.block_on(async {
        let usage = Arc::new(Mutex::new(Usage::new(Duration::ZERO..Duration::MAX)));
        let (redis, thread) = SimulatedRedis::new(COSTS, NETWORK, Arc::clone(&usage))?;
        let processor = || Ok(usage.lock().unwrap_or_else(PoisonError::into_inner).total().0);
        tokio::select! {
            cost = cost_of(probe, redis, processor) => cost,
            () = thread.run() => anyhow::bail!("the store ended"),
        }
    })
}
