package main

import (
	"errors"
	"strings"
	"testing"

	"my-provider/belljar"
)

var provider = MyProvider{Directory: "data"}

func TestListsInPages(t *testing.T) {
	first, err := provider.List(nil)
	if err != nil || len(first.Resources) != 10 || first.Resources[0].Reference != "hello.txt" {
		t.Fatal(first, err)
	}
	second, err := provider.List(first.NextCursor)
	if err != nil || len(second.Resources) != 5 || second.NextCursor != nil {
		t.Fatal(second, err)
	}
	if last := second.Resources[4]; last.Reference != "files/notes.md" || last.Size == nil {
		t.Error(last)
	}
	for _, cursor := range []string{"x", "", "-1", "010", "999"} {
		_, err := provider.List(&cursor)
		if !errors.Is(err, belljar.ErrInvalid) || err.Error() != "the cursor \""+cursor+"\" is not one of this provider's" {
			t.Error(cursor, err)
		}
	}
}

func TestReadsWhatItLists(t *testing.T) {
	for _, want := range []struct{ reference, mimeType, begin string }{
		{"hello.txt", "text/plain", "Hello from my-provider.\n"},
		{"dot.png", "image/png", "\x89PNG"},
		{"months/2", "application/json", `{"month":2,"name":"February","days":28}`},
		{"files/notes.md", "text/markdown", "# Notes\n"},
		{"files/", "text/markdown", "# Notes\n"},
	} {
		reading, err := provider.Read(want.reference)
		if err != nil || len(reading.Contents) != 1 {
			t.Fatal(want.reference, err)
		}
		got := reading.Contents[0]
		if got.MimeType != want.mimeType || !strings.HasPrefix(string(got.Body), want.begin) {
			t.Error(want.reference, got)
		}
		if got.IsBlob != (want.reference == "dot.png") {
			t.Error(want.reference, "text or blob")
		}
	}
}

func TestFailuresHaveReasons(t *testing.T) {
	ungranted := MyProvider{Directory: "/not-granted"}
	for _, want := range []struct {
		provider  MyProvider
		reference string
		err       error
	}{
		{provider, "months/13", belljar.ErrNotFound},
		{provider, "months/x", belljar.Invalid(`a month is a number from 1 to 12, not "x"`)},
		{provider, "files/absent.md", belljar.ErrNotFound},
		{provider, "files/a%2Fb", belljar.ErrNotFound},
		{provider, "", belljar.ErrNotFound},
		{ungranted, "files/notes.md", belljar.Denied(`this needs the directory "/not-granted", which was not granted`)},
	} {
		_, err := want.provider.Read(want.reference)
		if err == nil || !errors.Is(belljar.AsError(err), want.err) {
			t.Error(want.reference, err)
		}
	}
}
