//! A sorted set of Redis: members in the order of their scores.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

/// See the module.
#[derive(Default)]
pub(crate) struct SortedSet {
    scores: HashMap<Vec<u8>, f64>,
    order: BTreeSet<(Score, Vec<u8>)>,
}

#[derive(Clone, Copy)]
struct Score(f64);

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

impl SortedSet {
    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    /// Sets the score of `member`. True if it is new.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64) -> bool {
        let is_new = !self.remove(member);
        self.scores.insert(member.to_vec(), score);
        self.order.insert((Score(score), member.to_vec()));
        is_new
    }

    /// True if `member` was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let before = self.scores.remove_entry(member);
        before.is_some_and(|(member, score)| self.order.remove(&(Score(score), member)))
    }

    /// The members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.order.iter().map(|(_, member)| member)
    }

    /// The members with a score from `from` to `to`.
    pub(crate) fn between(&self, from: f64, to: f64) -> Vec<Vec<u8>> {
        let first = (Score(from), Vec::new());
        let within = self.order.range(first..).take_while(|(score, _)| score.0 <= to);
        within.map(|(_, member)| member.clone()).collect()
    }
}
