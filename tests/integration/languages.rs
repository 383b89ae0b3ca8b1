//! The templates of `belljar new`: the providers of all languages behave alike.

mod http;
mod many_files;
mod parts;
mod templates;
