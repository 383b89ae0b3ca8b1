//! `[trace]`: where the spans of requests go, and how many requests are traced.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::KIND;
use crate::grants::http::service_url::{ServiceUrl, ServiceUrlError};
use crate::grants::network::networks::networks;

/// The path at which a receiver of OTLP takes spans (OTLP 1.x, "OTLP/HTTP Request").
const PATH: &str = "/v1/traces";

/// The share of requests that are traced by default: one in ten.
const SAMPLE: Share = Share(100);

/// `[trace]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct TraceTable {
    /// The URL of a receiver of OTLP over HTTP, without `/v1/traces`. An address of another machine needs "https://".
    #[schemars(with = "String", example = "http://127.0.0.1:4318")]
    otlp: OtlpUrl,
    /// How many requests are traced, if the client does not say that it traces them: a percentage.
    #[schemars(example = "1%", extend("default" = "10%"))]
    sample: Option<Share>,
    /// Private addresses and networks to which belljar may connect for this. Public ones need no entry.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    networks: Vec<IpNet>,
}

/// The checked `[trace]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceConfig {
    /// The URL that spans are sent to.
    pub url: ServiceUrl,
    /// How many of a thousand requests are traced.
    pub per_mille: u64,
    /// Private addresses that may be connected to.
    pub networks: Vec<IpNet>,
}

impl TraceTable {
    /// The settings in force.
    pub(super) fn checked(self) -> TraceConfig {
        let Self { otlp: OtlpUrl(url), sample, networks } = self;
        TraceConfig { url, per_mille: sample.unwrap_or(SAMPLE).0, networks }
    }
}

/// A URL, with the path of the spans added.
struct OtlpUrl(ServiceUrl);

impl<'de> Deserialize<'de> for OtlpUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let url: ServiceUrl = text.parse().map_err(|error: ServiceUrlError| D::Error::custom(error))?;
        let base = url.path.trim_end_matches('/');
        let path = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        Ok(Self(ServiceUrl { path, ..url }))
    }
}

/// A part of a whole, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share(u64);

/// The text is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a percentage from \"0%\" to \"100%\", such as \"10%\" or \"0.5%\"")]
struct ShareError;

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let number = text.strip_suffix('%').ok_or(ShareError)?.trim();
        let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole, 3) || !digits(tenths, 1) {
            return Err(ShareError);
        }
        let parts: Option<u64> = whole.parse::<u64>().ok().zip(tenths.parse::<u64>().ok()).map(|(w, t)| w * 10 + t);
        parts.filter(|parts| *parts <= 1000).map(Self).ok_or(ShareError)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}%", self.0 / 10),
            tenths => write!(f, "{}.{tenths}%", self.0 / 10),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9])? *%$", KIND: "percentage" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        for (text, parts) in [("0%", 0), ("10%", 100), ("0.5%", 5), ("100%", 1000), ("100.0%", 1000)] {
            assert_eq!(text.parse(), Ok(Share(parts)), "{text}");
        }
        assert_eq!((Share(5).to_string(), Share(100).to_string()), ("0.5%".to_owned(), "10%".to_owned()));
        for bad in ["", "%", "10", "101%", "-1%", "0.55%", "1e1%", ".5%", "+1%"] {
            assert_eq!(bad.parse::<Share>(), Err(ShareError), "{bad}");
        }
    }
}
