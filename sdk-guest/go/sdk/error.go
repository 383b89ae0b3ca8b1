package belljar

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kind decides how the host reports a failure, and whether a retry makes sense.
type Kind int

// The kinds of failures.
const (
	KindNotFound    Kind = iota // the resource does not exist, or this caller must not know of it
	KindInvalid                 // the reference, cursor or argument is malformed
	KindDenied                  // the provider refuses, or a grant is missing
	KindUnavailable             // a backend is down or busy; the same call may succeed later
	KindFailed                  // any other failure
)

// Error is a failure of a known kind. People read the reason as the provider's words: it should say what to do, and
// contain nothing that the caller may not know. Wrapped errors keep their kind:
// errors.Is(err, [ErrNotFound]).
type Error struct {
	Kind   Kind
	Reason string
}

// An error of each kind, for comparison. Providers also return ErrNotFound.
var (
	ErrNotFound    = &Error{Kind: KindNotFound}
	ErrInvalid     = &Error{Kind: KindInvalid}
	ErrDenied      = &Error{Kind: KindDenied}
	ErrUnavailable = &Error{Kind: KindUnavailable}
	ErrFailed      = &Error{Kind: KindFailed}
)

// Error is the reason, or the kind if there is no reason.
func (e *Error) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return [...]string{"not found", "invalid", "denied", "unavailable", "failed"}[e.Kind]
}

// Is makes errors.Is treat two errors of one kind as equal if one of them has no reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Kind == e.Kind && (other.Reason == "" || other.Reason == e.Reason)
}

// Invalid is for a malformed reference, cursor or argument.
func Invalid(format string, a ...any) error {
	return &Error{KindInvalid, fmt.Sprintf(format, a...)}
}

// Denied is for refusals and missing grants.
func Denied(format string, a ...any) error {
	return &Error{KindDenied, fmt.Sprintf(format, a...)}
}

// Unavailable is for a backend that is down or busy; the same call may succeed later.
func Unavailable(format string, a ...any) error {
	return &Error{KindUnavailable, fmt.Sprintf(format, a...)}
}

// Failed is for any other failure.
func Failed(format string, a ...any) error {
	return &Error{KindFailed, fmt.Sprintf(format, a...)}
}

// AsError is the error that the host reports: the wrapped [Error], or a new one.
func AsError(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		// The wrapping text is part of the reason.
		if known.Error() == err.Error() {
			return known
		}
		return &Error{known.Kind, err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{KindNotFound, err.Error()}
	case errors.Is(err, fs.ErrPermission):
		return &Error{KindDenied, err.Error()}
	default:
		return &Error{KindFailed, err.Error()}
	}
}
