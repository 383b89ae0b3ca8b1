//! The commands of a connection, the scripts and the data of the simulated Redis, without connections and without time.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::database::Database;
use super::resp::Reply;
use super::scripts::Scripts;

/// See the module.
pub(super) struct Engine {
    database: Rc<RefCell<Database>>,
    scripts: Scripts,
}

/// What one request made the store do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Scripts that ran.
    pub(crate) scripts: u64,
    /// Commands in scripts.
    pub(crate) calls: u64,
    /// Values that these commands gave.
    pub(crate) elements: u64,
    /// Values that a script answered.
    pub(crate) replied: u64,
}

impl Engine {
    /// Without data.
    ///
    /// # Errors
    /// If Lua cannot be set up.
    pub(super) fn new() -> anyhow::Result<Self> {
        let database = Rc::default();
        let scripts = Scripts::new(&database).map_err(|error| anyhow::anyhow!("Lua: {error}"))?;
        Ok(Self { database, scripts })
    }

    /// Answers one request at `time`.
    pub(super) fn run(&mut self, words: &[Vec<u8>], time: Duration) -> (Reply, Work) {
        {
            let mut database = self.database.borrow_mut();
            database.set_time(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
            (database.calls, database.elements) = (0, 0);
        }
        let Some((name, arguments)) = words.split_first() else {
            return (Reply::Error("ERR no command".to_owned()), Work::default());
        };
        let name = name.to_ascii_uppercase();
        let mut work = Work::default();
        let reply = match (name.as_slice(), arguments) {
            (b"HELLO", _) => hello(),
            (b"PING", _) => Reply::Status("PONG"),
            (b"SELECT", _) => Reply::Status("OK"),
            // The thread of the store delivers the messages, and knows to how many.
            (b"PUBLISH", _) => Reply::Integer(0),
            (b"SUBSCRIBE", [channel]) => {
                Reply::Push(vec![Reply::text("subscribe"), Reply::text(channel), Reply::Integer(1)])
            }
            (b"SCRIPT", [load, text]) if load.eq_ignore_ascii_case(b"LOAD") => self.scripts.load(text),
            (b"EVALSHA", [script, count, rest @ ..]) => {
                let count = std::str::from_utf8(count).ok().and_then(|count| count.parse::<usize>().ok());
                match count.and_then(|count| rest.split_at_checked(count)) {
                    Some((keys, arguments)) => {
                        let reply = self.scripts.run(&script.to_ascii_lowercase(), keys, arguments);
                        let database = self.database.borrow();
                        work = Work {
                            scripts: 1,
                            calls: database.calls,
                            elements: database.elements,
                            replied: reply.elements(),
                        };
                        reply
                    }
                    None => Reply::Error("ERR Number of keys can't be greater than number of args".to_owned()),
                }
            }
            _ => self.database.borrow_mut().run(words),
        };
        (reply, work)
    }
}

fn hello() -> Reply {
    let texts = [("server", "redis"), ("version", "7.0.15"), ("mode", "standalone"), ("role", "master")];
    let mut pairs: Vec<_> = texts.map(|(name, value)| (Reply::text(name), Reply::text(value))).to_vec();
    pairs.push((Reply::text("proto"), Reply::Integer(3)));
    pairs.push((Reply::text("id"), Reply::Integer(1)));
    pairs.push((Reply::text("modules"), Reply::Array(Vec::new())));
    Reply::Map(pairs)
}
