//! What the store's thread did: how long it was busy with what, and how long requests waited.

use std::ops::Range;
use std::time::Duration;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Quota,
    Round,
    Beat,
    News,
    Answer,
    Other,
}

impl Kind {
    /// All, in the order of [`Usage::busy`].
    pub(crate) const ALL: [Self; 6] = [Self::Quota, Self::Round, Self::Beat, Self::News, Self::Answer, Self::Other];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quota => "quotas",
            Self::Round => "rounds",
            Self::Beat => "beats",
            Self::News => "news",
            Self::Answer => "answers",
            Self::Other => "other",
        }
    }

    /// The kind of a request, by the name of its command and of its first key.
    pub(crate) fn of(words: &[Vec<u8>]) -> Self {
        let key = match words {
            [name, ..] if name.eq_ignore_ascii_case(b"PUBLISH") => return Self::News,
            [name, _, _, key, ..] if name.eq_ignore_ascii_case(b"EVALSHA") => String::from_utf8_lossy(key),
            _ => return Self::Other,
        };
        match key.split(':').nth(2) {
            Some("quota") => Self::Quota,
            Some("watched") => Self::Round,
            Some("{beat}") => Self::Beat,
            Some("epoch") => Self::Answer,
            _ => Self::Other,
        }
    }
}

/// See the module. Counts requests that were done in one span of time.
pub(crate) struct Usage {
    span: Range<Duration>,
    busy: [Duration; 6],
    requests: [u64; 6],
    /// The times from the arrival of requests until they were done, in microseconds.
    waits: Vec<u32>,
}

impl Usage {
    /// Counts what is done in `span`, since the store began.
    pub(crate) fn new(span: Range<Duration>) -> Self {
        Self { span, busy: [Duration::ZERO; 6], requests: [0; 6], waits: Vec::new() }
    }

    /// Notes a request.
    pub(crate) fn note(&mut self, kind: Kind, arrived: Duration, start: Duration, done: Duration) {
        if !self.span.contains(&start) {
            return;
        }
        let slots = self.busy.iter_mut().zip(&mut self.requests).zip(Kind::ALL);
        for ((busy, requests), _) in slots.filter(|(_, one)| *one == kind) {
            *busy += done - start;
            *requests += 1;
        }
        self.waits.push(u32::try_from((done - arrived).as_micros()).unwrap_or(u32::MAX));
    }

    /// The share of the span in which the thread was busy with each kind.
    pub(crate) fn busy(&self) -> [f64; 6] {
        let span = (self.span.end - self.span.start).as_secs_f64();
        self.busy.map(|busy| busy.as_secs_f64() / span)
    }

    /// The processor time of all requests, and their number.
    pub(crate) fn total(&self) -> (Duration, u64) {
        (self.busy.iter().sum(), self.requests.iter().sum())
    }

    /// The wait that this share of all requests did not exceed.
    pub(crate) fn wait(&mut self, share: f64) -> Duration {
        quantile(&mut self.waits, share).map_or(Duration::ZERO, |wait| Duration::from_micros(wait.into()))
    }
}

/// The value that this share of `values` does not exceed.
pub(crate) fn quantile(values: &mut [u32], share: f64) -> Option<u32> {
    let index = (values.len().checked_sub(1)? as f64 * share).round() as usize;
    Some(*values.select_nth_unstable(index).1)
}
