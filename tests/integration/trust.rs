//! Tests of trust: the grants of a mount belong to the digest of one component.

pub(crate) mod digests;
