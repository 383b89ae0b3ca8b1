// belljar:if tools
//! The tools: functions that a model calls.

use belljar_guest::{Error, Result, Structured, Tool, ToolSet, Tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MONTHS, MyProvider};

/// The arguments of `month_days`. The comments of the fields become the descriptions in its schema.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct MonthDays {
    /// The number of the month
    #[schemars(range(min = 1, max = 12))]
    month: usize,
    /// The year; without it, February has 28 days
    year: Option<i32>,
}

/// The result of `month_days`, for programs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Days {
    month: &'static str,
    days: u32,
}

impl Tools for MyProvider {
    fn tools() -> ToolSet<Self> {
        ToolSet::new().tool(Tool::reading("month_days", "How many days a month has."), Self::month_days)
    }
}

impl MyProvider {
    fn month_days(&self, MonthDays { month, year }: MonthDays) -> Result<Structured<Days>> {
        let found = month.checked_sub(1).and_then(|index| MONTHS.get(index));
        let (name, mut days) =
            *found.ok_or_else(|| Error::invalid(format_args!("a month is a number from 1 to 12, not \"{month}\"")))?;
        if month == 2 && year.is_some_and(is_leap) {
            days = 29;
        }
        let when = year.map(|year| format!(" {year}")).unwrap_or_default();
        Ok(Structured::new(format!("{name}{when} has {days} days."), Days { month: name, days }))
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}
// belljar:end
