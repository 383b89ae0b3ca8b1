//! The data of the simulated Redis, and the commands that belljar and its scripts use. Keys expire in virtual time.

use std::collections::{BTreeMap, HashMap};

use super::resp::Reply;
use super::sorted_set::SortedSet;

/// The virtual clock starts here, in microseconds since the Unix epoch.
const EPOCH: u64 = 1_800_000_000_000_000;

/// The data.
#[derive(Default)]
pub(crate) struct Database {
    /// Microseconds since the start.
    time: u64,
    entries: HashMap<Vec<u8>, Entry>,
    /// Commands that ran, and values that they gave.
    pub(crate) calls: u64,
    pub(crate) elements: u64,
}

struct Entry {
    value: Value,
    /// In milliseconds since the Unix epoch.
    expires: Option<u64>,
}

/// The fields of a hash. Redis gives them in any order, this one in the order of their names.
type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

enum Value {
    Text(Vec<u8>),
    Hash(Fields),
    Sorted(SortedSet),
}

/// The text of an error reply.
type Failure = &'static str;

const WRONG_TYPE: Failure = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_A_NUMBER: Failure = "ERR value is not an integer or out of range";
const SYNTAX: Failure = "ERR syntax error";

fn integer(word: &[u8]) -> Result<i64, Failure> {
    std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()).ok_or(NOT_A_NUMBER)
}

fn score(word: &[u8]) -> Result<f64, Failure> {
    let text = std::str::from_utf8(word).unwrap_or_default();
    text.parse::<f64>().ok().filter(|score| !score.is_nan()).ok_or("ERR value is not a valid float")
}

fn count(number: usize) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn optional(value: Option<&Vec<u8>>) -> Reply {
    value.map_or(Reply::Null, Reply::text)
}

impl Database {
    /// Sets the clock, in microseconds since the start.
    pub(crate) fn set_time(&mut self, time: u64) {
        self.time = time;
    }

    fn milliseconds(&self) -> u64 {
        (EPOCH + self.time) / 1000
    }

    /// Runs a command.
    pub(crate) fn run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let reply = self.command(&words).unwrap_or_else(|failure| Reply::Error(failure.to_owned()));
        self.calls += 1;
        self.elements += reply.elements();
        reply
    }

    fn command(&mut self, words: &[&[u8]]) -> Result<Reply, Failure> {
        let Some((name, arguments)) = words.split_first() else { return Err(SYNTAX) };
        let name = name.to_ascii_uppercase();
        match (name.as_slice(), arguments) {
            (b"TIME", []) => {
                let now = EPOCH + self.time;
                Ok(Reply::texts([(now / 1_000_000).to_string(), (now % 1_000_000).to_string()]))
            }
            (b"GET", [key]) => Ok(optional(self.text(key)?)),
            (b"SET", [key, value, options @ ..]) => self.set(key, value, options),
            (b"DEL", keys) => Ok(count(
                keys.iter().filter(|key| self.live(key).is_some() && self.entries.remove(**key).is_some()).count(),
            )),
            (b"INCR", [key]) => {
                let number = self.text(key)?.map_or(Ok(0), |text| integer(text))? + 1;
                let text = number.to_string().into_bytes();
                match self.live(key) {
                    Some(entry) => entry.value = Value::Text(text),
                    None => drop(self.entries.insert(key.to_vec(), Entry { value: Value::Text(text), expires: None })),
                }
                Ok(Reply::Integer(number))
            }
            (b"PTTL", [key]) => {
                let now = self.milliseconds();
                Ok(Reply::Integer(match self.live(key).map(|entry| entry.expires) {
                    None => -2,
                    Some(None) => -1,
                    Some(Some(at)) => i64::try_from(at - now).unwrap_or(i64::MAX),
                }))
            }
            (b"EXPIRE", [key, time]) => {
                let time = integer(time)?;
                Ok(self.expire(key, time.saturating_mul(1000)))
            }
            (b"PEXPIRE", [key, time]) => {
                let time = integer(time)?;
                Ok(self.expire(key, time))
            }
            (b"HGET", [key, field]) => Ok(optional(self.hash(key)?.and_then(|hash| hash.get(*field)))),
            (b"HMGET", [key, fields @ ..]) => {
                let hash = self.hash(key)?;
                let get = |field: &&[u8]| optional(hash.and_then(|hash| hash.get(*field)));
                Ok(Reply::Array(fields.iter().map(get).collect()))
            }
            (b"HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                let Value::Hash(hash) = self.value(key, || Value::Hash(Fields::new())) else {
                    return Err(WRONG_TYPE);
                };
                let set = |pair: &&[&[u8]]| match pair {
                    [field, value] => hash.insert(field.to_vec(), value.to_vec()).is_none(),
                    _ => false,
                };
                Ok(count(pairs.chunks(2).collect::<Vec<_>>().iter().map(set).filter(|is_new| *is_new).count()))
            }
            (b"HDEL", [key, fields @ ..]) => {
                let Some(entry) = self.live(key) else { return Ok(count(0)) };
                let Value::Hash(hash) = &mut entry.value else { return Err(WRONG_TYPE) };
                let gone = fields.iter().filter(|field| hash.remove(**field).is_some()).count();
                if hash.is_empty() {
                    self.entries.remove(*key);
                }
                Ok(count(gone))
            }
            (b"HGETALL", [key]) => {
                let pairs = self.hash(key)?.into_iter().flatten();
                Ok(Reply::texts(pairs.flat_map(|(field, value)| [field, value])))
            }
            (b"HVALS", [key]) => Ok(Reply::texts(self.hash(key)?.into_iter().flat_map(Fields::values))),
            (b"ZADD", [key, at, member]) => {
                let at = score(at)?;
                let value = self.value(key, || Value::Sorted(SortedSet::default()));
                let Value::Sorted(set) = value else { return Err(WRONG_TYPE) };
                Ok(count(usize::from(set.insert(member, at))))
            }
            (b"ZREM", [key, members @ ..]) => {
                self.remove_members(key, |_| members.iter().map(|m| m.to_vec()).collect())
            }
            (b"ZREMRANGEBYSCORE", [key, from, to]) => {
                let (from, to) = (score(from)?, score(to)?);
                self.remove_members(key, |set| set.between(from, to))
            }
            (b"ZRANGEBYSCORE", [key, from, to]) => {
                let (from, to) = (score(from)?, score(to)?);
                Ok(Reply::texts(self.sorted(key)?.map(|set| set.between(from, to)).unwrap_or_default()))
            }
            (b"ZRANGE", [key, from, to]) => {
                let (from, to) = (integer(from)?, integer(to)?);
                let set = self.sorted(key)?;
                let length = set.map_or(0, SortedSet::len);
                let index = |at: i64| {
                    let length = i64::try_from(length).unwrap_or(i64::MAX);
                    usize::try_from(if at < 0 { (length + at + 1).max(0) } else { at + 1 }).unwrap_or(usize::MAX)
                };
                let (from, to) = (index(from).saturating_sub(1), index(to));
                Ok(Reply::texts(set.into_iter().flat_map(|set| set.members().skip(from).take(to.saturating_sub(from)))))
            }
            _ => Err("ERR unknown command, or a wrong number of arguments"),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8], options: &[&[u8]]) -> Result<Reply, Failure> {
        let (mut expires, mut only_new) = (None, false);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut time = |unit: i64| {
                let time = integer(options.next().ok_or(SYNTAX)?)?.checked_mul(unit).filter(|time| *time > 0);
                time.and_then(|time| u64::try_from(time).ok()).ok_or("ERR invalid expire time in 'set' command")
            };
            match option.to_ascii_uppercase().as_slice() {
                b"EX" => expires = Some(time(1000)?),
                b"PX" => expires = Some(time(1)?),
                b"NX" => only_new = true,
                _ => return Err(SYNTAX),
            }
        }
        if only_new && self.live(key).is_some() {
            return Ok(Reply::Null);
        }
        let expires = expires.map(|time| self.milliseconds() + time);
        self.entries.insert(key.to_vec(), Entry { value: Value::Text(value.to_vec()), expires });
        Ok(Reply::Status("OK"))
    }

    fn expire(&mut self, key: &[u8], time: i64) -> Reply {
        let at = self.milliseconds().saturating_add_signed(time);
        let Some(entry) = self.live(key) else { return Reply::Integer(0) };
        entry.expires = Some(at);
        if time <= 0 {
            self.entries.remove(key);
        }
        Reply::Integer(1)
    }

    fn remove_members(&mut self, key: &[u8], which: impl Fn(&SortedSet) -> Vec<Vec<u8>>) -> Result<Reply, Failure> {
        let Some(entry) = self.live(key) else { return Ok(count(0)) };
        let Value::Sorted(set) = &mut entry.value else { return Err(WRONG_TYPE) };
        let gone = which(set).iter().filter(|member| set.remove(member)).count();
        if set.len() == 0 {
            self.entries.remove(key);
        }
        Ok(count(gone))
    }

    /// The entry under `key`, unless it is over.
    fn live(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let now = self.milliseconds();
        if self.entries.get(key)?.expires.is_some_and(|at| now >= at) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    /// The value under `key`, made if there is none.
    fn value(&mut self, key: &[u8], make: impl FnOnce() -> Value) -> &mut Value {
        self.live(key);
        &mut self.entries.entry(key.to_vec()).or_insert_with(|| Entry { value: make(), expires: None }).value
    }

    fn text(&mut self, key: &[u8]) -> Result<Option<&Vec<u8>>, Failure> {
        match self.live(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn hash(&mut self, key: &[u8]) -> Result<Option<&Fields>, Failure> {
        match self.live(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn sorted(&mut self, key: &[u8]) -> Result<Option<&SortedSet>, Failure> {
        match self.live(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Sorted(set)) => Ok(Some(set)),
            Some(_) => Err(WRONG_TYPE),
        }
    }
}
