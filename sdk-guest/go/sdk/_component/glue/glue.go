// Package glue converts between the types of package belljar and the types that wit-bindgen generates.
package glue

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/imports/belljar_provider_types"
)

// The arguments of a call are allocated before its function is entered. In that phase, the component may not call any
// import. The garbage collector reads the clock, so it starts only with the function: earlier, it would end the call in a
// trap ("cannot leave component instance").
var gcPercent = debug.SetGCPercent(-1)

// Provider is the provider of the component. Enables the garbage collector.
func Provider() belljar.Provider {
	debug.SetGCPercent(gcPercent)
	return belljar.Served()
}

// Optional converts a text to an option: "" becomes none.
func Optional(text string) witTypes.Option[string] {
	if text == "" {
		return witTypes.None[string]()
	}
	return witTypes.Some(String(text))
}

// String replaces bytes that are not UTF-8. Such bytes would end the call in a trap.
func String(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}

// OrElse returns the first text, or the second if the first is "".
func OrElse(text, other string) string {
	if text == "" {
		text = other
	}
	return String(text)
}

// Size converts a size: nil becomes none.
func Size(from *int64) witTypes.Option[uint64] {
	if from == nil || *from < 0 {
		return witTypes.None[uint64]()
	}
	return witTypes.Some(uint64(*from))
}

// Cursor converts the cursor of a caller.
func Cursor(from witTypes.Option[string]) *string {
	if from.IsNone() {
		return nil
	}
	return new(from.Some())
}

// NextCursor converts the cursor of a page.
func NextCursor(from *string) witTypes.Option[string] {
	if from == nil {
		return witTypes.None[string]()
	}
	return witTypes.Some(String(*from))
}

// Suggestions converts suggestions to their values and their total number.
func Suggestions(from belljar.Suggestions) ([]string, witTypes.Option[uint32]) {
	values := make([]string, 0, len(from.Values))
	for _, value := range from.Values {
		values = append(values, String(value))
	}
	if from.Total == nil {
		return values, witTypes.None[uint32]()
	}
	return values, witTypes.Some(*from.Total)
}

// Contents converts one content. Text that is not UTF-8 is a failure.
func Contents(from belljar.Contents) (belljar_provider_types.Contents, error) {
	body := belljar_provider_types.MakeBodyBlob(from.Body)
	if !from.IsBlob {
		if !utf8.Valid(from.Body) {
			return belljar_provider_types.Contents{}, belljar.Failed("the text of \"%s\" is not UTF-8", from.Reference)
		}
		body = belljar_provider_types.MakeBodyText(string(from.Body))
	}
	return belljar_provider_types.Contents{
		Reference: String(from.Reference),
		MimeType:  Optional(from.MimeType),
		Body:      body,
		Meta:      Meta(from.Meta),
	}, nil
}

// AllContents converts the contents of a reading.
func AllContents(from []belljar.Contents) ([]belljar_provider_types.Contents, error) {
	to := make([]belljar_provider_types.Contents, 0, len(from))
	for _, content := range from {
		converted, err := Contents(content)
		if err != nil {
			return nil, err
		}
		to = append(to, converted)
	}
	return to, nil
}

// FreshFor converts the time for which the host may serve a reading from its cache.
func FreshFor(from time.Duration) witTypes.Option[uint32] {
	if ms := min(int64(from/time.Millisecond), math.MaxUint32); ms > 0 {
		return witTypes.Some(uint32(ms))
	}
	return witTypes.None[uint32]()
}

// Resources converts the entries of a page.
func Resources(from []belljar.Resource) []belljar_provider_types.ResourceInfo {
	to := make([]belljar_provider_types.ResourceInfo, 0, len(from))
	for _, entry := range from {
		to = append(to, belljar_provider_types.ResourceInfo{
			Reference:   String(entry.Reference),
			Name:        OrElse(entry.Name, entry.Reference),
			Title:       Optional(entry.Title),
			Description: Optional(entry.Description),
			MimeType:    Optional(entry.MimeType),
			Size:        Size(entry.Size),
			Annotations: Annotations(entry.Annotations),
			Icons:       Icons(entry.Icons),
			Meta:        Meta(entry.Meta),
		})
	}
	return to
}

// Annotations converts annotations to the generated type.
func Annotations(from *belljar.Annotations) witTypes.Option[belljar_provider_types.Annotations] {
	if from == nil {
		return witTypes.None[belljar_provider_types.Annotations]()
	}
	var to belljar_provider_types.Annotations
	for _, role := range from.Audience {
		to.Audience = append(to.Audience, belljar_provider_types.Role(role))
	}
	if from.Priority != nil {
		to.Priority = witTypes.Some(*from.Priority)
	}
	if !from.LastModified.IsZero() {
		to.LastModified = witTypes.Some(from.LastModified.UTC().Format(time.RFC3339Nano))
	}
	return witTypes.Some(to)
}

// Icons converts icons to the generated type.
func Icons(from []belljar.Icon) []belljar_provider_types.Icon {
	to := make([]belljar_provider_types.Icon, 0, len(from))
	for _, icon := range from {
		sizes := make([]string, 0, len(icon.Sizes))
		for _, size := range icon.Sizes {
			sizes = append(sizes, String(size))
		}
		to = append(to, belljar_provider_types.Icon{Src: String(icon.Src), MimeType: Optional(icon.MimeType), Sizes: sizes})
	}
	return to
}

// Meta converts the entries of _meta to the generated type.
func Meta(from []belljar.Meta) []witTypes.Tuple2[string, string] {
	to := make([]witTypes.Tuple2[string, string], 0, len(from))
	for _, entry := range from {
		to = append(to, witTypes.Tuple2[string, string]{F0: String(entry.Key), F1: String(entry.JSON)})
	}
	return to
}

// Result returns the result or the error of a call. A panic becomes a failure; its trace goes to the host's log.
func Result[T any](call func() (T, error)) (result witTypes.Result[T, belljar_provider_types.ProviderError]) {
	defer func() {
		if cause := recover(); cause != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", cause, debug.Stack())
			result = witTypes.Err[T](providerError(belljar.Failed("panic: %v", cause)))
		}
	}()
	value, err := call()
	if err != nil {
		return witTypes.Err[T](providerError(err))
	}
	return witTypes.Ok[T, belljar_provider_types.ProviderError](value)
}

// providerError converts an error to the generated type.
func providerError(err error) belljar_provider_types.ProviderError {
	known := belljar.AsError(err)
	reason := String(known.Reason)
	switch known.Kind {
	case belljar.KindNotFound:
		return belljar_provider_types.MakeProviderErrorNotFound()
	case belljar.KindInvalid:
		return belljar_provider_types.MakeProviderErrorInvalid(reason)
	case belljar.KindDenied:
		return belljar_provider_types.MakeProviderErrorDenied(reason)
	case belljar.KindUnavailable:
		return belljar_provider_types.MakeProviderErrorUnavailable(reason)
	default:
		return belljar_provider_types.MakeProviderErrorFailed(reason)
	}
}
