// belljar:if prompts
package main

import (
	"fmt"

	"my-provider/belljar"
)

// Prompts lists the prompts.
func (p MyProvider) Prompts() []belljar.Prompt {
	return []belljar.Prompt{
		belljar.NewPrompt("plan_month", "A plan for a month.", planMonth, belljar.Completing(completeMonth)),
	}
}

// PlanMonth are the arguments of plan_month.
type PlanMonth struct {
	Month string `json:"month" description:"The name of the month"`
	Goal  string `json:"goal,omitempty"`
}

func planMonth(_ *belljar.Call, args PlanMonth) (belljar.Messages, error) {
	for _, month := range months {
		if month.name == args.Month {
			text := fmt.Sprintf("Make a plan for %s, which has %d days.", month.name, month.days)
			if args.Goal != "" {
				text += fmt.Sprintf(" My goal: %s.", args.Goal)
			}
			return belljar.Messages{
				Description: "A plan for " + month.name,
				Messages:    []belljar.Message{belljar.UserMessage(text)},
			}, nil
		}
	}
	return belljar.Messages{}, belljar.Invalid("a month is one of January to December, not \"%s\"", args.Month)
}

func completeMonth(argument belljar.Argument, _ []belljar.Argument) (belljar.Suggestions, error) {
	if argument.Name != "month" {
		return belljar.Suggestions{}, nil
	}
	var names []string
	for _, month := range months {
		names = append(names, month.name)
	}
	return belljar.StartingWith(argument.Value, names...), nil
}
// belljar:end
