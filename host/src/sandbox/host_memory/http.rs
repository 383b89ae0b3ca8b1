//! `wasi:http/types` and `wasi:http/outgoing-handler`.
//!
//! Fields are charged what was put into them, up to what a full map takes; a request its fields, its texts and the channel of
//! its body; what is written into a body is charged by the stream. Requests and answers in the making are counted: at most
//! as many as the call may send.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, Method, Scheme, Trailers};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingRequest, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
    HostResponseOutparam,
};
use wasmtime_wasi_http::p2::{HeaderError, HeaderResult, HttpError, HttpResult};
use wasmtime_wasi_http::{FieldMap, RequestOptions, WasiHttpCtxView};

use super::{FIELDS, HostMemory, Http, Refused, State};
use crate::model::Guard;

/// Bytes that a field takes beside its name and value: its place in the map, which doubles as it grows.
const FIELD: u64 = 256;

/// Bytes that a full map of fields takes at most: fields that are empty take most beside themselves.
const FULL: u64 = 6 * FIELDS as u64;

/// Bytes of the channel between a body and who sends it.
const BODY: u64 = 8 << 10;

/// Bytes that a request takes while it is on its way and while its answer is read: its task, the connection's buffers, what
/// an upstream sends ahead.
const EXCHANGE: u64 = 256 << 10;

/// Bytes of a method, and of a scheme.
const WORD: usize = 64;

/// Bytes of an authority: a host name has at most 253.
const AUTHORITY: usize = 1 << 10;

/// Bytes of a path with its query.
const PATH: usize = 32 << 10;

/// A guest's requests and what they keep.
pub(in super::super) struct HttpHost<'a> {
    pub(in super::super) http: WasiHttpCtxView<'a>,
    pub(in super::super) memory: &'a mut HostMemory,
}

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    outgoing_handler::add_to_linker::<_, Http>(linker, State::http_host)?;
    types::add_to_linker::<_, Http>(linker, &types::LinkOptions::default(), State::http_host)
}

impl From<Refused> for HttpError {
    fn from(refused: Refused) -> Self {
        Self::trap(refused)
    }
}

impl From<Refused> for HeaderError {
    fn from(refused: Refused) -> Self {
        Self::trap(refused)
    }
}

/// Functions that keep nothing: the library's own.
macro_rules! same {
    ($($trait:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)+) => {
        $(fn $name(&mut self, $($arg: $type),*) -> $result {
            types::$trait::$name(&mut self.http, $($arg),*)
        })+
    };
}

/// Functions that make a handle, with nothing behind it but itself.
macro_rules! made {
    ($($trait:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $made:ty;)+) => {
        $(fn $name(&mut self, $($arg: $type),*) -> wasmtime::Result<Resource<$made>> {
            let handle = types::$trait::$name(&mut self.http, $($arg),*)?;
            Ok(self.memory.made(handle)?)
        })+
    };
}

/// The end of a handle, and of what it keeps.
macro_rules! dropped {
    ($trait:ident, $type:ty) => {
        fn drop(&mut self, handle: Resource<$type>) -> wasmtime::Result<()> {
            self.memory.dropped(handle.rep());
            types::$trait::drop(&mut self.http, handle)
        }
    };
}

/// Bytes of a field.
fn field(name: &str, value: &[u8]) -> u64 {
    FIELD + name.len() as u64 + value.len() as u64
}

/// Bytes of a map of fields that was not made by the guest.
fn fields(map: &FieldMap) -> u64 {
    map.iter().map(|(name, value)| field(name.as_str(), value.as_bytes())).sum::<u64>().min(FULL)
}

/// Whether a text that a guest gives is longer than any that is of use.
fn is_long(text: &str, most: usize) -> bool {
    text.len() > most && Guard::HostMemory.is_on()
}

impl HttpHost<'_> {
    /// Bytes of the texts that were set in a request.
    fn texts(&self, request: &Resource<HostOutgoingRequest>) -> wasmtime::Result<u64> {
        let request = self.http.table.get(request)?;
        let optional = |text: Option<&String>| text.map_or(0, String::len);
        let method = if let Method::Other(method) = &request.method { method.len() } else { 0 };
        let scheme = if let Some(Scheme::Other(scheme)) = &request.scheme { scheme.len() } else { 0 };
        Ok((method + scheme + optional(request.authority.as_ref()) + optional(request.path_with_query.as_ref())) as u64)
    }

    /// Sets a text of a request, which is charged in place of the one before.
    fn set_text(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        is_long: bool,
        set: impl FnOnce(&mut WasiHttpCtxView<'_>, Resource<HostOutgoingRequest>) -> wasmtime::Result<Result<(), ()>>,
    ) -> wasmtime::Result<Result<(), ()>> {
        if is_long {
            return Ok(Err(()));
        }
        let handle = request.rep();
        let before = self.texts(&request)?;
        let set = set(&mut self.http, request)?;
        let after = self.texts(&Resource::new_borrow(handle))?;
        let all = self.memory.of(handle).saturating_sub(before).saturating_add(after);
        self.memory.set(handle, all)?;
        Ok(set)
    }

    /// The body of a request or answer, with its channel.
    fn body_of(
        &mut self,
        of: u32,
        body: Result<Resource<HostOutgoingBody>, ()>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let Ok(body) = body else { return Ok(Err(())) };
        self.memory.add(of, BODY, u64::MAX)?;
        Ok(Ok(self.memory.made(body)?))
    }

    /// A handle that keeps as many fields as another one.
    fn copied(&mut self, from: u32, copy: Resource<FieldMap>, most: u64) -> wasmtime::Result<Resource<FieldMap>> {
        let bytes = self.memory.of(from).min(most);
        self.memory.set(copy.rep(), bytes)?;
        Ok(self.memory.made(copy)?)
    }
}

impl types::Host for HttpHost<'_> {
    same! {
        Host: fn convert_error_code(error: HttpError) -> wasmtime::Result<ErrorCode>;
        Host: fn convert_header_error(error: HeaderError) -> wasmtime::Result<types::HeaderError>;
        Host: fn http_error_code(error: Resource<types::IoError>) -> wasmtime::Result<Option<ErrorCode>>;
    }
}

impl types::HostFields for HttpHost<'_> {
    made! { HostFields: fn new() -> FieldMap; }
    dropped!(HostFields, FieldMap);
    same! {
        HostFields: fn get(fields: Resource<FieldMap>, name: String) -> wasmtime::Result<Vec<Vec<u8>>>;
        HostFields: fn has(fields: Resource<FieldMap>, name: String) -> wasmtime::Result<bool>;
        HostFields: fn delete(fields: Resource<FieldMap>, name: String) -> HeaderResult<()>;
        HostFields: fn entries(fields: Resource<FieldMap>) -> wasmtime::Result<Vec<(String, Vec<u8>)>>;
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Resource<FieldMap>> {
        let bytes = entries.iter().map(|(name, value)| field(name, value)).sum::<u64>().min(FULL);
        let fields = types::HostFields::from_list(&mut self.http, entries)?;
        self.memory.set(fields.rep(), bytes)?;
        Ok(self.memory.made(fields)?)
    }

    fn set(&mut self, fields: Resource<FieldMap>, name: String, values: Vec<Vec<u8>>) -> HeaderResult<()> {
        let (handle, bytes) = (fields.rep(), values.iter().map(|value| field(&name, value)).sum());
        types::HostFields::set(&mut self.http, fields, name, values)?;
        Ok(self.memory.add(handle, bytes, FULL)?)
    }

    fn append(&mut self, fields: Resource<FieldMap>, name: String, value: Vec<u8>) -> HeaderResult<()> {
        let (handle, bytes) = (fields.rep(), field(&name, &value));
        types::HostFields::append(&mut self.http, fields, name, value)?;
        Ok(self.memory.add(handle, bytes, FULL)?)
    }

    fn clone(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = fields.rep();
        let copy = types::HostFields::clone(&mut self.http, fields)?;
        self.copied(from, copy, FULL)
    }
}

impl types::HostIncomingRequest for HttpHost<'_> {
    made! { HostIncomingRequest: fn headers(request: Resource<HostIncomingRequest>) -> FieldMap; }
    dropped!(HostIncomingRequest, HostIncomingRequest);
    same! {
        HostIncomingRequest: fn method(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Method>;
        HostIncomingRequest: fn path_with_query(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<String>>;
        HostIncomingRequest: fn scheme(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<Scheme>>;
        HostIncomingRequest: fn authority(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<String>>;
        HostIncomingRequest: fn consume(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>>;
    }
}

impl types::HostOutgoingRequest for HttpHost<'_> {
    fn new(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<HostOutgoingRequest>> {
        self.memory.begins_request()?;
        let bytes = self.memory.moved(fields.rep());
        let request = types::HostOutgoingRequest::new(&mut self.http, fields)?;
        self.memory.put(request.rep(), bytes);
        Ok(self.memory.made(request)?)
    }

    fn body(
        &mut self,
        request: Resource<HostOutgoingRequest>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let of = request.rep();
        let body = types::HostOutgoingRequest::body(&mut self.http, request)?;
        self.body_of(of, body)
    }

    fn drop(&mut self, request: Resource<HostOutgoingRequest>) -> wasmtime::Result<()> {
        self.memory.ends_request();
        self.memory.dropped(request.rep());
        types::HostOutgoingRequest::drop(&mut self.http, request)
    }

    fn set_method(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        method: Method,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = matches!(&method, Method::Other(method) if is_long(method, WORD));
        self.set_text(request, is_long, |http, request| types::HostOutgoingRequest::set_method(http, request, method))
    }

    fn set_path_with_query(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        path: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = path.as_ref().is_some_and(|path| is_long(path, PATH));
        self.set_text(request, is_long, |http, request| {
            types::HostOutgoingRequest::set_path_with_query(http, request, path)
        })
    }

    fn set_scheme(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        scheme: Option<Scheme>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = matches!(&scheme, Some(Scheme::Other(scheme)) if is_long(scheme, WORD));
        self.set_text(request, is_long, |http, request| types::HostOutgoingRequest::set_scheme(http, request, scheme))
    }

    fn set_authority(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        authority: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = authority.as_ref().is_some_and(|authority| is_long(authority, AUTHORITY));
        self.set_text(request, is_long, |http, request| {
            types::HostOutgoingRequest::set_authority(http, request, authority)
        })
    }

    same! {
        HostOutgoingRequest: fn method(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Method>;
        HostOutgoingRequest: fn path_with_query(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<String>>;
        HostOutgoingRequest: fn scheme(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<Scheme>>;
        HostOutgoingRequest: fn authority(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<String>>;
    }

    fn headers(&mut self, request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = request.rep();
        let copy = types::HostOutgoingRequest::headers(&mut self.http, request)?;
        self.copied(from, copy, FULL)
    }
}

impl types::HostOutgoingResponse for HttpHost<'_> {
    fn new(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<HostOutgoingResponse>> {
        self.memory.begins_request()?;
        let bytes = self.memory.moved(fields.rep());
        let response = types::HostOutgoingResponse::new(&mut self.http, fields)?;
        self.memory.put(response.rep(), bytes);
        Ok(self.memory.made(response)?)
    }

    fn body(
        &mut self,
        response: Resource<HostOutgoingResponse>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let of = response.rep();
        let body = types::HostOutgoingResponse::body(&mut self.http, response)?;
        self.body_of(of, body)
    }

    fn drop(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<()> {
        self.memory.ends_request();
        self.memory.dropped(response.rep());
        types::HostOutgoingResponse::drop(&mut self.http, response)
    }

    fn headers(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = response.rep();
        let copy = types::HostOutgoingResponse::headers(&mut self.http, response)?;
        self.copied(from, copy, FULL)
    }

    same! {
        HostOutgoingResponse: fn status_code(response: Resource<HostOutgoingResponse>) -> wasmtime::Result<types::StatusCode>;
        HostOutgoingResponse: fn set_status_code(response: Resource<HostOutgoingResponse>, status: types::StatusCode) -> wasmtime::Result<Result<(), ()>>;
    }
}

impl types::HostOutgoingBody for HttpHost<'_> {
    dropped!(HostOutgoingBody, HostOutgoingBody);

    fn write(&mut self, body: Resource<HostOutgoingBody>) -> wasmtime::Result<Result<Resource<DynOutputStream>, ()>> {
        match types::HostOutgoingBody::write(&mut self.http, body)? {
            Ok(stream) => Ok(Ok(self.memory.made(stream)?)),
            Err(()) => Ok(Err(())),
        }
    }

    fn finish(&mut self, body: Resource<HostOutgoingBody>, trailers: Option<Resource<Trailers>>) -> HttpResult<()> {
        self.memory.dropped(body.rep());
        if let Some(trailers) = &trailers {
            // They wait with the body, whose request is not known here: charged until the call ends.
            self.memory.moved(trailers.rep());
        }
        types::HostOutgoingBody::finish(&mut self.http, body, trailers)
    }
}

impl types::HostResponseOutparam for HttpHost<'_> {
    dropped!(HostResponseOutparam, HostResponseOutparam);
    same! {
        HostResponseOutparam: fn set(to: Resource<HostResponseOutparam>, response: Result<Resource<HostOutgoingResponse>, ErrorCode>) -> wasmtime::Result<()>;
        HostResponseOutparam: fn send_informational(to: Resource<HostResponseOutparam>, status: u16, fields: Resource<FieldMap>) -> HttpResult<()>;
    }
}

impl types::HostFutureIncomingResponse for HttpHost<'_> {
    dropped!(HostFutureIncomingResponse, HostFutureIncomingResponse);
    made! { HostFutureIncomingResponse: fn subscribe(future: Resource<HostFutureIncomingResponse>) -> DynPollable; }

    fn get(
        &mut self,
        future: Resource<HostFutureIncomingResponse>,
    ) -> wasmtime::Result<Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>> {
        let from = future.rep();
        let got = types::HostFutureIncomingResponse::get(&mut self.http, future)?;
        let Some(Ok(Ok(response))) = got else { return Ok(got) };
        self.memory.dropped(from);
        let bytes = EXCHANGE + fields(&self.http.table.get(&response)?.headers);
        self.memory.set(response.rep(), bytes)?;
        Ok(Some(Ok(Ok(self.memory.made(response)?))))
    }
}

impl types::HostIncomingResponse for HttpHost<'_> {
    dropped!(HostIncomingResponse, HostIncomingResponse);
    same! { HostIncomingResponse: fn status(response: Resource<HostIncomingResponse>) -> wasmtime::Result<types::StatusCode>; }

    fn headers(&mut self, response: Resource<HostIncomingResponse>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = response.rep();
        let copy = types::HostIncomingResponse::headers(&mut self.http, response)?;
        let bytes = fields(self.http.table.get(&copy)?);
        self.copied(from, copy, bytes)
    }

    fn consume(
        &mut self,
        response: Resource<HostIncomingResponse>,
    ) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>> {
        let from = response.rep();
        let Ok(body) = types::HostIncomingResponse::consume(&mut self.http, response)? else { return Ok(Err(())) };
        // The exchange goes on for as long as its body is there.
        let all = self.memory.moved(from);
        self.memory.put(from, all.saturating_sub(EXCHANGE));
        self.memory.put(body.rep(), all.min(EXCHANGE));
        Ok(Ok(self.memory.made(body)?))
    }
}

impl types::HostIncomingBody for HttpHost<'_> {
    dropped!(HostIncomingBody, HostIncomingBody);

    fn stream(&mut self, body: Resource<HostIncomingBody>) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>> {
        match types::HostIncomingBody::stream(&mut self.http, body)? {
            Ok(stream) => Ok(Ok(self.memory.made(stream)?)),
            Err(()) => Ok(Err(())),
        }
    }

    fn finish(&mut self, body: Resource<HostIncomingBody>) -> wasmtime::Result<Resource<HostFutureTrailers>> {
        let bytes = self.memory.moved(body.rep());
        let trailers = types::HostIncomingBody::finish(&mut self.http, body)?;
        self.memory.put(trailers.rep(), bytes);
        Ok(self.memory.made(trailers)?)
    }
}

impl types::HostFutureTrailers for HttpHost<'_> {
    dropped!(HostFutureTrailers, HostFutureTrailers);
    made! { HostFutureTrailers: fn subscribe(trailers: Resource<HostFutureTrailers>) -> DynPollable; }

    fn get(
        &mut self,
        trailers: Resource<HostFutureTrailers>,
    ) -> wasmtime::Result<Option<Result<Result<Option<Resource<Trailers>>, ErrorCode>, ()>>> {
        let got = types::HostFutureTrailers::get(&mut self.http, trailers)?;
        let Some(Ok(Ok(Some(fields_got)))) = got else { return Ok(got) };
        let bytes = fields(self.http.table.get(&fields_got)?);
        self.memory.set(fields_got.rep(), bytes)?;
        Ok(Some(Ok(Ok(Some(self.memory.made(fields_got)?)))))
    }
}

impl types::HostRequestOptions for HttpHost<'_> {
    made! { HostRequestOptions: fn new() -> RequestOptions; }
    dropped!(HostRequestOptions, RequestOptions);
    same! {
        HostRequestOptions: fn connect_timeout(options: Resource<RequestOptions>) -> wasmtime::Result<Option<types::Duration>>;
        HostRequestOptions: fn set_connect_timeout(options: Resource<RequestOptions>, time: Option<types::Duration>) -> wasmtime::Result<Result<(), ()>>;
        HostRequestOptions: fn first_byte_timeout(options: Resource<RequestOptions>) -> wasmtime::Result<Option<types::Duration>>;
        HostRequestOptions: fn set_first_byte_timeout(options: Resource<RequestOptions>, time: Option<types::Duration>) -> wasmtime::Result<Result<(), ()>>;
        HostRequestOptions: fn between_bytes_timeout(options: Resource<RequestOptions>) -> wasmtime::Result<Option<types::Duration>>;
        HostRequestOptions: fn set_between_bytes_timeout(options: Resource<RequestOptions>, time: Option<types::Duration>) -> wasmtime::Result<Result<(), ()>>;
    }
}

impl outgoing_handler::Host for HttpHost<'_> {
    fn handle(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> HttpResult<Resource<HostFutureIncomingResponse>> {
        self.memory.ends_request();
        let bytes = self.memory.moved(request.rep());
        match outgoing_handler::Host::handle(&mut self.http, request, options) {
            Ok(future) => {
                self.memory.put(future.rep(), bytes);
                self.memory.add(future.rep(), EXCHANGE, u64::MAX)?;
                Ok(self.memory.made(future)?)
            }
            Err(error) => {
                self.memory.give(bytes);
                Err(error)
            }
        }
    }
}
