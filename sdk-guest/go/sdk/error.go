package belljar

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kind says how a failure is to be understood: what the caller is told, and whether to try again makes sense.
type Kind int

// The kinds of failures.
const (
	KindNotFound    Kind = iota // there is no such resource, or none that this caller may know of
	KindInvalid                 // the reference, cursor or argument is malformed
	KindDenied                  // refused, or something that it needs was not granted
	KindUnavailable             // something that it depends on is down or busy; may succeed later
	KindFailed                  // anything else
)

// Error is a failure of a known kind. People read the reason as the provider's words: it should say what to do, and
// hold nothing that the caller may not know. Errors are told by their kind, however they are wrapped:
// errors.Is(err, [ErrNotFound]).
type Error struct {
	Kind   Kind
	Reason string
}

// An error of each kind, to compare with. ErrNotFound is also one to return.
var (
	ErrNotFound    = &Error{Kind: KindNotFound}
	ErrInvalid     = &Error{Kind: KindInvalid}
	ErrDenied      = &Error{Kind: KindDenied}
	ErrUnavailable = &Error{Kind: KindUnavailable}
	ErrFailed      = &Error{Kind: KindFailed}
)

// Error is the reason, or the kind where there is none.
func (e *Error) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return [...]string{"not found", "invalid", "denied", "unavailable", "failed"}[e.Kind]
}

// Is tells errors.Is that two errors of one kind are the same if one of them gives no reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Kind == e.Kind && (other.Reason == "" || other.Reason == e.Reason)
}

// Invalid is for a malformed reference, cursor or argument.
func Invalid(format string, a ...any) error {
	return &Error{KindInvalid, fmt.Sprintf(format, a...)}
}

// Denied is for what is refused, or was not granted.
func Denied(format string, a ...any) error {
	return &Error{KindDenied, fmt.Sprintf(format, a...)}
}

// Unavailable is for what is down or busy and may succeed later.
func Unavailable(format string, a ...any) error {
	return &Error{KindUnavailable, fmt.Sprintf(format, a...)}
}

// Failed is for anything else.
func Failed(format string, a ...any) error {
	return &Error{KindFailed, fmt.Sprintf(format, a...)}
}

// AsError is the error as a caller is told of it: the one that it wraps, or one made of it.
func AsError(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		// What was wrapped around it is part of the reason.
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
