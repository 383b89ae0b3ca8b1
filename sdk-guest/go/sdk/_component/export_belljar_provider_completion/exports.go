// Package export_belljar_provider_completion implements the generated interface with the provider of
// belljar.Serve.
package export_belljar_provider_completion

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_completion"
)

// Complete suggests values.
func Complete(template string, argument generated.Argument, resolved []generated.Argument) witTypes.Result[generated.Suggestions, generated.ProviderError] {
	return glue.Result(func() (generated.Suggestions, error) {
		completer, ok := glue.Provider().(belljar.Completer)
		if !ok {
			return generated.Suggestions{}, belljar.Failed("this provider has no method Complete")
		}
		others := make([]belljar.Argument, 0, len(resolved))
		for _, other := range resolved {
			others = append(others, belljar.Argument(other))
		}
		suggestions, err := completer.Complete(template, belljar.Argument(argument), others)
		if err != nil {
			return generated.Suggestions{}, err
		}
		values, total := glue.Suggestions(suggestions)
		return generated.Suggestions{Values: values, Total: total}, nil
	})
}
