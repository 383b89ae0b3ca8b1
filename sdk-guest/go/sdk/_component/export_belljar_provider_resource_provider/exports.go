// Package export_belljar_provider_resource_provider implements the generated interface with the provider of
// belljar.Serve.
package export_belljar_provider_resource_provider

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_resource_provider"
)

// Describe describes the provider.
func Describe() generated.ProviderInfo {
	info := glue.Provider().Describe()
	return generated.ProviderInfo{
		Title:       glue.Optional(info.Title),
		Version:     glue.Optional(info.Version),
		Description: glue.Optional(info.Description),
	}
}

// ListResources lists a page.
func ListResources(cursor witTypes.Option[string]) witTypes.Result[generated.ResourcePage, generated.ProviderError] {
	return glue.Result(func() (generated.ResourcePage, error) {
		page, err := glue.Provider().List(glue.Cursor(cursor))
		if err != nil {
			return generated.ResourcePage{}, err
		}
		return generated.ResourcePage{Resources: glue.Resources(page.Resources), NextCursor: glue.NextCursor(page.NextCursor)}, nil
	})
}

// ListTemplates lists the templates.
func ListTemplates() witTypes.Result[[]generated.TemplateInfo, generated.ProviderError] {
	return glue.Result(func() ([]generated.TemplateInfo, error) {
		templates, err := glue.Provider().Templates()
		if err != nil {
			return nil, err
		}
		list := make([]generated.TemplateInfo, 0, len(templates))
		for _, entry := range templates {
			list = append(list, generated.TemplateInfo{
				Template:    glue.String(entry.Template),
				Name:        glue.OrElse(entry.Name, entry.Template),
				Title:       glue.Optional(entry.Title),
				Description: glue.Optional(entry.Description),
				MimeType:    glue.Optional(entry.MimeType),
				Annotations: glue.Annotations(entry.Annotations),
				Icons:       glue.Icons(entry.Icons),
				Meta:        glue.Meta(entry.Meta),
			})
		}
		return list, nil
	})
}

// Read reads a resource.
func Read(reference string) witTypes.Result[generated.Reading, generated.ProviderError] {
	return glue.Result(func() (generated.Reading, error) {
		reading, err := glue.Provider().Read(reference)
		if err != nil {
			return generated.Reading{}, err
		}
		contents, err := glue.AllContents(reading.Contents)
		if err != nil {
			return generated.Reading{}, err
		}
		return generated.Reading{Contents: contents, FreshFor: glue.FreshFor(reading.FreshFor)}, nil
	})
}
