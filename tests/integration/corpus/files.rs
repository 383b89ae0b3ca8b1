//! `plugins/files` compared with native libraries.
