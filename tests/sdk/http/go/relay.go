package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"month-shelf/belljar"
)

// Relay reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages.
type Relay struct{ MonthShelf }

// Read reads a resource.
func (Relay) Read(reference string) (belljar.Reading, error) {
	order, path, _ := strings.Cut(reference, "/")
	client := &http.Client{}
	var body io.Reader
	method := http.MethodGet
	switch order {
	case "soon":
		client.Timeout = 100 * time.Millisecond
	case "post":
		method, body = http.MethodPost, strings.NewReader("one two three")
	case "send":
		method, body = http.MethodPost, pieces()
	}
	request, err := http.NewRequest(method, os.Getenv("UPSTREAM")+"/"+path, body)
	if err != nil {
		return belljar.Reading{}, err
	}
	request.Header.Set("X-Own", "mine")
	response, err := client.Do(request)
	if err != nil {
		return belljar.Reading{}, err
	}
	defer response.Body.Close()
	var text strings.Builder
	fmt.Fprintf(&text, "%d ", response.StatusCode)
	if order == "count" {
		length, err := io.Copy(io.Discard, response.Body)
		fmt.Fprint(&text, length)
		return belljar.Text(reference, "text/plain", text.String()), err
	}
	_, err = io.Copy(&text, response.Body)
	return belljar.Text(reference, "text/plain", text.String()), err
}

func pieces() io.Reader {
	return io.MultiReader(strings.NewReader("one "), strings.NewReader("two "), strings.NewReader("three"))
}
