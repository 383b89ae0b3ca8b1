// Package calls converts between the types that tools and prompts share and the types that wit-bindgen generates.
package calls

import (
	"errors"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_call_types"
)

// Call converts the context of a call.
func Call(from generated.Context) *belljar.Call {
	call := &belljar.Call{CanAsk: from.CanAsk, State: from.State.SomeOr("")}
	for _, answer := range from.Answers {
		to := belljar.Answer{Key: answer.Key, Action: belljar.Action(answer.Action), Content: answer.Content.SomeOr("")}
		call.Answers = append(call.Answers, to)
	}
	return call
}

// Ask returns the questions of an error, if it has some.
func Ask(err error) (generated.Ask, bool) {
	var ask belljar.Ask
	if !errors.As(err, &ask) {
		return generated.Ask{}, false
	}
	questions := make([]generated.Question, 0, len(ask.Questions))
	for _, from := range ask.Questions {
		to := generated.Question{Key: glue.String(from.Key), Message: glue.String(from.Message), Form: glue.String(from.Form)}
		questions = append(questions, to)
	}
	return generated.Ask{Questions: questions, State: glue.Optional(ask.State)}, true
}

// Block converts one piece of content.
func Block(from belljar.Block) (generated.Block, error) {
	body := generated.MakeBlockBodyText(glue.String(from.Text))
	switch {
	case from.Image != nil:
		body = generated.MakeBlockBodyImage(media(from.Image))
	case from.Audio != nil:
		body = generated.MakeBlockBodyAudio(media(from.Audio))
	case from.Link != nil:
		body = generated.MakeBlockBodyLink(link(from.Link))
	case from.Embedded != nil:
		contents, err := glue.Contents(*from.Embedded)
		if err != nil {
			return generated.Block{}, err
		}
		body = generated.MakeBlockBodyEmbedded(contents)
	}
	return generated.Block{Body: body, Annotations: glue.Annotations(from.Annotations)}, nil
}

func media(from *belljar.Media) generated.Media {
	return generated.Media{MimeType: glue.String(from.MimeType), Data: from.Data}
}

func link(from *belljar.Resource) generated.Link {
	return generated.Link{
		Reference:   glue.String(from.Reference),
		Name:        glue.OrElse(from.Name, from.Reference),
		Title:       glue.Optional(from.Title),
		Description: glue.Optional(from.Description),
		MimeType:    glue.Optional(from.MimeType),
		Size:        glue.Size(from.Size),
	}
}
