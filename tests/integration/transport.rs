//! Tests of the two transports, stdio and HTTP: greetings, malformed messages, sessions.

mod greeting;
mod malformed_messages;
