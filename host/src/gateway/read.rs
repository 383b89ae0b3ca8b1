//! Reads: by a call, together with other requests for the same reference, or from the cache of fresh readings.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;

use super::consent::{AskedRequest, ConsentInput, ConsentQuestion};
use super::pipeline::{ConsentContext, Gateway, MountCall};
use super::quota;
use super::read_cache;
use super::record;
use super::response_cost::ResponseCost;
use super::route::{Routed, Unrouted};
use super::shared_answers::{SharedAnswer, note_answer};
use crate::catalog::Mount;
use crate::config::Ask;
use crate::interfaces::{Request, parts, resources};
use crate::model::{Fault, ReadError, Reading, reference, text};
use crate::policy::{Access, Action, Caller, Principal};

/// The outcome of a read.
pub enum ReadOutcome {
    /// The contents, their mount, and the cost record for further work on them.
    Contents(Reading, Arc<Mount>, ResponseCost),
    /// A question for the person who reads. The same read with the answer continues.
    ConsentRequired(ConsentQuestion),
    /// The read failed for lack of a grant that a person could allow, and the client cannot ask a person.
    ConsentUnavailable(Fault),
}

impl Gateway {
    /// Reads `uri` for a client that cannot ask a person.
    ///
    /// # Errors
    /// The fault names the mount if one was found.
    pub async fn read(&self, caller: &Caller, uri: &str) -> Result<(Reading, Arc<Mount>), Fault> {
        match self.read_with_consent(caller, uri, ConsentInput::default(), ready(())).await? {
            ReadOutcome::Contents(reading, mount, _) => Ok((reading, mount)),
            ReadOutcome::ConsentUnavailable(fault) => Err(fault),
            ReadOutcome::ConsentRequired(question) => {
                let error = ReadError::Internal("a consent question for a client that cannot ask a person".to_owned());
                Err(Fault { error, mount: Some(question.mount), uri: question.request.uri().map(str::to_owned) })
            }
        }
    }

    /// Reads `uri`. `input` says whether a person can be asked, and carries an earlier answer.
    ///
    /// Waits for `room` for the answer after the call has its turn. A caller who makes many requests and takes no
    /// answers therefore occupies the turns of its mounts, and no memory for answers beyond them.
    ///
    /// # Errors
    /// The same as those of [`Gateway::read`].
    pub async fn read_with_consent(
        &self,
        caller: &Caller,
        uri: &str,
        input: ConsentInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<ReadOutcome, Fault> {
        match self.skill_name(&caller.principal, uri).await {
            Some(name) => self.read_skill_file(caller, uri, name, input, room).await,
            None => match self.view_name(caller, uri).await {
                Some(name) => self.read_view(caller, uri, name, input, room).await,
                None => self.read_resource(caller, uri, input, room).await,
            },
        }
    }

    /// The same for a URI below the base of a mount.
    pub(super) async fn read_resource(
        &self,
        caller: &Caller,
        uri: &str,
        input: ConsentInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<ReadOutcome, Fault> {
        // Requests that are answered without a call are recorded too.
        self.audit.wait_for_room().await;
        let Routed { mount, reference, access } = match self.route(&caller.principal, uri).await {
            Ok(routed) => routed,
            Err(Unrouted { error, mount, refused }) => {
                record::record_unrouted(&self.audit, caller, uri, (mount.as_ref(), refused.as_deref()), &error);
                return Err(Fault { error, mount, uri: Some(text::excerpt(uri, reference::MAX_URI)) });
            }
        };
        let fault = |error| Fault { error, mount: Some(mount.name.clone()), uri: Some(uri.to_owned()) };
        let refuse = |error: ReadError| {
            record::record_refusal(&self.audit, caller, "read", uri, Some(&mount), &error);
            fault(error)
        };
        self.check_not_withheld(&mount.name).map_err(refuse)?;
        let call = MountCall::new(caller, &mount);
        let request = request(&mount, reference).map_err(refuse)?;
        // Before the cache is looked at: a cached answer counts, too.
        let quota = self.count_access(&access).await.map_err(refuse)?;
        let config_version = self.catalog.config_version();
        let asked = AskedRequest::read(uri);
        let mut consent = self.consents.begin(input, caller, &asked, &mount, config_version).await.map_err(refuse)?;
        // The state came back without an answer: ask the same question again.
        if let Some(question) = consent.question {
            return Ok(ReadOutcome::ConsentRequired(question));
        }
        let context = ConsentContext { consent: &mut consent, request: &asked, progress: None };
        let read = match mount.ask {
            Ask::Never => self.read_shared(call, access, &request, room, context).await,
            // A grant that one person allows applies to that person only, so the reading cannot be shared.
            Ask::Once | Ask::Persist => self.read_by_call(call, access, &request, room, context).await,
        };
        match consent.question {
            Some(question) => Ok(ReadOutcome::ConsentRequired(question)),
            None => match read {
                Ok((reading, cost)) => {
                    let reading = self.readable((&caller.principal, uri), &mount, reading).ok_or_else(|| {
                        fault(self.not_found(&caller.principal, &mount, request.reference().unwrap_or_default()))
                    })?;
                    mount.observe_skills(&caller.principal, &reading);
                    quota.charge(quota::bytes(&reading)).await;
                    Ok(ReadOutcome::Contents(reading, mount, cost))
                }
                Err(error) if consent.needs_answer => Ok(ReadOutcome::ConsentUnavailable(fault(error))),
                Err(ReadError::NotFound) => {
                    let reference = request.reference().unwrap_or_default();
                    Err(fault(self.not_found(&caller.principal, &mount, reference)))
                }
                Err(error) => Err(fault(error)),
            },
        }
    }

    /// The contents of a reading that `principal` may read. A provider may answer with several resources below the one that
    /// was asked for. `None` if none remains.
    fn readable(&self, (principal, uri): (&Principal, &str), mount: &Mount, mut reading: Reading) -> Option<Reading> {
        // Policy was asked about this one.
        if !self.has_rules() || reading.contents.iter().all(|one| one.reference == uri) {
            return Some(reading);
        }
        let visible = self.visibility(principal, Action::Read, mount);
        if visible.is_all() {
            return Some(reading);
        }
        let had_some = !reading.contents.is_empty();
        reading.contents.retain(|one| {
            let reference = one.reference.strip_prefix(&mount.base);
            reference.is_some_and(|reference| visible.contains(reference))
        });
        (!had_some || !reading.contents.is_empty()).then_some(reading)
    }

    /// Reads together with other requests for the same reference, or from the cache of fresh readings.
    async fn read_shared(
        &self,
        call: MountCall<'_>,
        access: Access,
        request: &Request,
        room: impl Future<Output = ()>,
        context: ConsentContext<'_>,
    ) -> Result<(Reading, ResponseCost), ReadError> {
        let (caller, mount) = (call.caller(), call.mount());
        let reference = request.reference().unwrap_or_default();
        let mut room = pin!(room);
        let key = self.shared_reads.key(mount, reference, &access);
        if let Some(reading) = self.shared_reads.fresh(&key).await {
            room.await;
            return Ok((reading, record::served_cost(&self.audit, caller, mount, reference, "cache", &Ok(()))));
        }
        // A principal that waits for its own other calls must not lead a read that others join.
        if self.admission.is_at_cap(caller.id()) {
            return self.read_by_call(call, access, request, room, context).await;
        }
        let joined = self.shared_reads.join(&key);
        let ConsentContext { consent, request: asked, .. } = context;
        let (mut is_leader, mut own_result, mut cost) = (false, None, None);
        let (own_consent, own_access) = (&mut *consent, access.clone());
        let read = async || {
            is_leader = true;
            let began = Instant::now();
            let mut lead = None;
            // In boxes of their own: nearly no read needs them.
            if let Some(id) = self.answer_id(mount, reference, &own_access) {
                match Box::pin(self.find_shared_answer(mount, id)).await {
                    SharedAnswer::Found(reading) => {
                        room.as_mut().await;
                        let served = record::served_cost(&self.audit, caller, mount, reference, "replica", &Ok(()));
                        cost = Some(served);
                        return Ok(Some(Arc::new(*reading)));
                    }
                    SharedAnswer::Call(found) => lead = found,
                }
            }
            let context = ConsentContext { consent: own_consent, request: asked, progress: None };
            let read = self.read_by_call(call, own_access, request, room.as_mut(), context).await;
            let read = read.map(|(reading, call_cost)| (read_cache::share(reading), call_cost));
            let shared = read.as_ref().ok().and_then(|(reading, _)| reading.as_ref().ok());
            shared.iter().for_each(|reading| note_answer(mount, began, reading));
            if let Some(lead) = lead {
                Box::pin(self.end_shared_call(lead, shared.map(Arc::as_ref))).await;
            }
            match read {
                // A missing turn concerns only this request, not the others that wait.
                Err(busy @ ReadError::Busy(_)) => {
                    own_result = Some(Err(busy));
                    Ok(None)
                }
                Err(error) => Err(error),
                Ok((reading, call_cost)) => {
                    cost = Some(call_cost);
                    Ok(reading.map_err(|large| own_result = Some(Ok(large))).ok())
                }
            }
        };
        if let Some(in_flight) = joined.read() {
            in_flight.get_or_init(read).await;
        }
        if is_leader {
            self.shared_reads.finish(mount, &joined).await;
        }
        let read = match (joined.into_reading(), own_result) {
            (Ok(None), Some(own_result)) => own_result,
            // The reading cannot be shared: each request makes its own call.
            (Ok(None), None) => {
                return self
                    .read_by_call(
                        call,
                        access,
                        request,
                        room,
                        ConsentContext { consent, request: asked, progress: None },
                    )
                    .await;
            }
            (read, _) => {
                if !is_leader {
                    room.await;
                    let outcome = read.as_ref().map(|_| ());
                    cost = Some(record::served_cost(&self.audit, caller, mount, reference, "another read", &outcome));
                }
                read.map(Option::unwrap_or_default)
            }
        };
        let cost = cost.unwrap_or_else(|| ResponseCost::new(&self.audit, mount, None));
        read.map(|reading| (reading, cost))
    }

    /// Reads by its own call.
    async fn read_by_call(
        &self,
        call: MountCall<'_>,
        access: Access,
        request: &Request,
        room: impl Future<Output = ()>,
        context: ConsentContext<'_>,
    ) -> Result<(Reading, ResponseCost), ReadError> {
        let reply = self.run(call, Ok(access), request, room, context).await;
        let (reading, cost) = match request {
            Request::ReadPart(_) => self.check_reply::<parts::ReadPart>(call.mount(), request, reply),
            _ => self.check_reply::<resources::Read>(call.mount(), request, reply),
        };
        Ok((reading?, cost))
    }
}

/// The call that reads `reference`: of a part, if the mount's provider can read parts.
fn request(mount: &Mount, reference: String) -> Result<Request, ReadError> {
    Ok(match mount.interfaces.parts {
        true => parts::ReadPart::new(&reference)?.into(),
        false => resources::Read { reference }.into(),
    })
}
