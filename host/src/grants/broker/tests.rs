//! What the tests of the broker share: a front with a mount's grants, and a call in a made-up worker process. Tests of the
//! streams themselves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::*;
use crate::grants::ambient::Ambient;
use crate::grants::front::{Front, Opening, RecordEntry};
use crate::grants::http::Http;
use crate::grants::list::{GrantConfig, GrantKind};
use crate::grants::network::{Network, NetworkSettings};
use crate::grants::secrets::{Secret, Secrets};
use crate::grants::{DedicatedThread, Grant as _};
use crate::model::{Decision, Limits};

/// The value of the secret `token`.
pub(in crate::grants) const TOKEN: &str = "SecRet-Tok3n-abcdefghij";

/// The settings of the front.
pub(in crate::grants) fn ambient() -> Ambient {
    let secret = Secret::new("token", Zeroizing::new(TOKEN.to_owned())).unwrap();
    let network = Network::read(&NetworkSettings::default()).unwrap();
    Ambient {
        secrets: Secrets::from_secrets([Arc::new(secret)]),
        network: Some(Arc::new(network)),
        ..Ambient::default()
    }
}

/// The front of one call, and the results of the streams that ended.
pub(in crate::grants) struct TestFront {
    broker: Broker,
    record: CallRecord,
    pub(in crate::grants) ended: Arc<Mutex<Vec<Result<(), FrameError>>>>,
}

impl TestFront {
    /// Serves a stream in a task.
    pub(in crate::grants) fn connect(&self, request: FrontRequest) -> UnixStream {
        let (worker, own) = UnixStream::pair().unwrap();
        let (serving, ended) = (self.broker.serve(request, own), Arc::clone(&self.ended));
        tokio::spawn(async move {
            let end = serving.await;
            ended.lock().unwrap().push(end);
        });
        worker
    }

    /// Waits until a stream has ended.
    pub(in crate::grants) async fn next_end(&self) -> Result<(), FrameError> {
        loop {
            if let Some(end) = self.ended.lock().unwrap().pop() {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Front for TestFront {
    fn record(&self, entry: RecordEntry) {
        match entry {
            RecordEntry::Decision(kind, target, verdict, cure) => {
                self.record.add_decision(GrantKind::find(&kind).unwrap().name, &target, verdict, || cure);
            }
            RecordEntry::Consent(consent) => self.record.request_consent(consent),
            RecordEntry::Progress(..) | RecordEntry::Printed(..) => {}
        }
    }

    fn open(&self, request: FrontRequest) -> Opening {
        let stream = self.connect(request);
        Box::pin(std::future::ready(Ok(stream)))
    }
}

/// A call with these grants: in a worker process with its front, and in a process of its own to compare.
pub(in crate::grants) struct TestCall {
    pub(in crate::grants) front: Arc<TestFront>,
    /// The record of the worker.
    pub(in crate::grants) worker: CallRecord,
    /// The record of the call in a process of its own.
    pub(in crate::grants) local: CallRecord,
    pub(in crate::grants) handover: crate::grants::NetworkHandover,
    pub(in crate::grants) limits: Limits,
    pub(in crate::grants) mount: MountName,
}

impl TestCall {
    pub(in crate::grants) fn new(grants: &[(&str, &Value)], limits: Limits) -> Self {
        let mut config = GrantConfig::default();
        for (kind, value) in grants {
            config.set(kind, (*value).clone()).unwrap().unwrap();
        }
        let mount = MountName::new("m").unwrap();
        let grants = config.configure(&ambient()).unwrap();
        let record = CallRecord::default();
        let broker = grants.broker(&scope(&mount, &limits, &record, &DedicatedThread::default()));
        let front = Arc::new(TestFront { broker, record, ended: Arc::default() });
        let worker = CallRecord::of_worker(Arc::clone(&front) as Arc<dyn Front>);
        let handover = grants.network_handover();
        let bytes = postcard::to_stdvec(&handover).unwrap();
        assert_eq!(postcard::from_bytes::<crate::grants::NetworkHandover>(&bytes).unwrap(), handover);
        Self { front, worker, local: CallRecord::default(), handover, limits, mount }
    }

    /// The decisions in the front, and those of the call in a process of its own.
    pub(in crate::grants) fn decisions(&self) -> [Vec<Decision>; 2] {
        let [front, own] = [&self.front.record, &self.local].map(CallRecord::take_decisions);
        if !own.decisions().is_empty() {
            assert_eq!((front.requested(), front.has_acted), (own.requested(), own.has_acted));
        }
        [front, own].map(|log| log.decisions().to_vec())
    }

    /// The limit that was reached: in the front, in the worker, and by the call in a process of its own.
    pub(in crate::grants) fn reached_limits(&self) -> [Option<crate::model::Limit>; 3] {
        [&self.front.record, &self.worker, &self.local].map(|record| record.traffic().reached_limit())
    }
}

/// A call of the mount.
pub(in crate::grants) fn scope<'a>(
    mount: &'a MountName,
    limits: &'a Limits,
    record: &'a CallRecord,
    thread: &'a DedicatedThread,
) -> CallScope<'a> {
    let deadline = Instant::now() + Duration::from_secs(10);
    CallScope { mount, limits, deadline, consent: &[], record, thread, memory: &[] }
}

/// Starts a server that gives each connection to `handle`. Returns its port.
pub(in crate::grants) async fn serve<F: Future<Output = ()> + Send + 'static>(
    handle: impl Fn(TcpStream) -> F + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    port
}

#[tokio::test]
async fn a_malformed_stream_ends_with_an_error() {
    let call = TestCall::new(&[], Limits::default());
    for (bytes, is_violation) in [
        (&[0xff, 0xff, 0xff, 0xff, 0][..], true),
        (&[2, 0, 0, 0, 0xff, 0xff], true),
        (&[9, 0, 0, 0, 1], false),
        (&[], false),
    ] {
        let mut stream = call.front.connect(FrontRequest::Exchange);
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let end = call.front.next_end().await.unwrap_err();
        assert_eq!(end.is_violation(), is_violation, "{bytes:?}: {end}");
        assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0, "{bytes:?}");
    }
}

#[tokio::test]
async fn variables_and_the_handover_have_what_a_worker_needs_and_no_secret() {
    let config = json!([{ "at": "db.internal:5432/app", "user": "u", "password": "${secret:token}" }]);
    let mut grants = GrantConfig::default();
    grants.set("postgres", config).unwrap().unwrap();
    grants
        .set("http", json!([{ "origin": "https://a.test", "headers": { "x-key": "${secret:token}" } }]))
        .unwrap()
        .unwrap();
    grants.set("system", json!(["load"])).unwrap().unwrap();
    let grants = grants.configure(&ambient()).unwrap();
    let variables: Vec<_> = grants.variables().iter().map(|(name, value)| format!("{name}={}", **value)).collect();
    assert_eq!(variables, ["PGHOST=db.internal", "PGPORT=5432", "PGDATABASE=app", "PGUSER=u"]);
    let handover = grants.network_handover();
    assert_eq!(handover.hidden_headers, ["authorization", "cookie", "x-key"]);
    assert_eq!((handover.endpoints[0].kind.as_str(), handover.endpoints[0].port), ("postgres", 5432));
    assert!(handover.endpoints[0].host_memory > 0);
    assert_eq!(handover.directories[0].names, ["load.json"]);
    assert!(!format!("{handover:?}").contains(TOKEN));
    assert_eq!(Http::NAME, "http");
}
