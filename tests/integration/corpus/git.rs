//! `plugins/git` compared with native libraries.
