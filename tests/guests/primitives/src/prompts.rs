//! The prompts.

use belljar_guest::{
    Argument, Arguments, Block, Contents, Context, Message, Outcome, Prompt, PromptArgument, PromptResult, PromptSet,
    Prompts, Question, Result, Suggestions,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::questions::ask;
use crate::{PIXEL, Primitives};

/// The values of `arg1` that the suite gives as an example.
const VALUES: [&str; 4] = ["paris", "park", "party", "test"];

#[derive(Deserialize, JsonSchema)]
struct UserContext {
    context: String,
}

impl Prompts for Primitives {
    fn prompts() -> PromptSet<Self> {
        let with_arguments = Prompt::new("test_prompt_with_arguments", "A prompt with two arguments.")
            .argument(PromptArgument::required("arg1").description("The first argument"))
            .argument(PromptArgument::required("arg2").description("The second argument"));
        let with_resource = Prompt::new("test_prompt_with_embedded_resource", "A prompt with a resource.")
            .argument(PromptArgument::required("resourceUri").description("The URI of the resource to embed"));
        PromptSet::new()
            .prompt(Prompt::new("test_simple_prompt", "A prompt without arguments."), Self::simple)
            .prompt(with_arguments, Self::with_arguments)
            .prompt(with_resource, Self::with_resource)
            .prompt(Prompt::new("test_prompt_with_image", "A prompt with a picture."), Self::with_image)
            .prompt(Prompt::new("test_input_required_result_prompt", "A prompt that asks."), Self::with_question)
    }

    fn complete_prompt(&self, prompt: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        match (prompt, argument.name.as_str()) {
            ("test_prompt_with_arguments", "arg1") => Ok(Suggestions::starting_with(&argument.value, VALUES)),
            _ => Ok(Suggestions::default()),
        }
    }
}

impl Primitives {
    fn simple(&self, _arguments: &Arguments) -> Result<Message> {
        Ok(Message::user("This is a simple prompt for testing."))
    }

    fn with_arguments(&self, arguments: &Arguments) -> Result<Message> {
        let (arg1, arg2) = (arguments.require("arg1")?, arguments.require("arg2")?);
        Ok(Message::user(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")))
    }

    fn with_resource(&self, arguments: &Arguments) -> Result<PromptResult> {
        let uri = arguments.require("resourceUri")?;
        // A provider names resources without the base of its mount, which is `test://` in the suite.
        let reference = uri.strip_prefix("test://").unwrap_or(uri);
        let resource = Contents::text(reference, "Embedded resource content for testing.").mime_type("text/plain");
        let request = Message::user("Please process the embedded resource above.");
        Ok(PromptResult::new([Message::user(resource), request]))
    }

    fn with_image(&self, _arguments: &Arguments) -> Result<PromptResult> {
        let request = Message::user("Please analyze the image above.");
        Ok(PromptResult::new([Message::user(Block::image("image/png", PIXEL)), request]))
    }

    fn with_question(&self, _arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>> {
        match context.accepted::<UserContext>("user_context")? {
            Some(UserContext { context }) => Ok(Message::user(format!("Consider this context: {context}")).into()),
            None => {
                let question = Question::of::<UserContext>("user_context", "What context should the prompt use?");
                ask(context, question.into())
            }
        }
    }
}
