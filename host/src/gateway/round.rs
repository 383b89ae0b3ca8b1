//! One poll of a mount for one replica or for all of them: what it looks at, and what it tells the others.

use std::collections::HashMap;

use super::poll_target::ResourceState;
use crate::store::{RoundNews, StateNews};

/// The role of this replica in a round of a mount, and what the others watch.
pub(super) enum PollRole {
    /// It looks for itself.
    Alone,
    /// It looks for all.
    Leader {
        /// The number of its lease.
        fence: u64,
        /// References that replicas watch.
        references: Vec<String>,
        /// True if a replica wants to know changes of the list.
        wants_list: bool,
    },
    /// Another replica looks.
    Follower,
}

impl PollRole {
    /// The number of the lease. 0: this replica is not the leader.
    fn fence(&self) -> u64 {
        match self {
            Self::Leader { fence, .. } => *fence,
            Self::Alone | Self::Follower => 0,
        }
    }
}

/// What the rounds of one mount found so far, and the round that runs.
pub(super) struct Rounds {
    /// The number of the lease under which the states were told.
    fence: u64,
    /// The states that the other replicas know.
    told: HashMap<String, ResourceState>,
    /// The role in the round that runs.
    role: PollRole,
    /// True if this replica must look at the list although it is not the leader.
    must_look: bool,
    news: RoundNews,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { fence: 0, told: HashMap::new(), role: PollRole::Alone, must_look: false, news: RoundNews::default() }
    }
}

impl Rounds {
    /// Begins a round. `mount`: the key of the mount. `must_repeat`: the others may have missed news. True if this replica
    /// has just become the leader: then it looks at once.
    pub(super) fn begin(&mut self, mount: [u8; 32], role: PollRole, must_repeat: bool, must_look: bool) -> bool {
        let is_new = self.is_new_leader(&role);
        let fence = role.fence();
        if is_new || must_repeat || fence == 0 {
            self.told.clear();
        }
        self.fence = fence;
        self.role = role;
        self.must_look = must_look;
        let is_whole = is_new || must_repeat;
        self.news = RoundNews { mount, fence, is_whole, ..RoundNews::default() };
        is_new
    }

    /// True if this role makes this replica the leader, and it was not before.
    pub(super) fn is_new_leader(&self, role: &PollRole) -> bool {
        role.fence() != 0 && role.fence() != self.fence
    }

    /// True if other replicas may take part.
    pub(super) fn has_others(&self) -> bool {
        !matches!(self.role, PollRole::Alone)
    }

    /// True if only what is not known at all is looked at, because another replica looks.
    pub(super) fn is_follower(&self) -> bool {
        matches!(self.role, PollRole::Follower)
    }

    /// True if the list is looked at although this replica is not the leader.
    pub(super) fn must_look(&self) -> bool {
        self.must_look
    }

    /// What other replicas watch: references, and whether one wants to know changes of the list.
    pub(super) fn of_others(&self) -> (&[String], bool) {
        match &self.role {
            PollRole::Leader { references, wants_list, .. } => (references, *wants_list),
            PollRole::Alone | PollRole::Follower => (&[], false),
        }
    }

    /// Notes the state of a resource. True if the others know another one.
    pub(super) fn note(&mut self, reference: &str, state: ResourceState) -> bool {
        if self.fence == 0 {
            return false;
        }
        let before = self.told.insert(reference.to_owned(), state);
        let is_change = before.is_some_and(|before| before != state);
        if is_change || before.is_none() {
            let state = match state {
                ResourceState::Present(hash) => Some(*hash.as_bytes()),
                ResourceState::Absent => None,
            };
            self.news.states.push(StateNews { reference: reference.to_owned(), state, is_change });
        }
        is_change
    }

    /// Notes the hash of the list.
    pub(super) fn note_list(&mut self, digest: Option<blake3::Hash>) {
        if self.fence != 0 {
            self.news.list = Some(digest.map(|hash| *hash.as_bytes()));
        }
    }

    /// What the others are told.
    pub(super) fn take_news(&mut self) -> RoundNews {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(fence: u64) -> PollRole {
        PollRole::Leader { fence, references: Vec::new(), wants_list: false }
    }

    fn state(text: &str) -> ResourceState {
        ResourceState::Present(blake3::hash(text.as_bytes()))
    }

    #[test]
    fn a_leader_tells_what_is_new() {
        let mut rounds = Rounds::default();
        let mut told = |role, must_repeat, state| -> Vec<bool> {
            rounds.begin([1; 32], role, must_repeat, false);
            rounds.note("a", state);
            rounds.take_news().states.iter().map(|one| one.is_change).collect()
        };
        assert_eq!(told(PollRole::Alone, false, state("1")), [false; 0]);
        assert_eq!(told(leader(1), false, state("1")), [false], "known for the first time");
        assert_eq!(told(leader(1), false, state("1")), [false; 0]);
        assert_eq!(told(leader(1), false, state("2")), [true]);
        assert_eq!(told(leader(1), true, state("2")), [false], "somebody missed it");
        assert_eq!(told(leader(2), false, state("2")), [false], "another lease");
        assert_eq!(told(leader(2), false, ResourceState::Absent), [true]);
        assert_eq!(told(PollRole::Follower, false, state("3")), [false; 0]);
    }
}
