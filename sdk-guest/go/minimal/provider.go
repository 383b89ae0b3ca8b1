package main

import (
	"slices"

	"my-provider/belljar"
)

// MyProvider is the provider. Replace its resources with your own.
type MyProvider struct{}

// Describe describes the provider.
func (MyProvider) Describe() belljar.Info {
	return belljar.Info{Title: "my-provider", Version: "0.1.0", Description: "A greeting."}
}

// List lists the resources, a page at a time.
func (MyProvider) List(cursor *string) (belljar.Page, error) {
	all := []belljar.Resource{{Reference: "hello.txt", MimeType: "text/plain"}}
	return belljar.PageOf(slices.Values(all), cursor, 100)
}

// Templates lists the templates.
func (MyProvider) Templates() ([]belljar.Template, error) {
	return nil, nil
}

// Read reads one resource.
func (MyProvider) Read(reference string) (belljar.Reading, error) {
	if reference != "hello.txt" {
		return belljar.Reading{}, belljar.ErrNotFound
	}
	return belljar.Text(reference, "text/plain", "Hello from my-provider.\n"), nil
}

func init() {
	belljar.Serve(MyProvider{})
}

func main() {}
