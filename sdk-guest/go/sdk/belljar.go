// Package belljar is for writing belljar resource providers in Go.
//
// A provider is a type with the methods of [Provider]; main.go hands one to [Serve]. Each call runs in a fresh sandbox:
// nothing that a call leaves in memory is there in the next one. What the operator granted is reached through the
// standard library: files below their guest path with [os], settings with [os.Getenv].
//
// The package needs nothing that is generated, so that a provider is tested by calling its methods: go test ./...
package belljar

import "time"

// Provider lists resources and reads them.
//
// The errors decide what a caller is told: see [Error]. An error of another kind is told as failed, except
// [io/fs.ErrNotExist], which is [ErrNotFound], and [io/fs.ErrPermission], which is denied. A panic is told as failed too.
type Provider interface {
	// Describe says what the provider is. It has to work without any grant.
	Describe() Info
	// List lists the resources that are worth listing, a page at a time. The cursor is nil for the first page, and
	// the [Page.NextCursor] of an earlier one for the others.
	List(cursor *string) (Page, error)
	// Templates lists the templates, all at once.
	Templates() ([]Template, error)
	// Read reads one resource. The reference is valid and percent-encoded; "" is the mount itself.
	Read(reference string) (Reading, error)
}

// Completer is a provider that suggests values for the variables of its templates. It needs the world
// provider-with-completion or full-provider.
type Completer interface {
	Provider
	// Complete suggests values for one variable; resolved holds those that are filled in already.
	Complete(template string, argument Argument, resolved []Argument) (Suggestions, error)
}

// Reviser is a provider that tells cheaply whether something changed. It needs the world provider-with-revisions or
// full-provider. A revision is any short text that differs from an earlier one when the thing differs.
type Reviser interface {
	Provider
	// CatalogRevision is the revision of the list of resources and templates.
	CatalogRevision() (string, error)
	// ResourceRevision is the revision of what reading the resource gives.
	ResourceRevision(reference string) (string, error)
}

// Info is what a provider says of itself. Fields that are left out are absent.
type Info struct {
	Title       string
	Version     string
	Description string
}

// Resource is one entry of the list. Only Reference has to be there.
type Resource struct {
	Reference   string // relative to the mount and percent-encoded: see [Encode]
	Name        string // a short name for programs; the reference if it is left out
	Title       string // a name for people
	Description string
	MimeType    string
	Size        *int64 // in bytes: new(int64(1024))
	Annotations *Annotations
	Icons       []Icon
	Meta        []Meta
}

// Template is a family of resources. Only Template has to be there.
type Template struct {
	Template    string // an RFC 6570 template, relative to the mount: "cities/{name}"
	Name        string // a short name for programs; the template if it is left out
	Title       string
	Description string
	MimeType    string // if all that match share one
	Annotations *Annotations
	Icons       []Icon
	Meta        []Meta
}

// Role is whom something is meant for.
type Role int

// The roles: the person in front of the client, and the model.
const (
	User Role = iota
	Assistant
)

// Annotations are hints about how a client may use a resource.
type Annotations struct {
	Audience     []Role
	Priority     *float64  // from 0.0 (optional) to 1.0 (as good as required)
	LastModified time.Time // the zero time is absent
}

// Icon is a picture that stands for a resource: a data: or https: URI.
type Icon struct {
	Src      string
	MimeType string
	Sizes    []string // "48x48" or "any"
}

// Meta is further data; JSON is the text of one value.
type Meta struct {
	Key  string
	JSON string
}

// Page is one page of the list. [PageOf] makes them.
type Page struct {
	Resources  []Resource
	NextCursor *string // nil on the last page
}

// Reading is what reading a resource gave: at least one content. [Text], [Blob] and [Bytes] make one of one content.
type Reading struct {
	Contents []Contents
	FreshFor time.Duration // how long the host may serve it again without asking
}

// Contents is one content of a reading. It is text unless IsBlob says otherwise.
type Contents struct {
	Reference string // what was asked for, or something below it
	MimeType  string
	Body      []byte
	IsBlob    bool
	Meta      []Meta
}

// Argument is a variable of a template and its value, not percent-encoded and possibly only begun.
type Argument struct {
	Name  string
	Value string
}

// Suggestions is what a value could become, best first.
type Suggestions struct {
	Values []string
	Total  *uint32 // how many there are in all, if Values does not hold all of them
}
