// belljar:if tools
package main

import (
	"errors"
	"testing"

	"my-provider/belljar"
)

func TestCountsTheDaysOfAMonth(t *testing.T) {
	for _, want := range []struct{ arguments, text, structured string }{
		{`{"month":2,"year":2024}`, "February 2024 has 29 days.", `{"month":"February","days":29}`},
		{`{"month":2,"year":1900}`, "February 1900 has 28 days.", `{"month":"February","days":28}`},
		{`{"month":2}`, "February has 28 days.", `{"month":"February","days":28}`},
		{`{"month":12,"year":2024}`, "December 2024 has 31 days.", `{"month":"December","days":31}`},
	} {
		result, err := belljar.CallTool(provider, "month_days", want.arguments, nil)
		if err != nil || len(result.Content) != 1 || result.Content[0].Text != want.text || result.Structured != want.structured {
			t.Error(want.arguments, result, err)
		}
	}
}

func TestToolsRefuse(t *testing.T) {
	if _, err := belljar.CallTool(provider, "month_days", `{"month":13}`, nil); !errors.Is(err, belljar.ErrInvalid) {
		t.Error(err)
	}
	if _, err := belljar.CallTool(provider, "absent", `{}`, nil); !errors.Is(err, belljar.ErrNotFound) {
		t.Error(err)
	}
}

func TestDescribesItsTools(t *testing.T) {
	tool := provider.Tools()[0]
	input := `{"type":"object","properties":{"month":{"type":"integer","minimum":1,"maximum":12,"description":"The number of the month"},` +
		`"year":{"type":"integer","description":"The year; without it, February has 28 days"}},"required":["month"]}`
	if tool.Input != input || tool.Effect != belljar.EffectReads || !tool.Idempotent || !tool.ClosedWorld {
		t.Error(tool)
	}
}
// belljar:end
