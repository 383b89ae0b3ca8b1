// Package belljar is the SDK for belljar resource providers in Go.
//
// A provider is a type with the methods of [Provider]; main.go hands one to [Serve]. Each call runs in a fresh sandbox:
// the next call sees nothing that this one leaves in memory. Grants are available through the
// standard library: files below their guest path with [os], settings with [os.Getenv].
//
// The package has no generated code, so a provider is tested by calling its methods: go test ./...
package belljar

import "time"

// Provider lists resources and reads them.
//
// The kind of an error decides how the host reports it: see [Error]. Any other error becomes a failure, except
// [io/fs.ErrNotExist], which is [ErrNotFound], and [io/fs.ErrPermission], which is denied. A panic also becomes a failure.
type Provider interface {
	// Describe describes the provider. It must work without any grant.
	Describe() Info
	// List lists the resources that are worth listing, a page at a time. The cursor is nil for the first page. For other
	// pages, it is the [Page.NextCursor] of an earlier page.
	List(cursor *string) (Page, error)
	// Templates lists the templates, all at once.
	Templates() ([]Template, error)
	// Read reads one resource. The reference is valid and percent-encoded; "" is the mount itself.
	Read(reference string) (Reading, error)
}

// Completer is a provider that suggests values for the variables of its templates. It needs the
// interface completion.
type Completer interface {
	Provider
	// Complete suggests values for one variable; resolved holds the variables that already have a value.
	Complete(template string, argument Argument, resolved []Argument) (Suggestions, error)
}

// Reviser is a provider that detects changes cheaply. It needs the interface revisions. A revision is any
// short text. It differs from an earlier one if the list or the resource differs.
type Reviser interface {
	Provider
	// CatalogRevision returns the revision of the list of resources and templates.
	CatalogRevision() (string, error)
	// ResourceRevision returns the revision of the contents of a resource.
	ResourceRevision(reference string) (string, error)
}

// Info is the description of a provider. Fields that are left out are absent.
type Info struct {
	Title       string
	Version     string
	Description string
}

// Resource is one entry of the list. Only Reference is required.
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

// Template is a family of resources. Only Template is required.
type Template struct {
	Template    string // an RFC 6570 template, relative to the mount: "cities/{name}"
	Name        string // a short name for programs; the template if it is left out
	Title       string
	Description string
	MimeType    string // if all resources of the template have the same one
	Annotations *Annotations
	Icons       []Icon
	Meta        []Meta
}

// Role is an intended audience.
type Role int

// The roles: the person in front of the client, and the model.
const (
	User Role = iota
	Assistant
)

// Annotations are hints about how a client may use a resource.
type Annotations struct {
	Audience     []Role
	Priority     *float64  // from 0.0 (optional) to 1.0 (effectively required)
	LastModified time.Time // the zero time is absent
}

// Icon is a picture that stands for a resource: a data: or https: URI.
type Icon struct {
	Src      string
	MimeType string
	Sizes    []string // "48x48" or "any"
}

// Meta is one entry of MCP's _meta. JSON is its value, as JSON text.
type Meta struct {
	Key  string
	JSON string
}

// Page is one page of the list. [PageOf] makes a page.
type Page struct {
	Resources  []Resource
	NextCursor *string // nil on the last page
}

// Reading is the result of reading a resource: at least one content. [Text], [Blob] and [Bytes] make a reading with
// one content.
type Reading struct {
	Contents []Contents
	FreshFor time.Duration // how long the host may serve this reading from its cache
}

// Contents is one content of a reading. The body is text, unless IsBlob is true.
type Contents struct {
	Reference string // the requested reference, or one below it
	MimeType  string
	Body      []byte
	IsBlob    bool
	Meta      []Meta
}

// Argument is a variable of a template and its value, not percent-encoded and possibly incomplete.
type Argument struct {
	Name  string
	Value string
}

// Suggestions are suggested values of a variable, best first.
type Suggestions struct {
	Values []string
	Total  *uint32 // the total number, if Values does not contain all of them
}
