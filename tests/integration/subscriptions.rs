//! Tests of subscriptions: a client gets one notification of each change.

pub(crate) mod notifications;
