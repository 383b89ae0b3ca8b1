//go:build belljar_http

package glue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	witRuntime "go.bytecodealliance.org/pkg/wit/runtime"
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	outgoing "my-provider/build/_bindings/imports/wasi_http_outgoing_handler"
	wasi "my-provider/build/_bindings/imports/wasi_http_types"
	"my-provider/build/_bindings/imports/wasi_io_streams"
)

// The clients of net/http send their requests through the host.
func init() {
	http.DefaultTransport = transport{}
}

// importing calls a function of the host without the garbage collector: the result is allocated while the component may not
// call any import, and the collector reads the clock. Then the result is like any other value: nothing but its use keeps it.
func importing[T any](call func() T) T {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer witRuntime.Unpin()
	return call()
}

// transport sends requests through the host, which decides about each of them.
type transport struct{}

// The headers that a redirect takes to another origin. Any other may hold a credential.
var travels = map[string]bool{"accept": true, "accept-language": true, "user-agent": true}

// RoundTrip sends one request. A client calls it again for each redirect.
func (transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	message, sent, err := newMessage(request)
	if err != nil {
		return nil, err
	}
	limits, err := newLimits(request)
	if err != nil {
		return nil, err
	}
	begun := importing(func() witTypes.Result[*wasi.FutureIncomingResponse, wasi.ErrorCode] {
		return outgoing.Handle(message, limits)
	})
	if begun.IsErr() {
		return nil, failure(request, begun.Err())
	}
	future := begun.Ok()
	defer future.Drop()
	if sent != nil {
		if err := send(sent, request.Body); err != nil {
			return nil, err
		}
	}
	wait := future.Subscribe()
	wait.Block()
	wait.Drop()
	result := importing(future.Get).Some().Ok()
	if result.IsErr() {
		return nil, failure(request, result.Err())
	}
	return newResponse(request, result.Ok())
}

// newMessage makes the request for the host, and its body.
func newMessage(request *http.Request) (*wasi.OutgoingRequest, *wasi.OutgoingBody, error) {
	stays := keepsOrigin(request)
	fields := wasi.MakeFields()
	for name, values := range request.Header {
		lower := strings.ToLower(name)
		if !stays && !travels[lower] {
			continue
		}
		for _, value := range values {
			if fields.Append(lower, []byte(value)).IsErr() {
				return nil, nil, malformed(request, fmt.Sprintf("the header %q", lower))
			}
		}
	}
	hasBody := request.Body != nil && request.Body != http.NoBody
	if hasBody && request.ContentLength > 0 {
		fields.Append("content-length", []byte(strconv.FormatInt(request.ContentLength, 10)))
	}
	message := wasi.MakeOutgoingRequest(fields)
	scheme := wasi.MakeSchemeHttp()
	if request.URL.Scheme == "https" {
		scheme = wasi.MakeSchemeHttps()
	}
	message.SetScheme(witTypes.Some(scheme))
	if message.SetMethod(method(request.Method)).IsErr() {
		return nil, nil, malformed(request, "the method")
	}
	if message.SetAuthority(witTypes.Some(request.URL.Host)).IsErr() {
		return nil, nil, malformed(request, "the host")
	}
	if message.SetPathWithQuery(witTypes.Some(request.URL.RequestURI())).IsErr() {
		return nil, nil, malformed(request, "the path")
	}
	if !hasBody {
		return message, nil, nil
	}
	return message, message.Body().Ok(), nil
}

func method(name string) wasi.Method {
	switch name {
	case "", http.MethodGet:
		return wasi.MakeMethodGet()
	case http.MethodHead:
		return wasi.MakeMethodHead()
	case http.MethodPost:
		return wasi.MakeMethodPost()
	case http.MethodPut:
		return wasi.MakeMethodPut()
	case http.MethodDelete:
		return wasi.MakeMethodDelete()
	case http.MethodPatch:
		return wasi.MakeMethodPatch()
	case http.MethodOptions:
		return wasi.MakeMethodOptions()
	default:
		return wasi.MakeMethodOther(name)
	}
}

// keepsOrigin is true if no redirect led to another origin. The client itself keeps the headers for another port.
func keepsOrigin(request *http.Request) bool {
	for before := request.Response; before != nil && before.Request != nil; before = before.Request.Response {
		if origin(before.Request.URL) != origin(request.URL) {
			return false
		}
	}
	return true
}

func origin(of *url.URL) string {
	port := of.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[of.Scheme]
	}
	return of.Scheme + "://" + strings.ToLower(of.Hostname()) + ":" + port
}

// newLimits makes the limits: the time that is left, for each step of the request.
func newLimits(request *http.Request) (witTypes.Option[*wasi.RequestOptions], error) {
	none := witTypes.None[*wasi.RequestOptions]()
	if err := request.Context().Err(); err != nil {
		return none, late(request, err)
	}
	deadline, has := request.Context().Deadline()
	if !has {
		return none, nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return none, late(request, context.DeadlineExceeded)
	}
	limits := wasi.MakeRequestOptions()
	limits.SetConnectTimeout(witTypes.Some(uint64(left)))
	limits.SetFirstByteTimeout(witTypes.Some(uint64(left)))
	limits.SetBetweenBytesTimeout(witTypes.Some(uint64(left)))
	return witTypes.Some(limits), nil
}

func late(request *http.Request, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return belljar.Unavailable("no answer from %s: it took too long", shown(request))
	}
	return belljar.Unavailable("no answer from %s: %v", shown(request), err)
}

// send sends a body in pieces. If the host no longer takes it, its answer says why.
func send(body *wasi.OutgoingBody, from io.Reader) error {
	stream := body.Write().Ok()
	piece := make([]byte, 32*1024)
	for {
		length, err := from.Read(piece)
		if !write(stream, piece[:length]) {
			stream.Drop()
			body.Drop()
			return nil
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			stream.Drop()
			body.Drop()
			return err
		}
	}
	stream.BlockingFlush()
	stream.Drop()
	wasi.OutgoingBodyFinish(body, witTypes.None[*wasi.Fields]())
	return nil
}

func write(stream *wasi_io_streams.OutputStream, bytes []byte) bool {
	for len(bytes) > 0 {
		room := stream.CheckWrite()
		if room.IsErr() {
			return false
		}
		if room.Ok() == 0 {
			wait := stream.Subscribe()
			wait.Block()
			wait.Drop()
			continue
		}
		now := min(uint64(len(bytes)), room.Ok())
		if stream.Write(bytes[:now]).IsErr() {
			return false
		}
		bytes = bytes[now:]
	}
	return true
}

func newResponse(request *http.Request, response *wasi.IncomingResponse) (*http.Response, error) {
	header := http.Header{}
	fields := response.Headers()
	for _, field := range importing(fields.Entries) {
		header.Add(field.F0, string(field.F1))
	}
	fields.Drop()
	incoming := response.Consume().Ok()
	status := int(response.Status())
	length := int64(-1)
	if stated, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64); err == nil {
		length = stated
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		ContentLength: length,
		Body:          &body{request, response, incoming, incoming.Stream().Ok(), nil, 0},
		Request:       request,
	}, nil
}

// body is read in pieces, as the host gives them.
type body struct {
	request  *http.Request
	response *wasi.IncomingResponse
	incoming *wasi.IncomingBody
	stream   *wasi_io_streams.InputStream
	// The end of the body, or the reason why nothing more can be read.
	end error
	// The bytes that were read since the last collection.
	garbage int
}

// mostGarbage is the part of a body after which its memory is collected. Go's collector starts with as much.
const mostGarbage = 4 << 20

func (b *body) Read(bytes []byte) (int, error) {
	if b.end != nil || len(bytes) == 0 {
		return 0, b.end
	}
	read := func() witTypes.Result[[]uint8, wasi_io_streams.StreamError] {
		return b.stream.BlockingRead(uint64(len(bytes)))
	}
	piece := importing(read)
	if piece.IsOk() {
		length := copy(bytes, piece.Ok())
		// A body is allocated without the collector, which starts with an allocation.
		if b.garbage += length; b.garbage > mostGarbage {
			b.garbage = 0
			runtime.GC()
		}
		return length, nil
	}
	b.end = b.reason(piece.Err())
	return 0, b.end
}

func (b *body) reason(failed wasi_io_streams.StreamError) error {
	if failed.Tag() == wasi_io_streams.StreamError_Closed {
		return io.EOF
	}
	cause := failed.LastOperationFailed()
	defer cause.Drop()
	code := importing(func() witTypes.Option[wasi.ErrorCode] { return wasi.HttpErrorCode(cause) })
	if code.IsSome() {
		return failure(b.request, code.Some())
	}
	return belljar.Unavailable("no whole answer from %s: it ended too early", shown(b.request))
}

// Close drops the rest of the body. Each resource is a child of the next.
func (b *body) Close() error {
	if b.stream != nil {
		b.stream.Drop()
		b.incoming.Drop()
		b.response.Drop()
		b.stream = nil
	}
	if b.end == nil {
		b.end = http.ErrBodyReadAfterClose
	}
	return nil
}

// shown is the URL for messages: without its query, which may hold values of a client.
func shown(request *http.Request) string {
	path := request.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	return strconv.Quote(request.URL.Scheme + "://" + request.URL.Host + path)
}

func malformed(request *http.Request, part string) error {
	return belljar.Failed("the request to %s cannot be sent: %s is malformed, or belljar does not let a provider set it", shown(request), part)
}

// The reasons after which the same request may succeed later.
var later = map[uint8]string{
	wasi.ErrorCode_DnsTimeout:              "its name cannot be resolved",
	wasi.ErrorCode_DnsError:                "its name cannot be resolved",
	wasi.ErrorCode_DestinationNotFound:     "its name cannot be resolved",
	wasi.ErrorCode_DestinationUnavailable:  "it cannot be reached",
	wasi.ErrorCode_DestinationIpUnroutable: "it cannot be reached",
	wasi.ErrorCode_ConnectionRefused:       "it refused the connection",
	wasi.ErrorCode_ConnectionTerminated:    "the connection was closed",
	wasi.ErrorCode_ConnectionLimitReached:  "too many connections are open",
	wasi.ErrorCode_ConnectionTimeout:       "it took too long",
	wasi.ErrorCode_ConnectionReadTimeout:   "it took too long",
	wasi.ErrorCode_ConnectionWriteTimeout:  "it took too long",
	wasi.ErrorCode_HttpResponseTimeout:     "it took too long",
	wasi.ErrorCode_HttpResponseIncomplete:  "its answer ended too early",
}

var never = map[uint8]string{
	wasi.ErrorCode_TlsProtocolError:     "TLS failed",
	wasi.ErrorCode_TlsCertificateError:  "its certificate is not trusted",
	wasi.ErrorCode_TlsAlertReceived:     "it refused TLS",
	wasi.ErrorCode_HttpRequestBodySize:  "the body of the request is larger than the host allows",
	wasi.ErrorCode_HttpResponseBodySize: "its answer is larger than the host allows",
	wasi.ErrorCode_HttpProtocolError:    "it does not speak HTTP as it should",
}

// failure is the error for an error code of the host.
func failure(request *http.Request, code wasi.ErrorCode) error {
	to := shown(request)
	switch tag := code.Tag(); tag {
	case wasi.ErrorCode_HttpRequestDenied, wasi.ErrorCode_DestinationIpProhibited:
		if request.Response != nil && request.Response.Request != nil {
			return belljar.Denied("%s redirects to %s, and no request to there was granted", shown(request.Response.Request), to)
		}
		return belljar.Denied("no request to %s was granted", to)
	case wasi.ErrorCode_InternalError:
		return belljar.Failed("no answer from %s: the host failed: %s", to, code.InternalError().SomeOr("it gives no reason"))
	default:
		if why, known := later[tag]; known {
			return belljar.Unavailable("no answer from %s: %s", to, why)
		}
		why, known := never[tag]
		if !known {
			why = fmt.Sprintf("the host reports the code %d of wasi:http", tag)
		}
		return belljar.Failed("no answer from %s: %s", to, why)
	}
}
