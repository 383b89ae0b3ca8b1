//go:build !wasip1 || belljar_tools || belljar_prompts

package belljar

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Call is what a call of a tool or of a prompt knows of its client. The zero value is a client that cannot ask.
type Call struct {
	CanAsk  bool     // the client can ask a person
	Answers []Answer // the answers to the questions of an earlier call
	State   string   // the state of that call: see [Ask]
}

// Answer is the answer to a question, or nil if it was not asked yet.
func (c *Call) Answer(key string) *Answer {
	for i := range c.Answers {
		if c.Answers[i].Key == key {
			return &c.Answers[i]
		}
	}
	return nil
}

// Action is what the person did with a question.
type Action int

// The actions: the person filled the form in, said no, or closed the question.
const (
	Accepted Action = iota
	Declined
	Cancelled
)

// Answer is the answer to a question.
type Answer struct {
	Key     string
	Action  Action
	Content string // the filled form: a JSON object, if the action is Accepted
}

// Into decodes the filled form into a struct. It fails as invalid if the person did not fill it in.
func (a *Answer) Into(form any) error {
	if a.Action != Accepted {
		return Invalid("the question \"%s\" has no answer", a.Key)
	}
	if err := json.Unmarshal([]byte(a.Content), form); err != nil {
		return Invalid("the answer to \"%s\" does not fit its form: %v", a.Key, err)
	}
	return nil
}

// Question is a question for the person in front of the client. [NewQuestion] makes one. It must not ask for secrets.
type Question struct {
	Key     string // letters, digits, "_" and "-"; unique in its Ask
	Message string
	Form    string // a JSON Schema: a flat object
}

// NewQuestion is a question whose form has the fields of the struct F. See [NewTool] for the tags.
func NewQuestion[F any](key, message string) Question {
	return Question{Key: key, Message: message, Form: schemaOf[F]("a form")}
}

// Ask asks a person: a tool or a prompt returns it as its error. The answers come to a new instance, with the same
// arguments. Do nothing before that cannot be done twice, and check [Call.CanAsk].
type Ask struct {
	Questions []Question // one to eight
	State     string     // what the next call must know; no client can read or change it. "" is none
}

// Error says that the call needs an answer.
func (Ask) Error() string {
	return "this needs the answer of a person"
}

// Block is one piece of content: the field that is set, or else Text.
type Block struct {
	Text        string
	Image       *Media
	Audio       *Media
	Link        *Resource // a resource of this mount; of its fields, only those from Reference to Size are used
	Embedded    *Contents // a resource of this mount, with its contents
	Annotations *Annotations
}

// Media is a picture or a sound.
type Media struct {
	MimeType string
	Data     []byte // the bytes, not encoded
}

// toJSON encodes a value without escapes for HTML.
func toJSON(value any) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", Failed("a result is not JSON: %v", err)
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// misuse ends the call as failed: the definition of a tool or a prompt is wrong.
func misuse(format string, a ...any) {
	panic("belljar: " + fmt.Sprintf(format, a...))
}
