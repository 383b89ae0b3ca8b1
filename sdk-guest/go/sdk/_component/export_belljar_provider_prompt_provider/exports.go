// Package export_belljar_provider_prompt_provider implements the generated interface with the provider of belljar.Serve.
package export_belljar_provider_prompt_provider

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/calls"
	"my-provider/build/_bindings/exports/glue"
	"my-provider/build/_bindings/imports/belljar_provider_call_types"
	generated "my-provider/build/_bindings/imports/belljar_provider_prompt_provider"
	"my-provider/build/_bindings/imports/belljar_provider_types"
)

// ListPrompts lists the prompts.
func ListPrompts() witTypes.Result[[]generated.PromptInfo, generated.ProviderError] {
	return glue.Result(func() ([]generated.PromptInfo, error) {
		provider, err := promptProvider()
		if err != nil {
			return nil, err
		}
		prompts := provider.Prompts()
		list := make([]generated.PromptInfo, 0, len(prompts))
		for _, prompt := range prompts {
			arguments := make([]generated.PromptArgument, 0, len(prompt.Arguments))
			for _, argument := range prompt.Arguments {
				arguments = append(arguments, generated.PromptArgument{
					Name:        glue.String(argument.Name),
					Title:       glue.Optional(argument.Title),
					Description: glue.Optional(argument.Description),
					Required:    argument.Required,
				})
			}
			list = append(list, generated.PromptInfo{
				Name:        glue.String(prompt.Name),
				Title:       glue.Optional(prompt.Title),
				Description: glue.String(prompt.Description),
				Arguments:   arguments,
				Icons:       glue.Icons(prompt.Icons),
				Meta:        glue.Meta(prompt.Meta),
			})
		}
		return list, nil
	})
}

// Get makes the messages of a prompt.
func Get(name string, arguments []belljar_provider_call_types.Argument, context belljar_provider_call_types.Context) witTypes.Result[generated.Outcome, generated.ProviderError] {
	return glue.Result(func() (generated.Outcome, error) {
		provider, err := promptProvider()
		if err != nil {
			return generated.Outcome{}, err
		}
		given := make(map[string]string, len(arguments))
		for _, argument := range arguments {
			given[argument.Name] = argument.Value
		}
		result, err := belljar.GetPrompt(provider, name, given, calls.Call(context))
		if ask, ok := calls.Ask(err); ok {
			return generated.MakeOutcomeAsk(ask), nil
		}
		if err != nil {
			return generated.Outcome{}, err
		}
		messages := make([]belljar_provider_call_types.Message, 0, len(result.Messages))
		for _, from := range result.Messages {
			block, err := calls.Block(from.Block)
			if err != nil {
				return generated.Outcome{}, err
			}
			role := belljar_provider_types.Role(from.Role)
			messages = append(messages, belljar_provider_call_types.Message{Role: role, Block: block})
		}
		description := glue.Optional(result.Description)
		return generated.MakeOutcomeDone(generated.PromptResult{Description: description, Messages: messages}), nil
	})
}

// Complete suggests values for an argument of a prompt.
func Complete(name string, argument belljar_provider_call_types.Argument, resolved []belljar_provider_call_types.Argument) witTypes.Result[belljar_provider_call_types.Suggestions, generated.ProviderError] {
	return glue.Result(func() (suggestions belljar_provider_call_types.Suggestions, err error) {
		provider, err := promptProvider()
		if err != nil {
			return suggestions, err
		}
		others := make([]belljar.Argument, 0, len(resolved))
		for _, other := range resolved {
			others = append(others, belljar.Argument(other))
		}
		found, err := belljar.CompletePrompt(provider, name, belljar.Argument(argument), others)
		suggestions.Values, suggestions.Total = glue.Suggestions(found)
		return suggestions, err
	})
}

func promptProvider() (belljar.PromptProvider, error) {
	provider, ok := glue.Provider().(belljar.PromptProvider)
	if !ok {
		return nil, belljar.Failed("this provider has no method Prompts")
	}
	return provider, nil
}
