package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"my-provider/belljar"
)

const pageSize = 10

// MyProvider is the provider. Replace its resources with your own.
type MyProvider struct {
	// Directory is the granted directory, by its guest path.
	Directory string
}

var months = [12]struct {
	name string
	days int
}{
	{"January", 31}, {"February", 28}, {"March", 31}, {"April", 30}, {"May", 31}, {"June", 30},
	{"July", 31}, {"August", 31}, {"September", 30}, {"October", 31}, {"November", 30}, {"December", 31},
}

//go:embed dot.png
var dot []byte

// Describe describes the provider.
func (p MyProvider) Describe() belljar.Info {
	return belljar.Info{
		Title:       "my-provider",
		Version:     "0.1.0",
		Description: "A greeting, a picture, the months of the year, and the files of a directory.",
	}
}

// List lists the resources, a page at a time.
func (p MyProvider) List(cursor *string) (belljar.Page, error) {
	return belljar.PageOf(slices.Values(p.entries()), cursor, pageSize)
}

func (p MyProvider) entries() []belljar.Resource {
	list := []belljar.Resource{
		{Reference: "hello.txt", MimeType: "text/plain"},
		{Reference: "dot.png", MimeType: "image/png"},
	}
	for index, month := range months {
		reference := "months/" + strconv.Itoa(index+1)
		list = append(list, belljar.Resource{Reference: reference, Name: month.name, MimeType: "application/json"})
	}
	return append(list, p.files()...)
}

// files is the list of the files in the directory.
func (p MyProvider) files() []belljar.Resource {
	var list []belljar.Resource
	files, _ := os.ReadDir(p.Directory) // sorted by name; empty without the grant
	for _, file := range files {
		if info, err := os.Stat(filepath.Join(p.Directory, file.Name())); err == nil && info.Mode().IsRegular() {
			reference := "files/" + belljar.Encode(file.Name())
			mimeType := typeOf(file.Name())
			list = append(list, belljar.Resource{Reference: reference, Name: file.Name(), MimeType: mimeType, Size: new(info.Size())})
		}
	}
	return list
}

// Templates lists the templates.
func (p MyProvider) Templates() ([]belljar.Template, error) {
	return []belljar.Template{
		{
			Template:    "months/{month}",
			Name:        "month",
			Description: "A month by its number, from 1 to 12: its name and how many days it has",
			MimeType:    "application/json",
		},
		{
			Template:    "files/{name}",
			Name:        "file",
			Description: "A file of the granted directory, by its name; without a name, all files",
		},
	}, nil
}

// Read reads one resource.
func (p MyProvider) Read(reference string) (belljar.Reading, error) {
	if number, ok := strings.CutPrefix(reference, "months/"); ok {
		return readMonth(reference, number)
	}
	if reference == "files/" {
		return p.readAllFiles()
	}
	if name, ok := strings.CutPrefix(reference, "files/"); ok {
		return p.readFile(reference, name)
	}
	switch reference {
	case "hello.txt":
		return belljar.Text(reference, "text/plain", "Hello from my-provider.\n"), nil
	case "dot.png":
		return belljar.Blob(reference, "image/png", dot), nil
	default:
		return belljar.Reading{}, belljar.ErrNotFound
	}
}

func readMonth(reference, text string) (belljar.Reading, error) {
	number, err := strconv.Atoi(text)
	if err != nil {
		return belljar.Reading{}, belljar.Invalid("a month is a number from 1 to 12, not \"%s\"", text)
	}
	if number < 1 || number > len(months) {
		return belljar.Reading{}, belljar.ErrNotFound
	}
	month := months[number-1]
	// The package encoding/json would make the component twice as large.
	json := fmt.Sprintf(`{"month":%d,"name":%q,"days":%d}`, number, month.name, month.days)
	return belljar.Text(reference, "application/json", json), nil
}

// needDirectory fails if the directory was not granted.
func (p MyProvider) needDirectory() error {
	if _, err := os.Stat(p.Directory); err != nil {
		return belljar.Denied("this needs the directory \"%s\", which was not granted", p.Directory)
	}
	return nil
}

// readAllFiles reads all files of the directory, one content each.
func (p MyProvider) readAllFiles() (belljar.Reading, error) {
	var all belljar.Reading
	if err := p.needDirectory(); err != nil {
		return all, err
	}
	for _, file := range p.files() {
		one, err := p.readFile(file.Reference, strings.TrimPrefix(file.Reference, "files/"))
		if err != nil {
			return belljar.Reading{}, err
		}
		all.Contents = append(all.Contents, one.Contents...)
	}
	if len(all.Contents) == 0 {
		return belljar.Reading{}, belljar.ErrNotFound
	}
	return all, nil
}

func (p MyProvider) readFile(reference, segment string) (belljar.Reading, error) {
	name, err := belljar.Decode(segment)
	if err != nil {
		return belljar.Reading{}, err
	}
	if err := p.needDirectory(); err != nil {
		return belljar.Reading{}, err
	}
	path := filepath.Join(p.Directory, name)
	if info, err := os.Stat(path); strings.Contains(name, "/") || err == nil && !info.Mode().IsRegular() {
		return belljar.Reading{}, belljar.ErrNotFound
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		return belljar.Reading{}, err
	}
	mimeType := "application/octet-stream"
	if utf8.Valid(bytes) {
		mimeType = cmp.Or(typeOf(name), "text/plain")
	}
	return belljar.Bytes(reference, mimeType, bytes), nil
}

// typeOf is the media type for the extension of a name, or "".
func typeOf(name string) string {
	return map[string]string{".md": "text/markdown", ".txt": "text/plain"}[filepath.Ext(name)]
}
