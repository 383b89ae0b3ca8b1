// Package export_belljar_provider_parts implements the generated interface with the provider of belljar.Serve.
package export_belljar_provider_parts

import (
	"math"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/exports/glue"
	generated "my-provider/build/_bindings/imports/belljar_provider_parts"
)

// ReadPart reads a part of a resource.
func ReadPart(reference string, part witTypes.Option[generated.Range], most uint64) witTypes.Result[generated.PartialReading, generated.ProviderError] {
	return glue.Result(func() (generated.PartialReading, error) {
		provider, err := partProvider()
		if err != nil {
			return generated.PartialReading{}, err
		}
		reading, err := provider.ReadPart(reference, asked(part), position(most))
		if err != nil {
			return generated.PartialReading{}, err
		}
		contents, err := glue.AllContents(reading.Contents)
		if err != nil {
			return generated.PartialReading{}, err
		}
		return generated.PartialReading{
			Contents: contents,
			FreshFor: glue.FreshFor(reading.FreshFor),
			Extent:   extent(reading.Extent),
		}, nil
	})
}

// ListBelow lists a page of the resources below a reference.
func ListBelow(reference string, cursor witTypes.Option[string]) witTypes.Result[generated.BelowPage, generated.ProviderError] {
	return glue.Result(func() (generated.BelowPage, error) {
		provider, err := partProvider()
		if err != nil {
			return generated.BelowPage{}, err
		}
		page, err := provider.ListBelow(reference, glue.Cursor(cursor))
		if err != nil {
			return generated.BelowPage{}, err
		}
		return generated.BelowPage{Resources: glue.Resources(page.Resources), NextCursor: glue.NextCursor(page.NextCursor)}, nil
	})
}

// asked converts the range of a caller.
func asked(from witTypes.Option[generated.Range]) *belljar.Range {
	if from.IsNone() {
		return nil
	}
	given := from.Some()
	to := belljar.Range{Unit: belljar.Unit(given.Unit)}
	if given.Positions.Tag() == generated.Positions_Last {
		to.Last = new(position(given.Positions.Last()))
		return &to
	}
	span := given.Positions.Span()
	to.Start = position(span.Start)
	if span.End.IsSome() {
		to.End = new(position(span.End.Some()))
	}
	return &to
}

// position converts a position. No resource has more than 2^63 of them.
func position(from uint64) int64 {
	return int64(min(from, math.MaxInt64))
}

func extent(from *belljar.Extent) witTypes.Option[generated.Extent] {
	if from == nil {
		return witTypes.None[generated.Extent]()
	}
	return witTypes.Some(generated.Extent{
		Unit:  generated.Unit(from.Unit),
		Start: uint64(max(from.Start, 0)),
		End:   uint64(max(from.End, 0)),
		Total: glue.Size(from.Total),
		More:  from.More,
	})
}

func partProvider() (belljar.PartProvider, error) {
	provider, ok := glue.Provider().(belljar.PartProvider)
	if !ok {
		return nil, belljar.Failed("this provider has no methods ReadPart and ListBelow")
	}
	return provider, nil
}
