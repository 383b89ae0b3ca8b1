// Package glue goes between the types of package belljar and the generated ones.
package glue

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/imports/belljar_provider_types"
)

// What a call is given is allocated before its function is entered, in a part of the call that may not use anything
// outside of the component. The collector asks for the time of day, so it waits until then: it would end the call in a
// trap ("cannot leave component instance").
var percent = debug.SetGCPercent(-1)

// Provider is what the component serves; from here on, memory is collected.
func Provider() belljar.Provider {
	debug.SetGCPercent(percent)
	return belljar.Served()
}

// Optional is none for "".
func Optional(text string) witTypes.Option[string] {
	if text == "" {
		return witTypes.None[string]()
	}
	return witTypes.Some(String(text))
}

// String is the text, with what is not UTF-8 in it replaced: it would end the call in a trap.
func String(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}

// OrElse is the first of two texts that is not "".
func OrElse(text, other string) string {
	if text == "" {
		text = other
	}
	return String(text)
}

// Annotations are the generated ones.
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

// Icons are the generated ones.
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

// Meta is the generated one.
func Meta(from []belljar.Meta) []witTypes.Tuple2[string, string] {
	to := make([]witTypes.Tuple2[string, string], 0, len(from))
	for _, entry := range from {
		to = append(to, witTypes.Tuple2[string, string]{F0: String(entry.Key), F1: String(entry.JSON)})
	}
	return to
}

// Result is what a call gave, or why it did not. A panic is told as failed; its trace goes to the host's log.
func Result[T any](call func() (T, error)) (result witTypes.Result[T, belljar_provider_types.ProviderError]) {
	defer func() {
		if cause := recover(); cause != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", cause, debug.Stack())
			result = witTypes.Err[T](told(belljar.Failed("panic: %v", cause)))
		}
	}()
	value, err := call()
	if err != nil {
		return witTypes.Err[T](told(err))
	}
	return witTypes.Ok[T, belljar_provider_types.ProviderError](value)
}

func told(err error) belljar_provider_types.ProviderError {
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
