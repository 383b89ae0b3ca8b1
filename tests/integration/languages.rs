//! The templates of `belljar new`: the providers of all languages behave alike.

mod templates;
