//! `belljar list --below URI`: lists what is directly below a URI, all pages.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::host::{HostArgs, with_host};
use super::{list, output, table};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup;

pub(super) fn run(at: &LocationArgs, dev: bool, uri: &str, as_json: bool) -> Result<ExitCode, Failure> {
    with_host(HostArgs { at, dev, output: None, asks: false }, async |host| {
        host.gateway.fully_loaded_snapshot().await;
        let (mut entries, mut notices, mut cursor) = (Vec::new(), Vec::new(), None);
        loop {
            let page = host.gateway.list_below(&startup::caller(), uri, cursor.take()).await?;
            entries.extend(page.entries);
            notices.extend(page.notice.map(|notice| notice.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        if as_json {
            let all: Vec<_> = entries.iter().map(list::resource_json).collect();
            output::print_json(&json!({ "uri": uri, "resources": all, "notices": notices }))?;
        } else {
            let mut text = list::entries(&entries, &[]);
            for notice in notices {
                let _ = writeln!(text, "  {} {notice}", table::styled(table::WARN, "!"));
            }
            table::print(&text)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}
