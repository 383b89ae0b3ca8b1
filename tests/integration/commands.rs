//! The command line: each verb, its output, its exit code, and the commands that it prints as a cure.

mod add;
mod check_conformance;
mod closed_pipes;
mod connect;
mod dev;
mod doctor;
mod grant;
mod inspect;
mod new;
mod serve_files;
mod suggested_commands;
mod tools;
