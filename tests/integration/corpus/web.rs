//! `plugins/web` compared with native libraries.
