//! The audit record: its place and its contents.

mod audit_command;
mod audit_file;
mod chain;
mod requests;
mod when_full;
