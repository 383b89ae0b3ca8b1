//! Identifies the count of one quota of one principal.

use crate::policy::CallerId;
use crate::store::quota::{QuotaDraw, QuotaId, QuotaRate};

/// See the module. The rate is a part of it: a changed rate starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// The principal.
    pub principal: [u8; 16],
    /// The quota.
    pub quota: QuotaId,
    /// Its rate.
    pub rate: QuotaRate,
}

impl QuotaKey {
    /// The key of a draw. `None` for a connection: it belongs to one replica.
    pub fn of(draw: &QuotaDraw) -> Option<Self> {
        match draw.caller {
            CallerId::Principal(principal) => {
                Some(Self { principal: principal.bytes(), quota: draw.quota, rate: draw.rate })
            }
            CallerId::Connection(_) => None,
        }
    }

    /// The quota and its rate as bytes, the same in every process.
    pub(super) fn quota_bytes(&self) -> [u8; 41] {
        let (kind, id) = match self.quota {
            QuotaId::Callers => (0, 0),
            QuotaId::Rule(id) => (1, id),
        };
        let mut bytes = [0; 41];
        let parts = [id, self.rate.amount, self.rate.burst].map(u64::to_le_bytes).concat();
        let period = self.rate.period.as_nanos().to_le_bytes();
        let all = [kind].into_iter().chain(parts).chain(period);
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}
