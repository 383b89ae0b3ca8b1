//! `plugins/logs` compared with native libraries.
