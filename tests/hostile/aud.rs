//! The record: what a provider or a client does so that less of a call is on it than happened.

use std::sync::Arc;
use std::time::Duration;

use belljar_upstream::{Upstream, answer, request, until_closed};
use serde_json::{Value, json};

use crate::egress::{fetch, grant, said};
use crate::row::{Row, Stops, Way, imp};
use crate::scene::Scene;
use crate::tools::{path, within};

pub(crate) fn rows() -> Vec<Row> {
    vec![withdrawn(), flooded()]
}

/// The records of reads of this reference.
fn records(scene: &Scene<'_>, reference: &str) -> Vec<Value> {
    let all = scene.site().audit().into_iter();
    all.filter(|record| record["operation"] == "read" && record["reference"] == reference).collect()
}

/// Waits for the one record of a read.
fn record(scene: &Scene<'_>, reference: &str) -> Value {
    let came = within(Duration::from_secs(20), || !records(scene, reference).is_empty());
    assert!(came, "no record of {reference}");
    records(scene, reference).remove(0)
}

fn withdrawn() -> Row {
    let upstream = Arc::new(Upstream::raw(|stream| {
        let _ = request(stream);
        until_closed(stream, Duration::from_secs(60));
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp("AUD-01", "a client withdraws its read when the upstream has the request, so that nothing is on record")
        .config(&grant(&origin, ""))
        .way(Way::Stdio)
        .act(move |scene| {
            upstream.forget();
            let reference = fetch(&format!("GET {origin}/"));
            let id = scene.begin(&reference);
            assert!(within(Duration::from_secs(20), || upstream.connections() > 0), "it is not sent");
            scene.line().cancel(id);
            let record = record(scene, &reference);
            assert_eq!(record["outcome"], "cancelled", "{record}");
            assert_eq!(record["grants"], json!([{ "grant": "http", "what": format!("GET {origin}"), "times": 1 }]));
            let used = |name: &str| record["usage"][name].as_u64().unwrap_or_default();
            assert!(used("fuel") > 0 && used("memory") > 0 && used("micros") > 0, "{record}");
            format!("on record with its grant and {} units of fuel", used("fuel"))
        })
        .stopped(Stops::Structure("what a call does is shared with its record while it is done"))
}

fn flooded() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| answer("200 OK", "", "fine")));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp("AUD-01", "a provider is refused many different things first, so that what it is granted then is only a number")
        .config(&grant(&origin, ""))
        .limits("requests = 200")
        .act(move |scene| {
            let _alive = &upstream;
            let refused: Vec<String> = (0..40).map(|n| format!("http://n{n}.x/")).collect();
            let reference = format!("flood/{}", path(format!("{} {origin}/", refused.join(" "))));
            let told = said(&scene.read(&reference));
            assert!(told.ends_with("200"), "{told}");
            let record = record(scene, &reference);
            let granted = json!([{ "grant": "http", "what": format!("GET {origin}"), "times": 1 }]);
            assert_eq!(record["grants"], granted, "{record}");
            let denials = record["denials"].as_array().map_or(0, Vec::len);
            assert_eq!(denials as u64 + record["decisions_dropped"].as_u64().unwrap_or_default(), 40, "{record}");
            format!("{denials} refusals in words, the rest as a number, and the grant")
        })
        .stopped(Stops::Structure("what was allowed is never left out of a record"))
}
