//! Lists of resources and of templates, their pages and cursors, and completion.

mod completion;
mod cursors;
mod listing;
