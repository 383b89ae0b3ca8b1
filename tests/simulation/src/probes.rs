//! What replicas do at a store, one thing at a time, to measure what it costs the store.

use std::sync::Arc;
use std::time::Duration;

use belljar::policy::{CallerId, Evidence, KeyIdentity, authenticate};
use belljar::store::{
    AnswerId, AnswerLookup, Generation, News, QuotaDraw, QuotaId, QuotaRate, RoundNews, SharedStore, StateNews,
};

/// One thing that a replica does.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    /// Replicas that are connected.
    pub(crate) replicas: usize,
    pub(crate) times: u32,
    action: Action,
}

enum Action {
    /// Takes from two quotas of a principal that this replica has no lease of.
    Take,
    /// Is refused.
    Refused,
    /// Begins a round with the lease, of a mount of which 40 names are watched.
    Lead,
    /// Begins a round without the lease.
    Follow,
    /// Says that it lives.
    Beat,
    /// Finds a shared answer of 4 KiB.
    Find,
    /// Makes a call for all, and keeps its answer of 4 KiB.
    Call,
    /// Tells the others what it found.
    Tell,
}

const fn probe(name: &'static str, replicas: usize, times: u32, action: Action) -> Probe {
    Probe { name, replicas, times, action }
}

/// All that is compared.
pub(crate) const PROBES: &[Probe] = &[
    probe("a draw from two quotas", 1, 2000, Action::Take),
    probe("a draw that is refused", 1, 2000, Action::Refused),
    probe("a round with the lease, 40 names", 1, 2000, Action::Lead),
    probe("a round without the lease", 2, 2000, Action::Follow),
    probe("a beat among 3 replicas", 3, 1500, Action::Beat),
    probe("a beat among 30 replicas", 30, 1500, Action::Beat),
    probe("a beat among 300 replicas", 300, 900, Action::Beat),
    probe("a shared answer that is found, 4 KiB", 1, 2000, Action::Find),
    probe("a call for all, with its answer, 4 KiB", 1, 2000, Action::Call),
    probe("news to 3 replicas", 3, 1500, Action::Tell),
    probe("news to 30 replicas", 30, 1500, Action::Tell),
    probe("news to 300 replicas", 300, 300, Action::Tell),
];

fn draw(principal: &str, id: u64, amount: u64, cost: u64) -> QuotaDraw {
    let identity = KeyIdentity { name: principal.to_owned(), ..KeyIdentity::default() };
    let caller = CallerId::Principal(authenticate(Evidence::Key(identity)).id());
    let rate = QuotaRate { amount, period: Duration::from_secs(60), burst: amount };
    QuotaDraw { quota: QuotaId::Rule(id), caller, rate, cost }
}

impl Probe {
    /// Does it for the `time`th time. The first time, 0, prepares.
    pub(crate) async fn run(&self, stores: &[Arc<SharedStore>], time: u32) {
        let (Some(store), Some(last)) = (stores.first(), stores.last()) else { return };
        let next = stores.get(time as usize % stores.len()).unwrap_or(store);
        match self.action {
            Action::Take => {
                let principal = format!("caller-{time}");
                let draws = [draw(&principal, 1, 200, 1), draw(&principal, 2, 200, 0)];
                store.quotas().take(&draws).await;
            }
            Action::Refused => {
                let cost = if time == 0 { 200 } else { 199 };
                store.quotas().take(&[draw("caller", 1, 200, cost)]).await;
            }
            Action::Lead => {
                let names: Vec<String> = (0..40).map(|number| format!("2026/notes/page-{number}.md")).collect();
                store.begin_round(&[1; 32], &names, true).await;
            }
            Action::Follow => {
                let one = if time == 0 { store } else { last };
                one.begin_round(&[1; 32], &[], false).await;
            }
            Action::Beat => {
                let own = Generation { name: "36b91a8de5ff3440".to_owned(), contents: Arc::default() };
                if time == 0 {
                    for one in stores {
                        one.beat(&own).await;
                    }
                }
                next.beat(&own).await;
            }
            Action::Find | Action::Call => {
                let number = if matches!(self.action, Action::Find) { 0 } else { time };
                let mut answer = [2; 32];
                answer.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
                let id = AnswerId { mount: [1; 32], answer };
                if let AnswerLookup::Lead(lead) = store.find_answer(id, Duration::from_secs(10)).await {
                    store.end_call(lead, Some((vec![b'x'; 4096], Duration::from_secs(60)))).await;
                }
            }
            Action::Tell => {
                let state = StateNews { reference: "a".to_owned(), state: Some([3; 32]), is_change: false };
                let news = RoundNews { mount: [1; 32], fence: 1, states: vec![state], is_whole: false, list: None };
                store.tell(&News::Round(news)).await;
            }
        }
    }
}
