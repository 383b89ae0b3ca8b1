//! Rates as rules are written with them: `60/min per caller`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::rate::{QuotaRule, QuotaUnit};

/// The periods, with the words for them.
const PERIODS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3600), ("day", 24 * 3600)];

/// A rate as a rule has it: `60/min per caller`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateRule {
    text: String,
    /// Requests or bytes in one period.
    pub amount: u64,
    /// What is counted.
    pub unit: QuotaUnit,
    /// The period.
    pub period: Duration,
}

/// Why a text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// It has another form.
    #[error(
        "a rate is a number or a size, a period (s, min, h or day) and \"per caller\"; for example \"60/min per caller\" or \"50MiB/day per caller\""
    )]
    Form,
    /// Nothing is allowed at this rate.
    #[error("a rate is at least 1; to forbid it altogether, use [[deny]]")]
    Zero,
}

impl RateRule {
    /// The rate with the identity under which it is counted.
    pub(super) fn quota(&self, id: u64) -> QuotaRule {
        QuotaRule { id, amount: self.amount, unit: self.unit, period: self.period }
    }
}

impl FromStr for RateRule {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [rate, "per", "caller"] = words.as_slice() else { return Err(RateError::Form) };
        let (amount, period) = rate.split_once('/').ok_or(RateError::Form)?;
        let seconds = PERIODS.iter().find(|(word, _)| *word == period).map(|(_, seconds)| *seconds);
        let period = Duration::from_secs(seconds.ok_or(RateError::Form)?);
        let is_number = !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
        // bytesize would take a sign and a number without a unit.
        if !amount.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(RateError::Form);
        }
        let (amount, unit) = match is_number {
            true => (amount.parse().map_err(|_| RateError::Form)?, QuotaUnit::Requests),
            false => {
                let size: bytesize::ByteSize = amount.parse().map_err(|_| RateError::Form)?;
                (size.as_u64(), QuotaUnit::Bytes)
            }
        };
        if amount == 0 {
            return Err(RateError::Zero);
        }
        Ok(Self { text: words.join(" "), amount, unit, period })
    }
}

impl fmt::Display for RateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed() {
        for (text, amount, unit, seconds) in [
            ("60/min per caller", 60, QuotaUnit::Requests, 60),
            ("1/s per caller", 1, QuotaUnit::Requests, 1),
            ("5/h per caller", 5, QuotaUnit::Requests, 3600),
            ("50MiB/day per caller", 50 << 20, QuotaUnit::Bytes, 86_400),
            ("1kB/s  per caller", 1000, QuotaUnit::Bytes, 1),
            ("7B/h per caller", 7, QuotaUnit::Bytes, 3600),
        ] {
            let rate: RateRule = text.parse().unwrap();
            assert_eq!((rate.amount, rate.unit, rate.period), (amount, unit, Duration::from_secs(seconds)), "{text}");
        }
        for bad in [
            "",
            "60",
            "60/min",
            "60/min per mount",
            "/min per caller",
            "60/week per caller",
            "60 / min per caller",
            "-1/min per caller",
            "+1/min per caller",
            "1.5/min per caller/",
            "many/min per caller",
            "60/min per caller now",
            "99999999999999999999/s per caller",
            "5XB/s per caller",
        ] {
            assert_eq!(bad.parse::<RateRule>(), Err(RateError::Form), "{bad:?}");
        }
        assert_eq!("0/min per caller".parse::<RateRule>(), Err(RateError::Zero));
        assert_eq!("0MiB/min per caller".parse::<RateRule>(), Err(RateError::Zero));
    }
}
