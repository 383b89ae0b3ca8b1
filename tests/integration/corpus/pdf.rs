//! `plugins/pdf` compared with native libraries.
