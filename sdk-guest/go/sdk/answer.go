package belljar

import (
	"iter"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PageOf is the page of at most size entries at a cursor, which is the number of entries before it. The entries must
// be in the same order in each call, and are consumed only as far as needed. A cursor that is not from PageOf is invalid.
func PageOf(entries iter.Seq[Resource], cursor *string, size int) (Page, error) {
	var page Page
	skip := 0
	if cursor != nil {
		number, err := strconv.ParseUint(*cursor, 10, 31)
		// PageOf never returns "020" or "+20" as a cursor. Any spelling that it does not write is invalid.
		if err != nil || strconv.FormatUint(number, 10) != *cursor {
			return page, notMine(*cursor)
		}
		skip = int(number)
	}
	seen := 0
	for entry := range entries {
		if seen >= skip {
			if len(page.Resources) >= max(size, 1) {
				page.NextCursor = new(strconv.Itoa(seen))
				return page, nil
			}
			page.Resources = append(page.Resources, entry)
		}
		seen++
	}
	if seen < skip {
		return Page{}, notMine(*cursor)
	}
	return page, nil
}

func notMine(cursor string) error {
	// %q would escape characters in Go syntax.
	return Invalid("the cursor \"%s\" is not one of this provider's", cursor)
}

// Text is a reading of one text.
func Text(reference, mimeType, text string) Reading {
	return Reading{Contents: []Contents{{Reference: reference, MimeType: mimeType, Body: []byte(text)}}}
}

// Blob is a reading of bytes that are not text.
func Blob(reference, mimeType string, bytes []byte) Reading {
	return Reading{Contents: []Contents{{Reference: reference, MimeType: mimeType, Body: bytes, IsBlob: true}}}
}

// Bytes is a reading of text when the bytes are UTF-8, and of a blob otherwise.
func Bytes(reference, mimeType string, bytes []byte) Reading {
	body := Contents{Reference: reference, MimeType: mimeType, Body: bytes, IsBlob: !utf8.Valid(bytes)}
	return Reading{Contents: []Contents{body}}
}

// Encode percent-encodes one segment of a reference. A / in it becomes %2F.
func Encode(segment string) string {
	// A segment may contain a colon, but not the first one of a relative reference.
	return strings.ReplaceAll(url.PathEscape(segment), ":", "%3A")
}

// Decode percent-decodes a segment once. Fails as invalid if the decoded bytes are not UTF-8.
func Decode(segment string) (string, error) {
	decoded, err := url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(decoded) {
		return "", Invalid("\"%s\" is not UTF-8 once decoded", segment)
	}
	return decoded, nil
}

// Query is the decoded value of a name in the query of a reference such as "search?q=bell"; false if it is absent.
func Query(reference, name string) (string, bool) {
	_, query, _ := strings.Cut(reference, "?")
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.PathUnescape(key); pair == "" || err != nil || decoded != name {
			continue
		}
		decoded, err := Decode(value)
		return decoded, err == nil
	}
	return "", false
}

// StartingWith suggests the values that start with a text, whatever its case.
func StartingWith(text string, values ...string) Suggestions {
	var suggestions Suggestions
	for _, value := range values {
		if strings.HasPrefix(strings.ToLower(value), strings.ToLower(text)) {
			suggestions.Values = append(suggestions.Values, value)
		}
	}
	return suggestions
}
