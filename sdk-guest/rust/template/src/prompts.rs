// belljar:if prompts
//! The prompts: messages that a person chooses, to begin a conversation.

use belljar_guest::{
    Argument, Arguments, Error, Message, Prompt, PromptArgument, PromptResult, PromptSet, Prompts, Result, Suggestions,
};

use crate::{MONTHS, MyProvider};

impl Prompts for MyProvider {
    fn prompts() -> PromptSet<Self> {
        let plan_month = Prompt::new("plan_month", "A plan for a month.")
            .argument(PromptArgument::required("month").description("The name of the month"))
            .argument(PromptArgument::optional("goal"));
        PromptSet::new().prompt(plan_month, Self::plan_month)
    }

    fn complete_prompt(&self, _prompt: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        match argument.name.as_str() {
            "month" => Ok(Suggestions::starting_with(&argument.value, MONTHS.map(|(name, _)| name))),
            _ => Ok(Suggestions::default()),
        }
    }
}

impl MyProvider {
    fn plan_month(&self, arguments: &Arguments) -> Result<PromptResult> {
        let month = arguments.require("month")?;
        let found = MONTHS.iter().find(|(name, _)| *name == month);
        let (_, days) = found
            .ok_or_else(|| Error::invalid(format_args!("a month is one of January to December, not \"{month}\"")))?;
        let goal = arguments.get("goal").map(|goal| format!(" My goal: {goal}.")).unwrap_or_default();
        let message = Message::user(format!("Make a plan for {month}, which has {days} days.{goal}"));
        Ok(PromptResult::from(message).description(format!("A plan for {month}")))
    }
}
// belljar:end
