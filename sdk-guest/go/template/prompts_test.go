// belljar:if prompts
package main

import (
	"errors"
	"slices"
	"testing"

	"my-provider/belljar"
)

func TestPlansAMonth(t *testing.T) {
	for _, want := range []struct {
		arguments map[string]string
		text      string
	}{
		{map[string]string{"month": "February", "goal": "rest"}, "Make a plan for February, which has 28 days. My goal: rest."},
		{map[string]string{"month": "February"}, "Make a plan for February, which has 28 days."},
	} {
		plan, err := belljar.GetPrompt(provider, "plan_month", want.arguments, nil)
		if err != nil || plan.Description != "A plan for February" || len(plan.Messages) != 1 {
			t.Fatal(plan, err)
		}
		if message := plan.Messages[0]; message.Role != belljar.User || message.Block.Text != want.text {
			t.Error(message)
		}
	}
	_, err := belljar.GetPrompt(provider, "plan_month", map[string]string{"month": "X"}, nil)
	if !errors.Is(err, belljar.Invalid(`a month is one of January to December, not "X"`)) {
		t.Error(err)
	}
}

func TestSuggestsMonths(t *testing.T) {
	for _, want := range []struct {
		argument belljar.Argument
		values   []string
	}{
		{belljar.Argument{Name: "month", Value: "Ma"}, []string{"March", "May"}},
		{belljar.Argument{Name: "goal", Value: "Ma"}, nil},
	} {
		found, err := belljar.CompletePrompt(provider, "plan_month", want.argument, nil)
		if err != nil || !slices.Equal(found.Values, want.values) {
			t.Error(want.argument, found, err)
		}
	}
}
// belljar:end
