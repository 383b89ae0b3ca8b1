//! The audit record: its place and its contents.

mod audit_file;
