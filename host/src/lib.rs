#![doc = include_str!("architecture.md")]

pub mod admission;
pub mod audit;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod gateway;
pub mod grants;
pub mod mcp;
pub mod model;
pub mod sandbox;
pub mod transport;
