// Package export_belljar_provider_tool_provider implements the generated interface with the provider of belljar.Serve.
package export_belljar_provider_tool_provider

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/calls"
	"my-provider/build/_bindings/exports/glue"
	"my-provider/build/_bindings/imports/belljar_provider_call_types"
	generated "my-provider/build/_bindings/imports/belljar_provider_tool_provider"
)

// ListTools lists the tools.
func ListTools() witTypes.Result[[]generated.ToolInfo, generated.ProviderError] {
	return glue.Result(func() ([]generated.ToolInfo, error) {
		provider, err := toolProvider()
		if err != nil {
			return nil, err
		}
		tools := provider.Tools()
		list := make([]generated.ToolInfo, 0, len(tools))
		for _, tool := range tools {
			view := witTypes.None[generated.View]()
			if tool.View != nil {
				view = witTypes.Some(generated.View{Page: glue.String(tool.View.Page), AppOnly: tool.View.AppOnly})
			}
			list = append(list, generated.ToolInfo{
				Name:        glue.String(tool.Name),
				Title:       glue.Optional(tool.Title),
				Description: glue.String(tool.Description),
				Input:       glue.String(tool.Input),
				Output:      glue.Optional(tool.Output),
				Effect:      effect(tool.Effect),
				Idempotent:  tool.Idempotent,
				OpenWorld:   !tool.ClosedWorld,
				View:        view,
				Icons:       glue.Icons(tool.Icons),
				Meta:        glue.Meta(tool.Meta),
			})
		}
		return list, nil
	})
}

// Call calls a tool.
func Call(name, arguments string, context belljar_provider_call_types.Context) witTypes.Result[generated.Outcome, generated.ProviderError] {
	return glue.Result(func() (generated.Outcome, error) {
		provider, err := toolProvider()
		if err != nil {
			return generated.Outcome{}, err
		}
		result, err := belljar.CallTool(provider, name, arguments, calls.Call(context))
		if ask, ok := calls.Ask(err); ok {
			return generated.MakeOutcomeAsk(ask), nil
		}
		if err != nil {
			return generated.Outcome{}, err
		}
		content := make([]belljar_provider_call_types.Block, 0, len(result.Content))
		for _, from := range result.Content {
			block, err := calls.Block(from)
			if err != nil {
				return generated.Outcome{}, err
			}
			content = append(content, block)
		}
		return generated.MakeOutcomeDone(generated.ToolResult{
			Content:    content,
			Structured: glue.Optional(result.Structured),
			IsError:    result.IsError,
			Meta:       glue.Meta(result.Meta),
		}), nil
	})
}

func toolProvider() (belljar.ToolProvider, error) {
	provider, ok := glue.Provider().(belljar.ToolProvider)
	if !ok {
		return nil, belljar.Failed("this provider has no method Tools")
	}
	return provider, nil
}

func effect(from belljar.Effect) generated.Effect {
	switch from {
	case belljar.EffectReads:
		return generated.Effect_Reads
	case belljar.EffectAdds:
		return generated.Effect_Adds
	default:
		return generated.Effect_Destroys
	}
}
