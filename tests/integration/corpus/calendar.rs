//! `plugins/calendar` compared with native libraries.
