// Package export_belljar_provider_resource_provider implements the generated interface with the provider of
// belljar.Serve.
package export_belljar_provider_resource_provider

import (
	"math"
	"time"
	"unicode/utf8"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_resource_provider"
	"my-provider/build/_bindings/imports/belljar_provider_types"
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
		var from *string
		if cursor.IsSome() {
			from = new(cursor.Some())
		}
		page, err := glue.Provider().List(from)
		if err != nil {
			return generated.ResourcePage{}, err
		}
		resources := make([]generated.ResourceInfo, 0, len(page.Resources))
		for _, entry := range page.Resources {
			size := witTypes.None[uint64]()
			if entry.Size != nil && *entry.Size >= 0 {
				size = witTypes.Some(uint64(*entry.Size))
			}
			resources = append(resources, generated.ResourceInfo{
				Reference:   glue.String(entry.Reference),
				Name:        glue.OrElse(entry.Name, entry.Reference),
				Title:       glue.Optional(entry.Title),
				Description: glue.Optional(entry.Description),
				MimeType:    glue.Optional(entry.MimeType),
				Size:        size,
				Annotations: glue.Annotations(entry.Annotations),
				Icons:       glue.Icons(entry.Icons),
				Meta:        glue.Meta(entry.Meta),
			})
		}
		next := witTypes.None[string]()
		if page.NextCursor != nil {
			next = witTypes.Some(glue.String(*page.NextCursor))
		}
		return generated.ResourcePage{Resources: resources, NextCursor: next}, nil
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
		contents := make([]generated.Contents, 0, len(reading.Contents))
		for _, content := range reading.Contents {
			body := belljar_provider_types.MakeBodyBlob(content.Body)
			if !content.IsBlob {
				if !utf8.Valid(content.Body) {
					return generated.Reading{}, belljar.Failed("the text of \"%s\" is not UTF-8", content.Reference)
				}
				body = belljar_provider_types.MakeBodyText(string(content.Body))
			}
			contents = append(contents, generated.Contents{
				Reference: glue.String(content.Reference),
				MimeType:  glue.Optional(content.MimeType),
				Body:      body,
				Meta:      glue.Meta(content.Meta),
			})
		}
		fresh := witTypes.None[uint32]()
		if ms := min(int64(reading.FreshFor/time.Millisecond), math.MaxUint32); ms > 0 {
			fresh = witTypes.Some(uint32(ms))
		}
		return generated.Reading{Contents: contents, FreshFor: fresh}, nil
	})
}
