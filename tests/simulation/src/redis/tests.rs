//! The simulated Redis answers as a real one does: the same random requests to both.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use belljar_tests::redis::Redis;

use super::engine::Engine;
use super::resp::{Reply, Words, encode};

/// The scripts of belljar, with the number of keys of each.
const SCRIPTS: [(&str, usize); 7] = [
    (include_str!("../../../../host/src/store/redis/quota.lua"), 2),
    (include_str!("../../../../host/src/store/redis/round.lua"), 2),
    (include_str!("../../../../host/src/store/redis/beat.lua"), 6),
    (include_str!("../../../../host/src/store/redis/cache_get.lua"), 3),
    (include_str!("../../../../host/src/store/redis/cache_put.lua"), 3),
    (include_str!("../../../../host/src/store/redis/cache_change.lua"), 1),
    (include_str!("../../../../host/src/store/redis/spent.lua"), 1),
];

/// Larger numbers are times.
const MOST: i64 = 50_000;

/// Requests that are sent to both.
const REQUESTS: usize = 10_000;

fn words(words: &[&str]) -> Words {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A reply as text. Times are left out: they differ. So is the order of lists, which a hash does not have.
fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Integer(number) if *number > MOST => "TIME".to_owned(),
        Reply::Bulk(text) => {
            let text = String::from_utf8_lossy(text).into_owned();
            if text.parse::<u64>().is_ok_and(|number| number > MOST as u64) { "TIME".to_owned() } else { text }
        }
        Reply::Array(items) => {
            let mut items: Vec<String> = items.iter().map(shown).collect();
            items.sort();
            format!("{items:?}")
        }
        Reply::Error(text) => format!("error {}", text.split(' ').next().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

/// A connection to a real Redis.
struct Real(BufReader<TcpStream>);

impl Real {
    fn ask(&mut self, words: &Words) -> Reply {
        self.0.get_mut().write_all(&encode(words)).unwrap();
        self.read()
    }

    fn read(&mut self) -> Reply {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Reply::Status(if rest == "OK" { "OK" } else { "PONG" }),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "_" => Reply::Null,
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                Reply::Bulk(text)
            }
            "*" => Reply::Array((0..rest.parse().unwrap()).map(|_| self.read()).collect()),
            "%" => Reply::Map((0..rest.parse().unwrap()).map(|_| (self.read(), self.read())).collect()),
            _ => panic!("{line:?}"),
        }
    }
}

/// A random request that belljar could send.
fn request(random: &mut fastrand::Rng) -> Words {
    let mut one_of = |texts: &[&str]| texts[random.usize(..texts.len())].to_owned();
    let (key, member, other) = (one_of(&["k1", "k2", "a-0k1"]), one_of(&["0a", "0b", "0c"]), one_of(&["0a", "0d"]));
    let (small, large) = (one_of(&["0", "1", "2", "7"]), one_of(&["900000000", "800000000"]));
    let command = match one_of(&["script", "script", "script", "text", "hash", "sorted"]).as_str() {
        "text" => match one_of(&["set", "nx", "get", "del", "incr", "expire"]).as_str() {
            "set" => vec!["SET", &key, &small, "PX", &large],
            "nx" => vec!["SET", &key, &member, "NX", "EX", "900000"],
            "get" => vec!["GET", &key],
            "del" => vec!["DEL", &key],
            "incr" => vec!["INCR", "n"],
            _ => vec!["PEXPIRE", &key, &large],
        },
        "hash" => match one_of(&["set", "get", "many", "values", "del"]).as_str() {
            "set" => vec!["HSET", "h", &member, &small],
            "get" => vec!["HGET", "h", &member],
            "many" => vec!["HMGET", "h", &member, &other],
            "values" => vec!["HVALS", "h"],
            _ => vec!["HDEL", "h", &member, &other],
        },
        "sorted" => match one_of(&["add", "rem", "range", "score", "remscore", "wrong"]).as_str() {
            "add" => vec!["ZADD", "z", &small, &member],
            "rem" => vec!["ZREM", "z", &member],
            "range" => vec!["ZRANGE", "z", "0", if small == "0" { "-1" } else { &small }],
            "score" => vec!["ZRANGEBYSCORE", "z", "-inf", &small],
            "remscore" => vec!["ZREMRANGEBYSCORE", "z", "-inf", &small],
            _ => vec!["HGET", "z", &member],
        },
        _ => {
            let script = one_of(&["0", "0", "1", "2", "3", "4", "5", "6"]);
            let (text, keys) = SCRIPTS[script.parse::<usize>().unwrap()];
            let name = sha1_smol::Sha1::from(text).digest().to_string();
            let count = keys.to_string();
            let arguments = match script.as_str() {
                // Little comes back in the time of the test: 1 unit a day.
                "0" => {
                    let (burst, mode) = (one_of(&["5", "2000"]), one_of(&["take", "take", "charge"]));
                    let one = format!("1 86400000000 {burst} {} {small}", one_of(&["0", "0", "1", "-1"]));
                    format!("{mode} {one} {one}")
                }
                "1" => format!("{member} 900000000 900000000 {small} name-{other}"),
                "2" => format!("{member} {member}:said {other} 900000000 900000000 {} 0", one_of(&["changed", "-"])),
                "3" => format!("{member} 900000000"),
                "4" => format!("{member} {} {large} answer", one_of(&["1", "2"])),
                "6" => format!("{member} 900000000"),
                _ => String::new(),
            };
            // The scripts of the shared answers have the same keys.
            let kind = if ["3", "4", "5"].contains(&script.as_str()) { "a" } else { &script };
            let key = |number: usize| format!("{kind}-{number}{}", if script == "2" { "" } else { &key });
            let all = [vec!["EVALSHA".to_owned(), name, count], (0..keys).map(key).collect()].concat();
            let arguments = arguments.split_whitespace().map(str::to_owned);
            return all.into_iter().chain(arguments).map(String::into_bytes).collect();
        }
    };
    words(&command)
}

#[test]
fn it_answers_as_a_real_redis_does() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut real = Real(BufReader::new(TcpStream::connect(redis.address()).unwrap()));
    let mut simulated = Engine::new().unwrap();
    let hello = words(&["HELLO", "3"]);
    for reply in [real.ask(&hello), simulated.run(&hello, Duration::ZERO).0] {
        assert!(matches!(&reply, Reply::Map(_)), "{reply:?}");
    }
    let mut ask = |words: &Words, time: Duration| {
        let (real, simulated) = (real.ask(words), simulated.run(words, time).0);
        assert_eq!(shown(&simulated), shown(&real), "{}", String::from_utf8_lossy(&words.join(&b' ')));
    };
    ask(&words(&["EVALSHA", "4a2267357833227dd98abdedb8cf24b15a986445", "0"]), Duration::ZERO);
    for (text, _) in SCRIPTS {
        ask(&words(&["SCRIPT", "LOAD", text]), Duration::ZERO);
    }
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..REQUESTS {
        ask(&request(&mut random), Duration::from_micros(number as u64 * 50));
    }
}
