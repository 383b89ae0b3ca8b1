//! `wasi:http/types` and `wasi:http/outgoing-handler`.
//!
//! Charges: a map of fields for its contents, up to the size of a full map; a request for its fields, its texts and the
//! channel of its body. The stream charges bytes written into a body. Requests and responses that a guest builds are
//! counted: at most as many as the call may send.

use wasmtime::component::{HasData, Linker, Resource};
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

use super::charges::{HostMemory, HostMemoryExceeded, MAX_FIELDS};
use crate::model::bounds::{Bound, REQUEST_AUTHORITY, REQUEST_METHOD, REQUEST_PATH};

/// Bytes of a field beside its name and value: its place in the map, which doubles as it grows.
const FIELD_OVERHEAD: u64 = 256;

/// Most bytes of a full map of fields. Empty fields have the largest overhead.
const FULL_MAP: u64 = 6 * MAX_FIELDS as u64;

/// Bytes of the channel between a body and the task that sends it.
const BODY_CHANNEL: u64 = 8 << 10;

/// Bytes of a request in flight until its response is read: the task, the buffers of the connection, data that the
/// upstream sends ahead.
const EXCHANGE: u64 = 256 << 10;

/// The HTTP requests of a guest, with their memory.
pub(in crate::sandbox) struct HttpHost<'a> {
    pub(in crate::sandbox) http: WasiHttpCtxView<'a>,
    pub(in crate::sandbox) memory: &'a mut HostMemory,
}

/// The key by which wasmtime gets an [`HttpHost`] from the store.
struct HttpKey;

impl HasData for HttpKey {
    type Data<'a> = HttpHost<'a>;
}

/// Links the functions that replace wasmtime's own. `host` borrows their view from the store.
pub(in crate::sandbox) fn link<T: Send + 'static>(
    linker: &mut Linker<T>,
    host: fn(&mut T) -> HttpHost<'_>,
) -> wasmtime::Result<()> {
    outgoing_handler::add_to_linker::<_, HttpKey>(linker, host)?;
    types::add_to_linker::<_, HttpKey>(linker, &types::LinkOptions::default(), host)
}

impl From<HostMemoryExceeded> for HttpError {
    fn from(exceeded: HostMemoryExceeded) -> Self {
        Self::trap(exceeded)
    }
}

impl From<HostMemoryExceeded> for HeaderError {
    fn from(exceeded: HostMemoryExceeded) -> Self {
        Self::trap(exceeded)
    }
}

/// Functions that keep no memory: forwarded to wasmtime.
macro_rules! forward {
    ($($trait:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)+) => {
        $(fn $name(&mut self, $($arg: $type),*) -> $result {
            types::$trait::$name(&mut self.http, $($arg),*)
        })+
    };
}

/// Functions that create a handle with no memory beyond it.
macro_rules! new_handle {
    ($($trait:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $made:ty;)+) => {
        $(fn $name(&mut self, $($arg: $type),*) -> wasmtime::Result<Resource<$made>> {
            let handle = types::$trait::$name(&mut self.http, $($arg),*)?;
            Ok(self.memory.charge_handle(handle)?)
        })+
    };
}

/// Drops a handle and releases its memory.
macro_rules! drop_handle {
    ($trait:ident, $type:ty) => {
        fn drop(&mut self, handle: Resource<$type>) -> wasmtime::Result<()> {
            self.memory.release_handle(handle.rep());
            types::$trait::drop(&mut self.http, handle)
        }
    };
}

/// Bytes of a field.
fn field(name: &str, value: &[u8]) -> u64 {
    FIELD_OVERHEAD + name.len() as u64 + value.len() as u64
}

/// Bytes of a map of fields that the guest did not build.
fn fields(map: &FieldMap) -> u64 {
    map.iter().map(|(name, value)| field(name.as_str(), value.as_bytes())).sum::<u64>().min(FULL_MAP)
}

/// True if a text from a guest is longer than any useful one.
fn is_too_long(text: &str, most: Bound<usize>) -> bool {
    text.len() > most.get()
}

impl HttpHost<'_> {
    /// Bytes of the texts of a request.
    fn text_bytes(&self, request: &Resource<HostOutgoingRequest>) -> wasmtime::Result<u64> {
        let request = self.http.table.get(request)?;
        let optional = |text: Option<&String>| text.map_or(0, String::len);
        let method = if let Method::Other(method) = &request.method { method.len() } else { 0 };
        let scheme = if let Some(Scheme::Other(scheme)) = &request.scheme { scheme.len() } else { 0 };
        Ok((method + scheme + optional(request.authority.as_ref()) + optional(request.path_with_query.as_ref())) as u64)
    }

    /// Sets a text of a request and charges it in place of the one before.
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
        let before = self.text_bytes(&request)?;
        let set = set(&mut self.http, request)?;
        let after = self.text_bytes(&Resource::new_borrow(handle))?;
        let all = self.memory.charged_to(handle).saturating_sub(before).saturating_add(after);
        self.memory.set(handle, all)?;
        Ok(set)
    }

    /// Charges the body of a request or response, with its channel.
    fn charge_body(
        &mut self,
        of: u32,
        body: Result<Resource<HostOutgoingBody>, ()>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let Ok(body) = body else { return Ok(Err(())) };
        self.memory.add(of, BODY_CHANNEL, u64::MAX)?;
        Ok(Ok(self.memory.charge_handle(body)?))
    }

    /// Charges a copy of a map of fields as much as the original, at most `most`.
    fn charge_copy(&mut self, from: u32, copy: Resource<FieldMap>, most: u64) -> wasmtime::Result<Resource<FieldMap>> {
        let bytes = self.memory.charged_to(from).min(most);
        self.memory.set(copy.rep(), bytes)?;
        Ok(self.memory.charge_handle(copy)?)
    }
}

impl types::Host for HttpHost<'_> {
    forward! {
        Host: fn convert_error_code(error: HttpError) -> wasmtime::Result<ErrorCode>;
        Host: fn convert_header_error(error: HeaderError) -> wasmtime::Result<types::HeaderError>;
        Host: fn http_error_code(error: Resource<types::IoError>) -> wasmtime::Result<Option<ErrorCode>>;
    }
}

impl types::HostFields for HttpHost<'_> {
    new_handle! { HostFields: fn new() -> FieldMap; }
    drop_handle!(HostFields, FieldMap);
    forward! {
        HostFields: fn get(fields: Resource<FieldMap>, name: String) -> wasmtime::Result<Vec<Vec<u8>>>;
        HostFields: fn has(fields: Resource<FieldMap>, name: String) -> wasmtime::Result<bool>;
        HostFields: fn delete(fields: Resource<FieldMap>, name: String) -> HeaderResult<()>;
        HostFields: fn entries(fields: Resource<FieldMap>) -> wasmtime::Result<Vec<(String, Vec<u8>)>>;
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Resource<FieldMap>> {
        let bytes = entries.iter().map(|(name, value)| field(name, value)).sum::<u64>().min(FULL_MAP);
        let fields = types::HostFields::from_list(&mut self.http, entries)?;
        self.memory.set(fields.rep(), bytes)?;
        Ok(self.memory.charge_handle(fields)?)
    }

    fn set(&mut self, fields: Resource<FieldMap>, name: String, values: Vec<Vec<u8>>) -> HeaderResult<()> {
        let (handle, bytes) = (fields.rep(), values.iter().map(|value| field(&name, value)).sum());
        types::HostFields::set(&mut self.http, fields, name, values)?;
        Ok(self.memory.add(handle, bytes, FULL_MAP)?)
    }

    fn append(&mut self, fields: Resource<FieldMap>, name: String, value: Vec<u8>) -> HeaderResult<()> {
        let (handle, bytes) = (fields.rep(), field(&name, &value));
        types::HostFields::append(&mut self.http, fields, name, value)?;
        Ok(self.memory.add(handle, bytes, FULL_MAP)?)
    }

    fn clone(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = fields.rep();
        let copy = types::HostFields::clone(&mut self.http, fields)?;
        self.charge_copy(from, copy, FULL_MAP)
    }
}

impl types::HostIncomingRequest for HttpHost<'_> {
    new_handle! { HostIncomingRequest: fn headers(request: Resource<HostIncomingRequest>) -> FieldMap; }
    drop_handle!(HostIncomingRequest, HostIncomingRequest);
    forward! {
        HostIncomingRequest: fn method(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Method>;
        HostIncomingRequest: fn path_with_query(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<String>>;
        HostIncomingRequest: fn scheme(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<Scheme>>;
        HostIncomingRequest: fn authority(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<String>>;
        HostIncomingRequest: fn consume(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>>;
    }
}

impl types::HostOutgoingRequest for HttpHost<'_> {
    fn new(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<HostOutgoingRequest>> {
        self.memory.begin_request()?;
        let bytes = self.memory.detach(fields.rep());
        let request = types::HostOutgoingRequest::new(&mut self.http, fields)?;
        self.memory.attach(request.rep(), bytes);
        Ok(self.memory.charge_handle(request)?)
    }

    fn body(
        &mut self,
        request: Resource<HostOutgoingRequest>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let of = request.rep();
        let body = types::HostOutgoingRequest::body(&mut self.http, request)?;
        self.charge_body(of, body)
    }

    fn drop(&mut self, request: Resource<HostOutgoingRequest>) -> wasmtime::Result<()> {
        self.memory.end_request();
        self.memory.release_handle(request.rep());
        types::HostOutgoingRequest::drop(&mut self.http, request)
    }

    fn set_method(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        method: Method,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = matches!(&method, Method::Other(method) if is_too_long(method, REQUEST_METHOD));
        self.set_text(request, is_long, |http, request| types::HostOutgoingRequest::set_method(http, request, method))
    }

    fn set_path_with_query(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        path: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = path.as_ref().is_some_and(|path| is_too_long(path, REQUEST_PATH));
        self.set_text(request, is_long, |http, request| {
            types::HostOutgoingRequest::set_path_with_query(http, request, path)
        })
    }

    fn set_scheme(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        scheme: Option<Scheme>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = matches!(&scheme, Some(Scheme::Other(scheme)) if is_too_long(scheme, REQUEST_METHOD));
        self.set_text(request, is_long, |http, request| types::HostOutgoingRequest::set_scheme(http, request, scheme))
    }

    fn set_authority(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        authority: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let is_long = authority.as_ref().is_some_and(|authority| is_too_long(authority, REQUEST_AUTHORITY));
        self.set_text(request, is_long, |http, request| {
            types::HostOutgoingRequest::set_authority(http, request, authority)
        })
    }

    forward! {
        HostOutgoingRequest: fn method(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Method>;
        HostOutgoingRequest: fn path_with_query(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<String>>;
        HostOutgoingRequest: fn scheme(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<Scheme>>;
        HostOutgoingRequest: fn authority(request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Option<String>>;
    }

    fn headers(&mut self, request: Resource<HostOutgoingRequest>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = request.rep();
        let copy = types::HostOutgoingRequest::headers(&mut self.http, request)?;
        self.charge_copy(from, copy, FULL_MAP)
    }
}

impl types::HostOutgoingResponse for HttpHost<'_> {
    fn new(&mut self, fields: Resource<FieldMap>) -> wasmtime::Result<Resource<HostOutgoingResponse>> {
        self.memory.begin_request()?;
        let bytes = self.memory.detach(fields.rep());
        let response = types::HostOutgoingResponse::new(&mut self.http, fields)?;
        self.memory.attach(response.rep(), bytes);
        Ok(self.memory.charge_handle(response)?)
    }

    fn body(
        &mut self,
        response: Resource<HostOutgoingResponse>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        let of = response.rep();
        let body = types::HostOutgoingResponse::body(&mut self.http, response)?;
        self.charge_body(of, body)
    }

    fn drop(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<()> {
        self.memory.end_request();
        self.memory.release_handle(response.rep());
        types::HostOutgoingResponse::drop(&mut self.http, response)
    }

    fn headers(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = response.rep();
        let copy = types::HostOutgoingResponse::headers(&mut self.http, response)?;
        self.charge_copy(from, copy, FULL_MAP)
    }

    forward! {
        HostOutgoingResponse: fn status_code(response: Resource<HostOutgoingResponse>) -> wasmtime::Result<types::StatusCode>;
        HostOutgoingResponse: fn set_status_code(response: Resource<HostOutgoingResponse>, status: types::StatusCode) -> wasmtime::Result<Result<(), ()>>;
    }
}

impl types::HostOutgoingBody for HttpHost<'_> {
    drop_handle!(HostOutgoingBody, HostOutgoingBody);

    fn write(&mut self, body: Resource<HostOutgoingBody>) -> wasmtime::Result<Result<Resource<DynOutputStream>, ()>> {
        match types::HostOutgoingBody::write(&mut self.http, body)? {
            Ok(stream) => Ok(Ok(self.memory.charge_handle(stream)?)),
            Err(()) => Ok(Err(())),
        }
    }

    fn finish(&mut self, body: Resource<HostOutgoingBody>, trailers: Option<Resource<Trailers>>) -> HttpResult<()> {
        self.memory.release_handle(body.rep());
        if let Some(trailers) = &trailers {
            // Trailers wait with the body, whose request is unknown here. They stay charged until the call ends.
            self.memory.detach(trailers.rep());
        }
        types::HostOutgoingBody::finish(&mut self.http, body, trailers)
    }
}

impl types::HostResponseOutparam for HttpHost<'_> {
    drop_handle!(HostResponseOutparam, HostResponseOutparam);
    forward! {
        HostResponseOutparam: fn set(to: Resource<HostResponseOutparam>, response: Result<Resource<HostOutgoingResponse>, ErrorCode>) -> wasmtime::Result<()>;
        HostResponseOutparam: fn send_informational(to: Resource<HostResponseOutparam>, status: u16, fields: Resource<FieldMap>) -> HttpResult<()>;
    }
}

impl types::HostFutureIncomingResponse for HttpHost<'_> {
    drop_handle!(HostFutureIncomingResponse, HostFutureIncomingResponse);
    new_handle! { HostFutureIncomingResponse: fn subscribe(future: Resource<HostFutureIncomingResponse>) -> DynPollable; }

    fn get(
        &mut self,
        future: Resource<HostFutureIncomingResponse>,
    ) -> wasmtime::Result<Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>> {
        let from = future.rep();
        let got = types::HostFutureIncomingResponse::get(&mut self.http, future)?;
        let Some(Ok(Ok(response))) = got else { return Ok(got) };
        self.memory.release_handle(from);
        let bytes = EXCHANGE + fields(&self.http.table.get(&response)?.headers);
        self.memory.set(response.rep(), bytes)?;
        Ok(Some(Ok(Ok(self.memory.charge_handle(response)?))))
    }
}

impl types::HostIncomingResponse for HttpHost<'_> {
    drop_handle!(HostIncomingResponse, HostIncomingResponse);
    forward! { HostIncomingResponse: fn status(response: Resource<HostIncomingResponse>) -> wasmtime::Result<types::StatusCode>; }

    fn headers(&mut self, response: Resource<HostIncomingResponse>) -> wasmtime::Result<Resource<FieldMap>> {
        let from = response.rep();
        let copy = types::HostIncomingResponse::headers(&mut self.http, response)?;
        let bytes = fields(self.http.table.get(&copy)?);
        self.charge_copy(from, copy, bytes)
    }

    fn consume(
        &mut self,
        response: Resource<HostIncomingResponse>,
    ) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>> {
        let from = response.rep();
        let Ok(body) = types::HostIncomingResponse::consume(&mut self.http, response)? else { return Ok(Err(())) };
        // The exchange lasts as long as its body.
        let all = self.memory.detach(from);
        self.memory.attach(from, all.saturating_sub(EXCHANGE));
        self.memory.attach(body.rep(), all.min(EXCHANGE));
        Ok(Ok(self.memory.charge_handle(body)?))
    }
}

impl types::HostIncomingBody for HttpHost<'_> {
    drop_handle!(HostIncomingBody, HostIncomingBody);

    fn stream(&mut self, body: Resource<HostIncomingBody>) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>> {
        match types::HostIncomingBody::stream(&mut self.http, body)? {
            Ok(stream) => Ok(Ok(self.memory.charge_handle(stream)?)),
            Err(()) => Ok(Err(())),
        }
    }

    fn finish(&mut self, body: Resource<HostIncomingBody>) -> wasmtime::Result<Resource<HostFutureTrailers>> {
        let bytes = self.memory.detach(body.rep());
        let trailers = types::HostIncomingBody::finish(&mut self.http, body)?;
        self.memory.attach(trailers.rep(), bytes);
        Ok(self.memory.charge_handle(trailers)?)
    }
}

impl types::HostFutureTrailers for HttpHost<'_> {
    drop_handle!(HostFutureTrailers, HostFutureTrailers);
    new_handle! { HostFutureTrailers: fn subscribe(trailers: Resource<HostFutureTrailers>) -> DynPollable; }

    fn get(
        &mut self,
        trailers: Resource<HostFutureTrailers>,
    ) -> wasmtime::Result<Option<Result<Result<Option<Resource<Trailers>>, ErrorCode>, ()>>> {
        let got = types::HostFutureTrailers::get(&mut self.http, trailers)?;
        let Some(Ok(Ok(Some(fields_got)))) = got else { return Ok(got) };
        let bytes = fields(self.http.table.get(&fields_got)?);
        self.memory.set(fields_got.rep(), bytes)?;
        Ok(Some(Ok(Ok(Some(self.memory.charge_handle(fields_got)?)))))
    }
}

impl types::HostRequestOptions for HttpHost<'_> {
    new_handle! { HostRequestOptions: fn new() -> RequestOptions; }
    drop_handle!(HostRequestOptions, RequestOptions);
    forward! {
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
        self.memory.end_request();
        let bytes = self.memory.detach(request.rep());
        match outgoing_handler::Host::handle(&mut self.http, request, options) {
            Ok(future) => {
                self.memory.attach(future.rep(), bytes);
                self.memory.add(future.rep(), EXCHANGE, u64::MAX)?;
                Ok(self.memory.charge_handle(future)?)
            }
            Err(error) => {
                self.memory.release(bytes);
                Err(error)
            }
        }
    }
}
