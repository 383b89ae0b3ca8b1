//! Reads the key `networks` of a table: addresses and networks that are not public.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

use crate::model::text;

/// Reads a list of networks. An address stands for a network of one address.
///
/// # Errors
/// The first text that is neither a network nor an address.
pub fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: String| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or(address).map_err(|_| {
            serde::de::Error::custom(format!(
                "networks: \"{}\" is neither an address nor a network such as \"10.0.0.0/8\"",
                text::excerpt(&text, 80)
            ))
        })
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(read).collect()
}
