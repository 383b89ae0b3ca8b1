//! What is watched of one mount, and the task that polls it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::last_lists::ListFingerprint;
use super::visible_list::VisibleLists;
use crate::model::bounds::MAX_WATCHED_URIS_TOTAL;
use crate::sandbox::MountId;
use crate::store::RoundNews;

/// News with an older number are taken again after this time without any: the store may have lost its clock.
const FENCE_MEMORY: Duration = Duration::from_secs(60);

/// The watched resources of one mount, and the task that polls them.
pub(in crate::gateway) struct MountWatch {
    pub(in crate::gateway) base: String,
    pub(in crate::gateway) uris: HashSet<Arc<str>>,
    pub(in crate::gateway) fingerprint: Option<ListFingerprint>,
    /// What principals that see a part of the mount saw of its list.
    pub(in crate::gateway) visible: VisibleLists,
    /// The mount whose list is being polled now.
    pub(in crate::gateway) polled: Option<MountId>,
    /// The number of resources that one call asks for.
    pub(super) chunk: usize,
    pub(in crate::gateway) wake: Arc<Notify>,
    /// True if this replica looks for all others.
    pub(in crate::gateway) is_leader: bool,
    /// True if another replica may have missed news: what is known is told again.
    pub(in crate::gateway) must_repeat: bool,
    /// True if this replica must look at the list although it is not the leader.
    pub(in crate::gateway) must_look: bool,
    /// The last news of a round: the number of the lease, and when they came.
    heard: Option<(u64, Instant)>,
    /// When the last news came that had everything.
    heard_all: Option<Instant>,
    pub(super) task: Option<AbortHandle>,
}

impl Default for MountWatch {
    fn default() -> Self {
        Self {
            base: String::new(),
            uris: HashSet::new(),
            fingerprint: None,
            visible: VisibleLists::default(),
            polled: None,
            chunk: MAX_WATCHED_URIS_TOTAL.get(),
            wake: Arc::default(),
            is_leader: false,
            must_repeat: false,
            must_look: false,
            heard: None,
            heard_all: None,
            task: None,
        }
    }
}

impl Drop for MountWatch {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl MountWatch {
    /// True if these news come from the replica that holds the lease, as far as is known.
    pub(in crate::gateway) fn takes_news(&mut self, news: &RoundNews) -> bool {
        let now = Instant::now();
        let is_old =
            self.heard.is_some_and(|(last, at)| news.fence < last && now.saturating_duration_since(at) < FENCE_MEMORY);
        if !is_old {
            self.heard = Some((news.fence, now));
            self.heard_all = if news.is_whole { Some(now) } else { self.heard_all };
        }
        !is_old
    }

    /// True if news that had everything came since `time`.
    pub(in crate::gateway) fn has_heard_all_since(&self, time: Instant) -> bool {
        self.heard_all.is_some_and(|at| at >= time)
    }

    /// True if news of a round came since `time`.
    pub(in crate::gateway) fn has_heard_since(&self, time: Instant) -> bool {
        self.heard.is_some_and(|(_, at)| at >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn news_of_a_former_leader_are_refused() {
        let mut watch = MountWatch::default();
        let news = |fence| RoundNews { fence, ..RoundNews::default() };
        assert!(watch.takes_news(&news(7)) && watch.takes_news(&news(9)) && !watch.takes_news(&news(8)));
        tokio::time::advance(FENCE_MEMORY).await;
        assert!(watch.takes_news(&news(8)), "the store may have lost its clock");
    }

    #[tokio::test(start_paused = true)]
    async fn only_whole_news_make_up_for_lost_ones() {
        let (mut watch, lost_at) = (MountWatch::default(), Instant::now());
        watch.takes_news(&RoundNews { fence: 2, ..RoundNews::default() });
        assert!(watch.has_heard_since(lost_at) && !watch.has_heard_all_since(lost_at));
        watch.takes_news(&RoundNews { fence: 1, is_whole: true, ..RoundNews::default() });
        assert!(!watch.has_heard_all_since(lost_at), "of a former leader");
        watch.takes_news(&RoundNews { fence: 2, is_whole: true, ..RoundNews::default() });
        assert!(watch.has_heard_all_since(lost_at));
    }
}
