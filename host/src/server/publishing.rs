//! Makes what `belljar publish` and `belljar export` push to a registry: the documents of an artifact, its signature and its list of
//! parts. Speaks to nobody: `belljar-fetch` gets the finished documents, and never a key.

pub(crate) mod artifact;
pub(crate) mod component_metadata;
pub(crate) mod sbom;
pub(crate) mod signing_key;
pub(crate) mod upload_directory;
