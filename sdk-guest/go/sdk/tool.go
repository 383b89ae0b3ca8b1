//go:build !wasip1 || belljar_tools

package belljar

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// ToolProvider is a provider with tools: functions that a model calls. It needs the interface tools.
type ToolProvider interface {
	Provider
	// Tools lists all tools. It must work without any grant.
	Tools() []Tool
}

// Effect is what a tool does to the world. It is a claim: the host compares it with the grants of the mount.
type Effect int

// The effects. A tool that says nothing may change or delete something.
const (
	EffectDestroys Effect = iota // it may change or delete something
	EffectAdds                   // it adds something, and changes or deletes nothing
	EffectReads                  // it changes nothing
)

// View is a page that shows the results of a tool.
type View struct {
	Page    string // the reference of the page, which is HTML
	AppOnly bool   // only the page may call the tool, and not the model
}

// Tool is the definition of a tool, and its function. [NewTool] makes one.
type Tool struct {
	Name        string // letters, digits, "_" and "-"
	Title       string
	Description string // what the tool does and when to use it, for models
	Input       string // the JSON Schema of the arguments; the host checks arguments before the call
	Output      string // the JSON Schema of Result.Structured; "" is none
	Effect      Effect
	Idempotent  bool // a second call with the same arguments changes nothing more
	ClosedWorld bool // it reaches nothing beyond the mount's own data
	View        *View
	Icons       []Icon
	Meta        []Meta
	Call        func(call *Call, arguments string) (Result, error)
}

// Reads, Adds, Idempotent and ClosedWorld are options of [NewTool].
func Reads(tool *Tool) { tool.Effect = EffectReads }

// Adds is an option of [NewTool]: the tool only adds something.
func Adds(tool *Tool) { tool.Effect = EffectAdds }

// Idempotent is an option of [NewTool]: a second call changes nothing more.
func Idempotent(tool *Tool) { tool.Idempotent = true }

// ClosedWorld is an option of [NewTool]: the tool reaches nothing beyond the mount's own data.
func ClosedWorld(tool *Tool) { tool.ClosedWorld = true }

// Result is the result of a tool.
type Result struct {
	Content    []Block // for the model
	Structured string  // for programs: a JSON object that fits the output schema; "" is none
	IsError    bool    // the call failed in a way that the model can correct. An error that is returned is one, too
	Meta       []Meta
}

// NewTool makes a tool of a function.
//
// The arguments are the fields of the struct A, with the names of encoding/json. A field is optional if it is a pointer or
// has omitempty or omitzero. Further tags: description, minimum, maximum, enum (values with commas between them), format.
//
//	type MonthDays struct {
//		Month int  `json:"month" description:"The number of the month" minimum:"1" maximum:"12"`
//		Year  *int `json:"year"`
//	}
//
// The result R is a [Result], a string, or a struct. A struct is the structured result and gives the schema of it; its
// text for the model is its String method, or else the JSON. To ask, return an [Ask] as the error.
func NewTool[A, R any](name, description string, function func(call *Call, arguments A) (R, error), options ...func(*Tool)) Tool {
	tool := Tool{Name: name, Description: description, Input: schemaOf[A]("the arguments of \"" + name + "\"")}
	switch reflect.TypeFor[R]() {
	case reflect.TypeFor[Result](), reflect.TypeFor[string]():
	default:
		tool.Output = schemaOf[R]("the result of \"" + name + "\"")
	}
	tool.Call = func(call *Call, text string) (Result, error) {
		var arguments A
		if err := json.Unmarshal([]byte(text), &arguments); err != nil {
			return Result{}, Invalid("the arguments of \"%s\" do not fit: %v", name, err)
		}
		result, err := function(call, arguments)
		if err != nil {
			return Result{}, err
		}
		return resultOf(result)
	}
	for _, option := range options {
		option(&tool)
	}
	return tool
}

func resultOf(value any) (Result, error) {
	switch value := value.(type) {
	case Result:
		return value, nil
	case string:
		return Result{Content: []Block{{Text: value}}}, nil
	}
	structured, err := toJSON(value)
	text := structured
	if known, ok := value.(fmt.Stringer); ok {
		text = known.String()
	}
	return Result{Content: []Block{{Text: text}}, Structured: structured}, err
}

// CallTool calls a tool by its name, as belljar does. The arguments are a JSON object; a nil call is a client that
// cannot ask.
func CallTool(provider ToolProvider, name, arguments string, call *Call) (Result, error) {
	if call == nil {
		call = &Call{}
	}
	for _, tool := range provider.Tools() {
		if tool.Name == name {
			return tool.Call(call, arguments)
		}
	}
	return Result{}, ErrNotFound
}
