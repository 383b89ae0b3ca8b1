//! The connection to the store: made, watched and made again. While there is none, nobody waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, PushInfo, PushKind, RedisConnectionInfo, ScriptInvocation};
use redis::{ErrorKind, ProtocolVersion, RedisError, ServerErrorKind, Value};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::bounded_stream::{BoundedStream, ReplyMeter};
use crate::model::text;
use crate::store::dial::StoreDialer;
use crate::store::down::StoreDown;

/// A store that takes longer for an answer counts as down.
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// The time to connect, with the handshake and the login.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// The pause before the first attempt to connect again. Each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Messages that wait to be handled. Beyond them, the connection is made anew, and everything counts as stale.
const MAX_WAITING_MESSAGES: usize = 4096;

/// How belljar logs in.
#[derive(Clone, Default)]
pub struct StoreLogin {
    /// The user. `None`: the default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<zeroize::Zeroizing<String>>,
    /// The number of the database.
    pub database: u16,
}

/// The state of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStatus {
    /// True if the store answers.
    pub is_up: bool,
    /// Why it does not. The text continues "the store ...".
    pub why: Option<String>,
    /// Questions that were asked.
    pub asked: u64,
    /// Questions without an answer.
    pub failed: u64,
}

/// What the connection tells.
pub(super) enum LinkEvent {
    /// There is a new connection. Messages may have been lost before it.
    Connected,
    /// A message of the channel.
    Message(Vec<u8>),
}

/// A connection that works.
struct LiveConnection {
    connection: MultiplexedConnection,
    meter: ReplyMeter,
    /// Cancelled with the first failure.
    broken: CancellationToken,
}

/// See the module.
pub(super) struct StoreLink {
    dialer: Arc<dyn StoreDialer>,
    login: RedisConnectionInfo,
    channel: String,
    live: ArcSwapOption<LiveConnection>,
    status: Mutex<LinkStatus>,
    asked: AtomicU64,
    failed: AtomicU64,
    /// Notified with each change of the status.
    changed: Notify,
}

/// Passes on messages.
struct MessageSender {
    queue: mpsc::Sender<PushInfo>,
    meter: ReplyMeter,
    /// Cancelled when the queue is full. A lost message must not go unnoticed.
    overflow: CancellationToken,
}

impl redis::aio::AsyncPushSender for MessageSender {
    fn send(&self, info: PushInfo) -> Result<(), SendError> {
        self.meter.reset();
        self.queue.try_send(info).map_err(|_| {
            self.overflow.cancel();
            SendError
        })
    }
}

/// Why a question or a connection failed. The text continues "the store ...".
fn why(error: &RedisError) -> String {
    let detail = || text::excerpt(error.detail().unwrap_or_default(), 120);
    match (error.kind(), error.code()) {
        (_, Some("OOM")) => "has no memory left (maxmemory)".to_owned(),
        (_, Some("NOAUTH")) => "wants a password; add  password = \"NAME\"  to [replicas]".to_owned(),
        (_, Some("WRONGPASS")) | (ErrorKind::AuthenticationFailed, _) => {
            "refuses the user or the password of [replicas]".to_owned()
        }
        (_, Some("MISCONF")) => "takes no writes, because it cannot save its data".to_owned(),
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => {
            format!("does not let this user do what belljar needs: \"{}\"", detail())
        }
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => "is read-only: another server is the primary".to_owned(),
        (ErrorKind::Server(ServerErrorKind::BusyLoading), _) => "loads its data".to_owned(),
        (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::CrossSlot), _) => {
            "is a cluster, and belljar needs one server or a proxy in front of the cluster".to_owned()
        }
        (ErrorKind::RESP3NotSupported, _) => "is older than Redis 6".to_owned(),
        (ErrorKind::Server(_) | ErrorKind::Extension, code) => {
            format!(
                "answers with the error \"{}\"",
                text::excerpt(&format!("{} {}", code.unwrap_or_default(), detail()), 160)
            )
        }
        (ErrorKind::Parse | ErrorKind::UnexpectedReturnType, _) => "does not answer as Redis does".to_owned(),
        _ if error.is_timeout() => format!("does not answer within {} ms", ANSWER_TIME.as_millis()),
        _ => "ended the connection".to_owned(),
    }
}

/// A random time from half of `pause` to one and a half: a store that comes back is not asked by all replicas at once.
fn spread(pause: Duration) -> Duration {
    let mut random = [0; 2];
    // Without randomness, it is the pause.
    let part =
        getrandom::fill(&mut random).map_or(0.5, |()| f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX));
    pause.mul_f64(0.5 + part)
}

impl StoreLink {
    /// A link that hears the messages of `channel`.
    pub(super) fn new(dialer: Arc<dyn StoreDialer>, login: StoreLogin, channel: String) -> Self {
        let StoreLogin { user, password, database } = login;
        let mut login = RedisConnectionInfo::default()
            .set_db(database.into())
            .set_protocol(ProtocolVersion::RESP3)
            // The user then needs one command less.
            .set_skip_set_lib_name();
        if let Some(user) = user {
            login = login.set_username(user);
        }
        if let Some(password) = password {
            login = login.set_password(password.as_str());
        }
        Self {
            dialer,
            login,
            channel,
            live: ArcSwapOption::empty(),
            status: Mutex::default(),
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    fn locked_status(&self) -> MutexGuard<'_, LinkStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state now.
    pub(super) fn status(&self) -> LinkStatus {
        let (asked, failed) = (self.asked.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        LinkStatus { asked, failed, ..self.locked_status().clone() }
    }

    /// True if the store answers.
    pub(super) fn is_up(&self) -> bool {
        self.live.load().is_some()
    }

    /// Waits until the store was reached or an attempt failed, but not for longer than the time to connect.
    pub(super) async fn first_attempt(&self) {
        let deadline = Instant::now() + CONNECT_TIME;
        let changed = self.changed.notified();
        if !self.is_up() && self.locked_status().why.is_none() {
            let _ = timeout_at(deadline, changed).await;
        }
    }

    /// Connects, hands what the connection tells to `on_event`, and connects again, for ever.
    pub(super) async fn run(&self, on_event: impl Fn(LinkEvent)) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (queue, mut received) = mpsc::channel(MAX_WAITING_MESSAGES);
            let (meter, overflow) = (ReplyMeter::default(), CancellationToken::new());
            let sender = MessageSender { queue, meter: meter.clone(), overflow: overflow.clone() };
            match self.connect(sender, meter).await {
                Ok((live, driver)) => {
                    pause = FIRST_PAUSE;
                    let broken = live.broken.clone();
                    let mut driver = Box::pin(driver);
                    self.live.store(Some(Arc::new(live)));
                    self.set_up();
                    on_event(LinkEvent::Connected);
                    loop {
                        tokio::select! {
                            () = &mut driver => {
                                self.set_down("ended the connection".to_owned());
                                break;
                            }
                            () = broken.cancelled() => break,
                            () = overflow.cancelled() => {
                                self.set_down("sends more messages than belljar can take".to_owned());
                                break;
                            }
                            Some(PushInfo { kind, data }) = received.recv() => {
                                if let (PushKind::Message, Some(Value::BulkString(bytes))) = (kind, data.into_iter().nth(1)) {
                                    on_event(LinkEvent::Message(bytes));
                                }
                            }
                        }
                    }
                    self.live.store(None);
                }
                Err(why) => self.set_down(why),
            }
            tokio::time::sleep(spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect(
        &self,
        sender: MessageSender,
        meter: ReplyMeter,
    ) -> Result<(LiveConnection, impl Future<Output = ()>), String> {
        let deadline = Instant::now() + CONNECT_TIME;
        let stream = self.dialer.dial(deadline).await.map_err(|failure| failure.to_string())?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_TIME)).set_push_sender(sender);
        let stream = BoundedStream::new(stream, meter.clone());
        let made = timeout_at(deadline, MultiplexedConnection::new_with_config(&self.login, stream, config)).await;
        let late = || format!("does not answer within {}", humantime::format_duration(CONNECT_TIME));
        let (mut connection, driver) = made.map_err(|_| late())?.map_err(|error| why(&error))?;
        let mut driver = Box::pin(driver);
        // A store that answers the login and nothing else is not up.
        let subscribed = async {
            connection.subscribe(&self.channel).await?;
            redis::cmd("PING").query_async::<()>(&mut connection).await
        };
        let subscribed = async {
            tokio::select! {
                subscribed = timeout_at(deadline, subscribed) => {
                    subscribed.map_err(|_| late())?.map_err(|error| why(&error))
                }
                () = &mut driver => Err("ended the connection".to_owned()),
            }
        };
        subscribed.await?;
        Ok((LiveConnection { connection, meter, broken: CancellationToken::new() }, driver))
    }

    fn set_up(&self) {
        let before = std::mem::replace(&mut *self.locked_status(), LinkStatus { is_up: true, ..LinkStatus::default() });
        match before.why {
            Some(_) => tracing::info!("the store of [replicas] is reached again"),
            None => tracing::info!("the store of [replicas] is reached"),
        }
        self.changed.notify_waiters();
    }

    fn set_down(&self, why: String) {
        let mut status = self.locked_status();
        if status.why.as_ref() != Some(&why) {
            tracing::warn!("the store of [replicas] {why}; until it is reached again, this replica works alone");
        }
        *status = LinkStatus { is_up: false, why: Some(why), ..LinkStatus::default() };
        drop(status);
        self.changed.notify_waiters();
    }

    /// Gives up a connection after its first failure: what it would answer next may belong to another question.
    fn fail(&self, live: &LiveConnection, why: String) -> StoreDown {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if !live.broken.is_cancelled() {
            // Before the task of the connection notices.
            self.live.store(None);
            self.set_down(why);
            live.broken.cancel();
        }
        StoreDown
    }

    fn live(&self) -> Result<Arc<LiveConnection>, StoreDown> {
        self.live.load_full().ok_or(StoreDown)
    }

    fn answered<T>(&self, live: &LiveConnection, answer: Result<T, RedisError>) -> Result<T, StoreDown> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        live.meter.reset();
        answer.map_err(|error| self.fail(live, why(&error)))
    }

    /// Asks the store.
    ///
    /// # Errors
    /// If there is no connection, or no answer in time, or an unexpected one.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreDown> {
        let live = self.live()?;
        let answer = command.query_async(&mut live.connection.clone()).await;
        self.answered(&live, answer)
    }

    /// Runs a script in the store.
    ///
    /// # Errors
    /// As [`StoreLink::ask`].
    pub(super) async fn run_script<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, StoreDown> {
        let live = self.live()?;
        let answer = script.invoke_async(&mut live.connection.clone()).await;
        self.answered(&live, answer)
    }
}
