// Package export_belljar_provider_revisions implements the generated interface. It calls the provider that was
// passed to belljar.Serve.
package export_belljar_provider_revisions

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	"my-provider/build/_bindings/imports/belljar_provider_types"
)

type result = witTypes.Result[string, belljar_provider_types.ProviderError]

// CatalogRevision returns the revision of the list of resources.
func CatalogRevision() result {
	return revision(belljar.Reviser.CatalogRevision)
}

// ResourceRevisions returns one revision for each reference, in order.
func ResourceRevisions(references []string) []result {
	results := make([]result, 0, len(references))
	for _, reference := range references {
		results = append(results, revision(func(reviser belljar.Reviser) (string, error) {
			return reviser.ResourceRevision(reference)
		}))
	}
	return results
}

// revision calls a method of the provider, if the provider has it.
func revision(method func(belljar.Reviser) (string, error)) result {
	return glue.Result(func() (string, error) {
		reviser, ok := glue.Provider().(belljar.Reviser)
		if !ok {
			return "", belljar.Failed("this provider has no methods CatalogRevision and ResourceRevision")
		}
		revision, err := method(reviser)
		return glue.String(revision), err
	})
}
