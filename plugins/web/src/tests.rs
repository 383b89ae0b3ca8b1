//! Tests of the provider over recorded answers. This file has the recording; each module tests one area.

mod asking;
mod calls;
mod feeds;
mod listing;
mod pages;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use belljar_guest::{Body, Contents};

use super::*;
use crate::http::{Failure, Headers, Response};

/// Recorded answers by URL, and the requests that were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    answers: BTreeMap<String, Result<Response, Failure>>,
    head: BTreeMap<String, Response>,
    pub(crate) asked: Rc<RefCell<Vec<Request>>>,
    pub(crate) batches: Rc<RefCell<Vec<usize>>>,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Recording::default()
    }

    /// Adds a successful answer of this type.
    pub(crate) fn with(self, url: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.answer(url, 200, &[("content-type", content_type)], body)
    }

    pub(crate) fn answer(mut self, url: &str, status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        self.answers.insert(url.to_owned(), Ok(response(status, headers, body)));
        self
    }

    pub(crate) fn fails(mut self, url: &str, failure: Failure) -> Self {
        self.answers.insert(url.to_owned(), Err(failure));
        self
    }

    /// Adds an answer to HEAD; the default is 405.
    pub(crate) fn head(mut self, url: &str, status: u16, headers: &[(&str, &str)]) -> Self {
        self.head.insert(url.to_owned(), response(status, headers, ""));
        self
    }

    /// A provider over this recording.
    pub(crate) fn web(&self, settings: &str) -> Web {
        Web { entries: config::parse(Some(settings)).unwrap(), upstream: Box::new(self.clone()) }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        let method = |method| if method == Method::Head { "HEAD " } else { "" };
        self.asked.borrow().iter().map(|request| format!("{}{}", method(request.method), request.url)).collect()
    }
}

impl Upstream for Recording {
    fn exchange(&self, requests: &[Request], _within: Option<Duration>) -> Vec<Result<Response, Failure>> {
        self.asked.borrow_mut().extend(requests.iter().cloned());
        self.batches.borrow_mut().push(requests.len());
        let one = |request: &Request| match request.method {
            Method::Head => Ok(self.head.get(request.url.as_str()).cloned().unwrap_or_else(|| response(405, &[], ""))),
            Method::Get => self.answers.get(request.url.as_str()).cloned().unwrap_or(Err(Failure::Denied)),
        };
        requests.iter().map(one).collect()
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    Response { status, headers: Headers::new(headers), body: body.into() }
}

/// Reads a reference that has exactly one content.
pub(crate) fn one(web: &Web, reference: &str) -> Contents {
    let mut reading = web.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
    assert_eq!(reading.contents.len(), 1);
    let contents = reading.contents.remove(0);
    assert_eq!(contents.reference, reference);
    contents
}

/// Reads a reference and returns text and type.
pub(crate) fn text(web: &Web, reference: &str) -> (String, String) {
    let contents = one(web, reference);
    match contents.body {
        Body::Text(text) => (text, contents.mime_type.unwrap()),
        Body::Blob(_) => panic!("{reference}: a blob"),
    }
}

pub(crate) fn markdown(web: &Web, reference: &str) -> String {
    let (text, media) = text(web, reference);
    assert_eq!(media, "text/markdown");
    text
}

/// Fails with all missing parts of a text at once.
pub(crate) fn has(text: &str, parts: &[&str]) {
    let missing: Vec<&&str> = parts.iter().filter(|part| !text.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in:\n{text}");
}

pub(crate) fn has_not(text: &str, parts: &[&str]) {
    let found: Vec<&&str> = parts.iter().filter(|part| text.contains(**part)).collect();
    assert!(found.is_empty(), "{found:?} are in:\n{text}");
}
