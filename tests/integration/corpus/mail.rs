//! `plugins/mail` compared with native libraries.
