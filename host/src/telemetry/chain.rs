//! The chain of hashes in the record: a line that is changed, removed or inserted later shows.
//!
//! Each process has a chain of its own, because several processes append to one file. A line ends with the name of its
//! chain, its number in it, and a hash. The hash is SHA-256 over the hash of the chain's line before it, as 64 hexadecimal
//! digits, and over the line without its hash. Before the first line, the hash is 64 zeros.
//!
//! Who can write the file can also compute a new chain. `docs/reference/record.md` says what the chain shows, and what not.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// The hash before the first line.
const START: [u8; HEX] = [b'0'; HEX];

/// The digits of a hash.
const HEX: usize = 64;

/// What comes before the hash in a line.
const HASH: &str = ",\"hash\":\"";

/// The chain of the lines that one process writes.
pub struct LineChain {
    name: String,
    number: u64,
    last: [u8; HEX],
}

impl LineChain {
    /// A new chain. Its random `name` keeps it apart from those of other processes.
    pub fn new(name: [u8; 8]) -> Self {
        Self { name: HEXLOWER.encode(&name), number: 0, last: START }
    }

    /// Adds the line in `out` from `from` on, which is a JSON object without a line break, to the chain, and writes its place
    /// in the chain into it.
    pub fn seal(&mut self, out: &mut Vec<u8>, from: usize) {
        if out.len() <= from || out.pop_if(|last| *last == b'}').is_none() {
            return;
        }
        self.number += 1;
        out.extend_from_slice(b",\"chain\":\"");
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(b"\",\"number\":");
        out.extend_from_slice(self.number.to_string().as_bytes());
        self.last = hash(&self.last, out.get(from..).unwrap_or_default());
        out.extend_from_slice(HASH.as_bytes());
        out.extend_from_slice(&self.last);
        out.extend_from_slice(b"\"}");
    }
}

/// The hash of a line. `open`: the line up to its hash.
fn hash(before: &[u8], open: &[u8]) -> [u8; HEX] {
    let mut hasher = Sha256::new();
    hasher.update(before);
    hasher.update(open);
    hasher.update(b"}");
    let mut digits = [0; HEX];
    HEXLOWER.encode_mut(&hasher.finalize(), &mut digits);
    digits
}

/// The place of a line in its chain.
#[derive(Deserialize)]
struct Place {
    chain: String,
    number: u64,
    hash: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// The line is no JSON object.
    #[error("the line is not of the record")]
    Foreign,
    /// The line has no place in a chain, and comes after lines that have one.
    #[error("the line has no hash")]
    Unsealed,
    /// Lines are missing before this one.
    #[error("{0} lines before this one are missing")]
    Missing(u64),
    /// The number was there before.
    #[error("the line is out of order, or there twice")]
    OutOfOrder,
    /// The hash is not that of this line.
    #[error("the line was changed, or one before it was")]
    Changed,
}

/// A chain, as far as it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedChain {
    /// The number of the first line that is there. More than 1: the lines before it are in no checked file.
    pub first: u64,
    /// The number of the last line.
    pub last: u64,
    /// The hash of the last line.
    pub hash: String,
}

/// Checks the lines of a record, in the order in which they were written.
#[derive(Default)]
pub struct ChainCheck {
    chains: HashMap<String, CheckedChain>,
    unsealed: u64,
}

impl ChainCheck {
    /// Checks the next line, without its line break.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&mut self, line: &str) -> Result<(), ChainFault> {
        let Ok(place) = serde_json::from_str::<Place>(line) else {
            let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok();
            return match (is_object, self.chains.is_empty()) {
                (false, _) => Err(ChainFault::Foreign),
                (true, false) => Err(ChainFault::Unsealed),
                (true, true) => {
                    self.unsealed += 1;
                    Ok(())
                }
            };
        };
        let end = format!("{HASH}{}\"}}", place.hash);
        let open = line.strip_suffix(end.as_str()).ok_or(ChainFault::Changed)?;
        // Numbers begin at 1.
        if place.number == 0 {
            return Err(ChainFault::Changed);
        }
        let known = self.chains.get(&place.chain);
        let missing = match known {
            Some(known) if place.number <= known.last => return Err(ChainFault::OutOfOrder),
            Some(known) => place.number - known.last - 1,
            None => 0,
        };
        let before = match known {
            Some(known) => Some(known.hash.as_bytes()),
            None if place.number == 1 => Some(&START[..]),
            // Nothing is known of the line before.
            None => None,
        };
        let is_right = before.is_none_or(|before| hash(before, open.as_bytes())[..] == *place.hash.as_bytes());
        let first = known.map_or(place.number, |known| known.first);
        let checked = CheckedChain { first, last: place.number, hash: place.hash };
        self.chains.insert(place.chain, checked);
        match (missing, is_right) {
            // The hash of a line after a gap cannot be checked.
            (1.., _) => Err(ChainFault::Missing(missing)),
            (_, false) => Err(ChainFault::Changed),
            (_, true) => Ok(()),
        }
    }

    /// The chains, by name.
    pub fn chains(&self) -> Vec<(&str, &CheckedChain)> {
        let mut all: Vec<_> = self.chains.iter().map(|(name, chain)| (name.as_str(), chain)).collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }

    /// Lines without a hash, before the first line that has one. An earlier version of belljar wrote such lines.
    pub fn unsealed(&self) -> u64 {
        self.unsealed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<String> {
        let (mut one, mut two) = (LineChain::new([1; 8]), LineChain::new([2; 8]));
        let line = |n: usize| format!("{{\"time\":\"t\",\"n\":{n}}}");
        (0..10).map(|n| sealed(if n % 3 == 0 { &mut two } else { &mut one }, &line(n))).collect()
    }

    /// The line with its place in the chain. Something else stands before it.
    fn sealed(chain: &mut LineChain, line: &str) -> String {
        let mut out = format!("before\n{line}").into_bytes();
        chain.seal(&mut out, 7);
        String::from_utf8(out).unwrap().strip_prefix("before\n").unwrap().to_owned()
    }

    /// The faults of these lines, with the index of each.
    fn faults(lines: &[String]) -> Vec<(usize, ChainFault)> {
        let mut check = ChainCheck::default();
        let checked = lines.iter().enumerate().filter_map(|(index, line)| Some((index, check.check(line).err()?)));
        checked.collect()
    }

    #[test]
    fn lines_of_several_processes_are_whole() {
        let lines = lines();
        assert_eq!(faults(&lines), []);
        assert!(lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        let mut check = ChainCheck::default();
        lines.iter().for_each(|line| check.check(line).unwrap());
        let chains: Vec<_> = check.chains().into_iter().map(|(name, chain)| (name, chain.first, chain.last)).collect();
        assert_eq!(chains, [("0101010101010101", 1, 6), ("0202020202020202", 1, 4)]);
    }

    #[test]
    fn each_change_shows() {
        let whole = lines();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] = changed[at].replace("\"n\":", "\"n\":1");
            assert!(faults(&changed).contains(&(at, ChainFault::Changed)), "{at} changed");
            let mut foreign = whole.clone();
            foreign.insert(at, "nonsense".to_owned());
            assert_eq!(faults(&foreign), [(at, ChainFault::Foreign)], "{at} inserted");
            let mut twice = whole.clone();
            twice.insert(at + 1, whole[at].clone());
            assert_eq!(faults(&twice), [(at + 1, ChainFault::OutOfOrder)], "{at} repeated");
        }
        // The last line of each chain can be removed unseen.
        for at in 0..7 {
            let mut removed = whole.clone();
            removed.remove(at);
            let found = faults(&removed);
            let is_first = at < 2;
            assert_eq!(found.is_empty(), is_first, "{at}: {found:?}");
        }
        let mut bare = whole.clone();
        bare[5] = "{\"time\":\"t\",\"n\":5}".to_owned();
        assert!(faults(&bare).contains(&(5, ChainFault::Unsealed)));
    }

    #[test]
    fn extreme_numbers_are_faults_and_no_panics() {
        let line = |number: &str| {
            let open = format!("{{\"a\":1,\"chain\":\"x\",\"number\":{number}");
            format!("{open}{HASH}{}\"}}", String::from_utf8_lossy(&hash(&START, open.as_bytes())))
        };
        let max = u64::MAX.to_string();
        let lines = ["0", &max, "1", &max].map(line).to_vec();
        let faults = faults(&lines);
        assert_eq!(faults, [(0, ChainFault::Changed), (2, ChainFault::OutOfOrder), (3, ChainFault::OutOfOrder)]);
        for number in ["-1", "1.5", "18446744073709551616", "null"] {
            assert!(ChainCheck::default().check(&line(number)).is_ok(), "no place in a chain: {number}");
        }
    }

    #[test]
    fn a_swap_of_two_lines_shows() {
        let mut lines = lines();
        lines.swap(1, 2);
        let faults = faults(&lines);
        assert!(faults.contains(&(2, ChainFault::OutOfOrder)), "{faults:?}");
    }

    #[test]
    fn lines_of_an_earlier_version_may_come_first() {
        let lines = [vec!["{\"time\":\"t\"}".to_owned()], lines()].concat();
        assert_eq!(faults(&lines), []);
    }

    #[test]
    fn rotated_lines_are_known_to_be_missing() {
        let mut check = ChainCheck::default();
        lines()[4..].iter().for_each(|line| check.check(line).unwrap());
        assert!(check.chains().iter().all(|(_, chain)| chain.first > 1));
    }
}
