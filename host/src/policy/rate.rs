//! Rates of rules: how much a principal may take in a period. This module says what is allowed; `limits` counts.

use std::fmt;
use std::time::Duration;

use crate::model::error::show_bytes;

/// One rate of one rule, for each principal to whom the rule applies. The principal may take `amount` at once after a
/// pause of `period`. What was taken comes back evenly over the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaRule {
    /// Identifies the rate among all rates of all rules. Equal as long as the rule is the same, so that a reload of the
    /// configuration does not start the count anew.
    pub id: u64,
    /// Requests or bytes in a period. At least 1.
    pub amount: u64,
    /// What is counted.
    pub unit: QuotaUnit,
    /// The period. Longer than zero.
    pub period: Duration,
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaUnit {
    /// Requests of clients. Refused requests do not count.
    Requests,
    /// Bytes of the contents of answers. The answer is served first and counted afterwards, so one answer may exceed the
    /// amount; the next request waits until that is made up for.
    Bytes,
}

impl fmt::Display for QuotaRule {
    /// `60 requests in 1m`, or `50MiB in 1day`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = match (self.unit, self.amount) {
            (QuotaUnit::Requests, 1) => "1 request".to_owned(),
            (QuotaUnit::Requests, amount) => format!("{amount} requests"),
            (QuotaUnit::Bytes, amount) => show_bytes(amount),
        };
        write!(f, "{amount} in {}", humantime::format_duration(self.period))
    }
}
