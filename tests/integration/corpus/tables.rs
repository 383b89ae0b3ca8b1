//! `plugins/tables` compared with native libraries.
