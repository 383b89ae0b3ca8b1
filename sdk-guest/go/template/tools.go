// belljar:if tools
package main

import (
	"fmt"

	"my-provider/belljar"
)

// Tools lists the tools.
func (p MyProvider) Tools() []belljar.Tool {
	return []belljar.Tool{
		belljar.NewTool("month_days", "How many days a month has.", monthDays, belljar.Reads, belljar.Idempotent, belljar.ClosedWorld),
	}
}

// MonthDays are the arguments of month_days.
type MonthDays struct {
	Month int  `json:"month" description:"The number of the month" minimum:"1" maximum:"12"`
	Year  *int `json:"year" description:"The year; without it, February has 28 days"`
}

// Days is the result of month_days: its fields for programs, and the sentence for the model.
type Days struct {
	Month    string `json:"month"`
	Days     int    `json:"days"`
	sentence string
}

func (d Days) String() string { return d.sentence }

func monthDays(_ *belljar.Call, args MonthDays) (Days, error) {
	if args.Month < 1 || args.Month > len(months) {
		return Days{}, belljar.Invalid("a month is a number from 1 to 12, not \"%d\"", args.Month)
	}
	month := months[args.Month-1]
	name, days := month.name, month.days
	if args.Year != nil {
		name = fmt.Sprintf("%s %d", month.name, *args.Year)
		if args.Month == 2 && isLeap(*args.Year) {
			days = 29
		}
	}
	return Days{month.name, days, fmt.Sprintf("%s has %d days.", name, days)}, nil
}

func isLeap(year int) bool {
	return year%4 == 0 && year%100 != 0 || year%400 == 0
}
// belljar:end
