//go:build belljar_progress

package glue

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"my-provider/belljar"
	"my-provider/build/_bindings/imports/belljar_provider_progress"
)

func init() {
	belljar.OnReport(func(done, total float64, note string) {
		whole := witTypes.None[float64]()
		if total > 0 {
			whole = witTypes.Some(total)
		}
		belljar_provider_progress.Report(done, whole, Optional(note))
	})
}
