package belljar

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string `json:"name"`
}

type everything struct {
	inner
	Text     string          `json:"text" description:"A \"text\" & more" enum:"a,b"`
	Number   float64         `json:"number" minimum:"0.5"`
	Count    uint8           `json:"count" maximum:"9" enum:"1,2"`
	Flag     bool            `json:"flag,omitempty"`
	List     []inner         `json:"list"`
	ByName   map[string]int  `json:"by_name"`
	Bytes    []byte          `json:"bytes"`
	When     time.Time       `json:"when"`
	Any      any             `json:"any"`
	Raw      json.RawMessage `json:"raw"`
	Nested   *inner          `json:"nested"`
	Quoted   int             `json:"quoted,string"`
	Plain    int
	Left     int `json:"-"`
	unlisted int
}

func TestASchemaFollowsTheStruct(t *testing.T) {
	want := `{"type":"object","properties":{"name":{"type":"string"},` +
		`"text":{"type":"string","enum":["a","b"],"description":"A \"text\" & more"},` +
		`"number":{"type":"number","minimum":0.5},"count":{"type":"integer","minimum":0,"maximum":9,"enum":[1,2]},` +
		`"flag":{"type":"boolean"},"list":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},` +
		`"by_name":{"type":"object","additionalProperties":{"type":"integer"}},"bytes":{"type":"string","contentEncoding":"base64"},` +
		`"when":{"type":"string","format":"date-time"},"any":{},"raw":{},` +
		`"nested":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"quoted":{"type":"string"},"Plain":{"type":"integer"}},` +
		`"required":["name","text","number","count","list","by_name","bytes","when","any","raw","quoted","Plain"]}`
	if got := schemaOf[everything]("a test"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := schemaOf[struct{}]("a test"); got != `{"type":"object","properties":{}}` {
		t.Error(got)
	}
}

type endless struct {
	More []endless `json:"more"`
}

func TestAWrongDefinitionIsNamed(t *testing.T) {
	for _, want := range []struct {
		define func()
		text   string
	}{
		{func() { schemaOf[int]("the arguments of \"a\"") }, `belljar: the arguments of "a" are of the type int: use a struct`},
		{func() { schemaOf[endless]("e") }, "is too deep"},
		{func() { schemaOf[struct{ C chan int }]("e") }, "a value of the type chan int is not JSON"},
		{func() {
			schemaOf[struct {
				N int `minimum:"x"`
			}]("e")
		}, `the minimum "x" of "N" is not a number`},
		{func() {
			NewPrompt("p", "", func(*Call, struct{ N int }) (Messages, error) { return Messages{}, nil })
		}, `the argument "N" of the prompt "p" is no string`},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want.text) {
					t.Errorf("got %q, want %q", text, want.text)
				}
			}()
			want.define()
		}()
	}
}

type provider struct{ tools []Tool }

func (p provider) Describe() Info                         { return Info{} }
func (p provider) List(*string) (Page, error)             { return Page{}, nil }
func (p provider) Templates() ([]Template, error)         { return nil, nil }
func (p provider) Read(reference string) (Reading, error) { return Reading{}, ErrNotFound }
func (p provider) Tools() []Tool                          { return p.tools }

func TestAToolAsksAndIsAnswered(t *testing.T) {
	type form struct {
		Size string `json:"size" enum:"S,L"`
	}
	order := func(call *Call, _ struct{}) (string, error) {
		answer := call.Answer("size")
		if answer == nil {
			return "", Ask{Questions: []Question{NewQuestion[form]("size", "Which size?")}, State: "1"}
		}
		var filled form
		if err := answer.Into(&filled); err != nil {
			return "", err
		}
		return filled.Size + call.State, nil
	}
	p := provider{[]Tool{NewTool("order", "", order)}}
	_, err := CallTool(p, "order", "{}", nil)
	var ask Ask
	if !errors.As(err, &ask) || ask.State != "1" || !strings.Contains(ask.Questions[0].Form, `"enum":["S","L"]`) {
		t.Fatal(err)
	}
	for _, want := range []struct {
		answer Answer
		text   string
		err    error
	}{
		{Answer{Key: "size", Content: `{"size":"L"}`}, "L1", nil},
		{Answer{Key: "size", Action: Declined}, "", Invalid(`the question "size" has no answer`)},
		{Answer{Key: "size", Content: `{"size":3}`}, "", ErrInvalid},
	} {
		result, err := CallTool(p, "order", "{}", &Call{Answers: []Answer{want.answer}, State: "1"})
		if !errors.Is(err, want.err) || want.err == nil && result.Content[0].Text != want.text {
			t.Error(result, err)
		}
	}
	if _, err := CallTool(p, "order", `{"`, nil); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestReportsReachTheirReceiver(t *testing.T) {
	Report(1, 2, "nobody listens")
	var got []float64
	OnReport(func(done, total float64, note string) { got = append(got, done, total) })
	defer OnReport(nil)
	Report(1, 2, "x")
	if !slices.Equal(got, []float64{1, 2}) {
		t.Error(got)
	}
}

func TestSuggestionsIgnoreCase(t *testing.T) {
	if got := StartingWith("mA", "March", "April", "May").Values; !slices.Equal(got, []string{"March", "May"}) {
		t.Error(got)
	}
}

func cut(text string, part *Range, most int64) (string, *Extent, error) {
	reading, err := Cut(Text("a", "text/plain", text), part, most)
	if err != nil {
		return "", nil, err
	}
	return string(reading.Contents[0].Body), reading.Extent, nil
}

func TestPartsAreCutOut(t *testing.T) {
	text := "1\n2\n3\n4"
	for _, want := range []struct {
		text   string
		part   *Range
		most   int64
		got    string
		extent *Extent
	}{
		{text, nil, 7, text, nil},
		{text, nil, 5, "1\n2\n", NewExtent(UnitBytes, 0, 4, 7)},
		{"one two", nil, 5, "one t", NewExtent(UnitBytes, 0, 5, 7)},
		{text, &Range{Unit: UnitLines, Start: 1, End: new(int64(3))}, 9, "2\n3\n", NewExtent(UnitLines, 1, 3, 4)},
		{text, &Range{Unit: UnitLines, Last: new(int64(2))}, 9, "3\n4", NewExtent(UnitLines, 2, 4, 4)},
		{text, &Range{Unit: UnitLines, Start: 9}, 9, "", NewExtent(UnitLines, 4, 4, 4)},
		{text, &Range{Unit: UnitLines}, 4, "1\n2\n", NewExtent(UnitLines, 0, 2, 4)},
		{text, &Range{Last: new(int64(3))}, 9, "3\n4", NewExtent(UnitBytes, 4, 7, 7)},
		{"aé", &Range{Start: 2, End: new(int64(3))}, 9, "é", NewExtent(UnitBytes, 1, 3, 3)},
		{"", &Range{Unit: UnitLines}, 9, "", NewExtent(UnitLines, 0, 0, 0)},
	} {
		got, extent, err := cut(want.text, want.part, want.most)
		if err != nil || got != want.got || !reflect.DeepEqual(extent, want.extent) {
			t.Errorf("%+v: %q %+v %v", want.part, got, extent, err)
		}
	}
}

func TestPartsJoinToTheText(t *testing.T) {
	text := "aé€🔔\nb"
	for most := range int64(11) {
		part, joined := Range{}, ""
		for {
			got, extent, err := cut(text, &part, most+1)
			if err != nil || extent.End <= part.Start {
				t.Fatal(extent, err)
			}
			joined += got
			if part.Start = extent.End; !extent.More {
				break
			}
		}
		if joined != text {
			t.Errorf("%d: %q", most, joined)
		}
	}
}

func TestPartsThatCannotBeGivenAreRefused(t *testing.T) {
	lines := &Range{Unit: UnitLines}
	if _, _, err := cut("12345", lines, 4); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "line 1 has 5 bytes") {
		t.Error(err)
	}
	if _, err := Cut(Blob("a", "", []byte{0, 0x9f}), lines, 4); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "?bytes=") {
		t.Error(err)
	}
	two := Reading{Contents: []Contents{{Reference: "a"}, {Reference: "b"}}}
	if whole, err := Cut(two, nil, 0); err != nil || whole.Extent != nil || len(whole.Contents) != 2 {
		t.Error(whole, err)
	}
	if _, err := Cut(two, lines, 4); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}
