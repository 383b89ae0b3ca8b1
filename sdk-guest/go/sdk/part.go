package belljar

import (
	"bytes"
	"unicode/utf8"
)

// PartProvider is a provider of large resources and of directories. It needs the interface parts.
type PartProvider interface {
	Provider
	// ReadPart reads a part of one resource. The host calls it in place of Read: without a range, both must give the same.
	// The range is nil if the caller asks for none: then ReadPart reads the whole resource if it has at most so many bytes,
	// else its first part. A part has at most so many bytes, too, and ends at the end of a line or of a character. If the
	// resource has no lines, or no bytes, ReadPart fails as invalid, and says what it has. [Cut] cuts a part out of a reading.
	ReadPart(reference string, part *Range, most int64) (PartialReading, error)
	// ListBelow lists the resources directly below a reference, a page at a time, as List does; "" is the mount itself. A
	// directory has the media type "inode/directory", and its reference ends with a slash.
	ListBelow(reference string, cursor *string) (Page, error)
}

// Unit is what a range counts.
type Unit int

// The units: bytes, and lines of text. For a table, lines are rows.
const (
	UnitBytes Unit = iota
	UnitLines
)

// Range is the part that the caller asks for. Positions are counted from 0.
type Range struct {
	Unit  Unit
	Start int64
	End   *int64 // the position after the last one; nil: the end of the resource
	Last  *int64 // so many positions counted back from the end, in place of Start and End
}

// Extent is the part that was read.
type Extent struct {
	Unit  Unit
	Start int64
	End   int64  // the position after the last one, where the next part starts
	Total *int64 // the number of positions, if it is known without reading all of the resource
	More  bool   // positions follow after End
}

// PartialReading is the result of reading a part: one content and its extent.
type PartialReading struct {
	Reading
	Extent *Extent // nil: the contents are the whole resource
}

// Within returns the requested positions in a resource of so many. Both are at most the total.
func (r Range) Within(total int64) (start, end int64) {
	if r.Last != nil {
		return total - min(max(*r.Last, 0), total), total
	}
	start, end = min(max(r.Start, 0), total), total
	if r.End != nil {
		end = min(*r.End, total)
	}
	return start, max(start, end)
}

// NewExtent is the positions from start to end of a resource of so many.
func NewExtent(unit Unit, start, end, total int64) *Extent {
	return &Extent{Unit: unit, Start: start, End: end, Total: &total, More: end < total}
}

// Cut cuts the requested part out of a reading that is in memory. For a provider that cannot read a part cheaper than the
// whole: call Read, and then Cut.
func Cut(reading Reading, part *Range, most int64) (PartialReading, error) {
	whole := PartialReading{Reading: reading}
	if len(reading.Contents) != 1 {
		if part != nil {
			return PartialReading{}, Invalid("the resource has %d contents and no parts; read it without a range", len(reading.Contents))
		}
		return whole, nil
	}
	content := reading.Contents[0]
	var extent *Extent
	switch {
	case part == nil && int64(len(content.Body)) <= most:
		return whole, nil
	case part == nil:
		content.Body, extent = cutBytes(content, Range{}, most, true)
	case part.Unit == UnitBytes:
		content.Body, extent = cutBytes(content, *part, most, false)
	case content.IsBlob:
		return PartialReading{}, Invalid(`the resource is not text and has no lines; read it with "?bytes=0-65535"`)
	default:
		var err error
		if content.Body, extent, err = cutLines(content.Body, *part, most); err != nil {
			return PartialReading{}, err
		}
	}
	return PartialReading{Reading{[]Contents{content}, reading.FreshFor}, extent}, nil
}

// cutBytes cuts bytes out. Text is cut between characters, and if atLine is true, after the last whole line, if there is one.
func cutBytes(content Contents, part Range, most int64, atLine bool) ([]byte, *Extent) {
	body := content.Body
	from, to := part.Within(int64(len(body)))
	start, end := int(from), int(from+min(most, to-from))
	if content.IsBlob {
		return body[start:end], NewExtent(UnitBytes, int64(start), int64(end), int64(len(body)))
	}
	wanted := end
	for start > 0 && !isStart(body, start) {
		start--
	}
	for end > 0 && !isStart(body, end) {
		end--
	}
	// A range inside one character gives this character.
	if end <= start && wanted > start {
		for end = wanted; !isStart(body, end); {
			end++
		}
	}
	end = max(start, end)
	if atLine && end < len(body) {
		if line := bytes.LastIndexByte(body[start:end], '\n'); line >= 0 {
			end = start + line + 1
		}
	}
	return body[start:end], NewExtent(UnitBytes, int64(start), int64(end), int64(len(body)))
}

// isStart is true where a character starts, and where the text ends.
func isStart(text []byte, at int) bool {
	return at >= len(text) || utf8.RuneStart(text[at])
}

// cutLines cuts whole lines out, as many as fit.
func cutLines(text []byte, part Range, most int64) ([]byte, *Extent, error) {
	total := int64(bytes.Count(text, []byte("\n")))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		total++
	}
	from, to := part.Within(total)
	begin, line := 0, int64(0)
	for ; line < from; line++ {
		begin = afterLine(text, begin)
	}
	end := begin
	for ; line < to; line++ {
		next := afterLine(text, end)
		if int64(next-begin) > most {
			if line == from {
				return nil, nil, Invalid("line %d has %d bytes; the limit of a read is %d; read it with \"?bytes=0-65535\"", line+1, next-begin, most)
			}
			break
		}
		end = next
	}
	return text[begin:end], NewExtent(UnitLines, from, line, total), nil
}

// afterLine is the place after the line that starts at a place.
func afterLine(text []byte, at int) int {
	if line := bytes.IndexByte(text[at:], '\n'); line >= 0 {
		return at + line + 1
	}
	return len(text)
}
