//! `plugins/sqlite` compared with native libraries.
