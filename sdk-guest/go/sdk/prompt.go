//go:build !wasip1 || belljar_prompts

package belljar

import "reflect"

// PromptProvider is a provider with prompts: messages that a person chooses, to begin a conversation. It needs the
// interface prompts.
type PromptProvider interface {
	Provider
	// Prompts lists all prompts. It must work without any grant.
	Prompts() []Prompt
}

// Prompt is the definition of a prompt, and its functions. [NewPrompt] makes one.
type Prompt struct {
	Name        string // letters, digits, "_" and "-"
	Title       string
	Description string // for people
	Arguments   []PromptArgument
	Icons       []Icon
	Meta        []Meta
	Get         func(call *Call, arguments map[string]string) (Messages, error)
	// Complete suggests values for an argument; resolved holds the arguments that already have a value. May be nil.
	Complete func(argument Argument, resolved []Argument) (Suggestions, error)
}

// PromptArgument is an argument of a prompt. Its values are texts.
type PromptArgument struct {
	Name        string
	Title       string
	Description string
	Required    bool
}

// Messages are the messages of a prompt, at least one.
type Messages struct {
	Description string // what these messages are for
	Messages    []Message
}

// Message is one message of a prompt.
type Message struct {
	Role  Role
	Block Block
}

// UserMessage is a message of the person in front of the client.
func UserMessage(text string) Message {
	return Message{User, Block{Text: text}}
}

// AssistantMessage is a message of the model.
func AssistantMessage(text string) Message {
	return Message{Assistant, Block{Text: text}}
}

// NewPrompt makes a prompt of a function. Its arguments are the fields of the struct A, as for [NewTool]; each is a string or a
// pointer to one, and has the tags title and description. To ask, return an [Ask] as the error.
func NewPrompt[A any](name, description string, function func(call *Call, arguments A) (Messages, error), options ...func(*Prompt)) Prompt {
	prompt := Prompt{Name: name, Description: description}
	fields := fieldsOf(reflect.TypeFor[A](), "the arguments of \""+name+"\"")
	for _, field := range fields {
		if field.of.Kind() != reflect.String {
			misuse("the argument \"%s\" of the prompt \"%s\" is no string; make it one", field.name, name)
		}
		title, about := field.tag.Get("title"), field.tag.Get("description")
		prompt.Arguments = append(prompt.Arguments, PromptArgument{field.name, title, about, field.required})
	}
	prompt.Get = func(call *Call, given map[string]string) (Messages, error) {
		var arguments A
		for _, field := range fields {
			if text, ok := given[field.name]; ok {
				target := reflect.ValueOf(&arguments).Elem().FieldByIndex(field.index)
				if target.Kind() == reflect.Pointer {
					target.Set(reflect.New(field.of))
					target = target.Elem()
				}
				target.SetString(text)
			} else if field.required {
				return Messages{}, Invalid("the prompt \"%s\" needs the argument \"%s\"", name, field.name)
			}
		}
		return function(call, arguments)
	}
	for _, option := range options {
		option(&prompt)
	}
	return prompt
}

// Completing is an option of [NewPrompt]: the function that suggests values for its arguments.
func Completing(complete func(argument Argument, resolved []Argument) (Suggestions, error)) func(*Prompt) {
	return func(prompt *Prompt) { prompt.Complete = complete }
}

// GetPrompt makes the messages of a prompt by its name, as belljar does. A nil call is a client that cannot ask.
func GetPrompt(provider PromptProvider, name string, arguments map[string]string, call *Call) (Messages, error) {
	if call == nil {
		call = &Call{}
	}
	for _, prompt := range provider.Prompts() {
		if prompt.Name == name {
			return prompt.Get(call, arguments)
		}
	}
	return Messages{}, ErrNotFound
}

// CompletePrompt suggests values for an argument of a prompt, as belljar does.
func CompletePrompt(provider PromptProvider, name string, argument Argument, resolved []Argument) (Suggestions, error) {
	for _, prompt := range provider.Prompts() {
		if prompt.Name == name {
			if prompt.Complete == nil {
				return Suggestions{}, nil
			}
			return prompt.Complete(argument, resolved)
		}
	}
	return Suggestions{}, ErrNotFound
}
