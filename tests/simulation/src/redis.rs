//! A simulated Redis in this process. It speaks the protocol of Redis, runs the scripts of belljar, and has one thread: each
//! request takes processor time, and the next one waits until it is done.
//!
//! Time is tokio's virtual time. A message arrives after the time of the network. The store itself counts nanoseconds; the
//! replicas wake at whole milliseconds, because tokio's timers do.

mod connection;
mod database;
mod engine;
mod resp;
mod scripts;
mod sorted_set;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar::store::{DialFailure, StoreDialer, StoreStream};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::constants::Costs;
use crate::usage::{Kind, Usage};
use connection::Outgoing;
use engine::Engine;
pub(crate) use engine::Work;

/// Whether the store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Up,
    /// It refuses connections, and ends those that it has.
    Down,
    /// Answers come later by this time.
    Slow(Duration),
}

/// What happens at the store.
enum Event {
    Opened(u64, mpsc::UnboundedSender<Outgoing>),
    Request { connection: u64, at: Instant, words: resp::Words },
    Closed(u64),
}

/// The store as the replicas reach it.
pub(crate) struct SimulatedRedis {
    events: mpsc::UnboundedSender<Event>,
    condition: watch::Sender<Condition>,
    network: Duration,
    opened: Mutex<u64>,
}

/// The thread of the store.
pub(crate) struct StoreThread {
    events: mpsc::UnboundedReceiver<Event>,
    condition: watch::Receiver<Condition>,
    network: Duration,
    engine: Engine,
    costs: Costs,
    connections: HashMap<u64, Connected>,
    began: Instant,
    /// The thread is busy until then, since it began.
    free_at: Duration,
    usage: Arc<Mutex<Usage>>,
}

struct Connected {
    outgoing: mpsc::UnboundedSender<Outgoing>,
    channel: Option<Vec<u8>>,
}

impl SimulatedRedis {
    /// A store, and its thread. A message needs the time `network`. What the thread does is counted in `usage`.
    ///
    /// # Errors
    /// If Lua cannot be set up.
    pub(crate) fn new(
        costs: Costs,
        network: Duration,
        usage: Arc<Mutex<Usage>>,
    ) -> anyhow::Result<(Arc<Self>, StoreThread)> {
        let (events, received) = mpsc::unbounded_channel();
        let condition = watch::Sender::new(Condition::Up);
        let thread = StoreThread {
            events: received,
            condition: condition.subscribe(),
            network,
            engine: Engine::new()?,
            costs,
            connections: HashMap::new(),
            began: Instant::now(),
            free_at: Duration::ZERO,
            usage,
        };
        Ok((Arc::new(Self { events, condition, network, opened: Mutex::default() }), thread))
    }

    /// Makes the store fail, or work again.
    pub(crate) fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }
}

impl StoreDialer for SimulatedRedis {
    fn dial(&self, _: Instant) -> BoxFuture<'_, Result<Box<dyn StoreStream>, DialFailure>> {
        async move {
            // There and back.
            tokio::time::sleep(self.network * 2).await;
            if *self.condition.borrow() == Condition::Down {
                return Err(DialFailure("refuses connections".to_owned()));
            }
            let id = {
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                *opened += 1;
                *opened
            };
            let (own, other) = tokio::io::duplex(64 << 10);
            tokio::spawn(connection::serve(id, other, self.events.clone(), self.condition.subscribe(), self.network));
            Ok(Box::new(own) as Box<dyn StoreStream>)
        }
        .boxed()
    }
}

impl StoreThread {
    /// Answers, for ever.
    pub(crate) async fn run(mut self) {
        while let Some(event) = self.events.recv().await {
            match event {
                Event::Opened(id, outgoing) => {
                    self.connections.insert(id, Connected { outgoing, channel: None });
                }
                Event::Closed(id) => drop(self.connections.remove(&id)),
                Event::Request { connection, at, words } => self.answer(connection, at - self.began, &words),
            }
        }
    }

    fn answer(&mut self, id: u64, arrived: Duration, words: &[Vec<u8>]) {
        let start = arrived.max(self.free_at);
        let (reply, work) = self.engine.run(words, start);
        let mut bytes = reply.encode();
        let size = words.iter().map(Vec::len).sum::<usize>() + bytes.len();
        let heard: Vec<&Connected> = match words {
            [name, channel, _] if name.eq_ignore_ascii_case(b"PUBLISH") => {
                self.connections.values().filter(|one| one.channel.as_ref() == Some(channel)).collect()
            }
            _ => Vec::new(),
        };
        if !heard.is_empty() {
            bytes = resp::Reply::Integer(i64::try_from(heard.len()).unwrap_or(i64::MAX)).encode();
        }
        let kind = Kind::of(words);
        let done = start + self.costs.of(kind, work, size, heard.len());
        let late = match *self.condition.borrow() {
            Condition::Slow(late) => late,
            Condition::Up | Condition::Down => Duration::ZERO,
        };
        let at = self.began + done + self.network + late;
        if let [_, channel, message] = words
            && !heard.is_empty()
        {
            let parts = [&b"message"[..], channel, message].map(resp::Reply::text);
            let push: Arc<[u8]> = resp::Reply::Push(parts.to_vec()).encode().into();
            for one in heard {
                let _ = one.outgoing.send(Outgoing { at, bytes: Arc::clone(&push) });
            }
        }
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).note(kind, arrived, start, done);
        self.free_at = done;
        if let Some(connected) = self.connections.get_mut(&id) {
            if let [name, channel] = words
                && name.eq_ignore_ascii_case(b"SUBSCRIBE")
            {
                connected.channel = Some(channel.clone());
            }
            let _ = connected.outgoing.send(Outgoing { at, bytes: bytes.into() });
        }
    }
}
