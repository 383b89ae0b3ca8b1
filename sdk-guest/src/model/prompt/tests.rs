//! Tests of prompts and skills, without a host.

use super::*;
use crate::{Ask, Block, Contents, Page, Prompts, Provider, Question, Reading, Role, Skill, SkillPage, Skills};

struct Letters;

impl Letters {
    fn thank(&self, arguments: &Arguments) -> Result<Message> {
        Ok(Message::user(format!("Thank {}.", arguments.require("name")?)))
    }

    fn quote(&self, arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>> {
        let Some(state) = context.state.as_deref() else {
            let question = Question::new("tone", "Which tone?", "{}");
            return Ok(Ask::new([question]).state(arguments.get("name").unwrap_or("nobody")).into());
        };
        let messages =
            [Message::user(Contents::text("letter", state)), Message::assistant(Block::image("image/png", *b"x"))];
        Ok(PromptResult::new(messages).description("A quotation").into())
    }
}

impl Provider for Letters {
    fn open() -> Result<Self> {
        Ok(Letters)
    }

    fn read(&self, _reference: &str) -> Result<Reading> {
        Err(Error::NotFound)
    }

    fn list_resources(&self, _cursor: Option<&str>) -> Result<Page> {
        Ok(Page::default())
    }
}

impl Prompts for Letters {
    fn prompts() -> PromptSet<Self> {
        let name = || PromptArgument::required("name").description("Who gets the letter");
        PromptSet::new()
            .prompt(Prompt::new("thank", "Thanks.").argument(name()), Self::thank)
            .prompt(Prompt::new("quote", "Quotes.").argument(PromptArgument::optional("name")), Self::quote)
    }
}

impl Skills for Letters {
    fn list_skills(&self, cursor: Option<&str>) -> Result<SkillPage> {
        Ok(match cursor {
            None => SkillPage::new([Skill::new("a").file("SKILL.md")]).next_cursor("2"),
            Some(_) => SkillPage::new([Skill::new("b").file("SKILL.md").file("more/one.md")]),
        })
    }
}

fn get(name: &str, arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>> {
    Letters::prompts().get(&Letters, name, arguments, context)
}

#[test]
fn prompts_are_listed_with_their_arguments() {
    let all = Letters::prompts().list();
    let [thank, quote] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((thank.name.as_str(), thank.description.as_str()), ("thank", "Thanks."));
    let required = |prompt: &Prompt| prompt.arguments.iter().map(|argument| argument.required).collect::<Vec<_>>();
    assert_eq!((required(thank), required(quote)), (vec![true], vec![false]));
}

#[test]
fn messages_have_the_arguments() {
    let ada = Arguments::from([("name", "Ada")]);
    let result = get("thank", &ada, &Context::default()).unwrap().done().unwrap();
    assert_eq!(result, Message::user("Thank Ada.").into());
    let missing = get("thank", &Arguments::default(), &Context::default());
    assert_eq!(missing, Err(Error::invalid("the argument \"name\" is missing")));
    assert_eq!(get("insult", &ada, &Context::default()), Err(Error::NotFound));
}

#[test]
fn a_prompt_asks_and_goes_on_with_its_state() {
    let ada = Arguments::from([("name", "Ada")]);
    let ask = get("quote", &ada, &Context::asking()).unwrap().ask().unwrap();
    assert_eq!(ask.state.as_deref(), Some("Ada"));
    let context = Context::asking().state(ask.state.unwrap());
    let result = get("quote", &ada, &context).unwrap().done().unwrap();
    assert_eq!(result.description.as_deref(), Some("A quotation"));
    assert_eq!(result.messages.iter().map(|message| message.role).collect::<Vec<_>>(), [Role::User, Role::Assistant]);
}

#[test]
fn nothing_is_suggested_by_default() {
    let suggestions = Letters.complete_prompt("thank", &Argument::new("name", "A"), &[]).unwrap();
    assert_eq!(suggestions.values, [""; 0]);
}

#[test]
fn a_skill_is_found_on_any_page() {
    let files = ["b/SKILL.md".to_owned(), "b/more/one.md".to_owned()];
    assert_eq!(Letters.get_skill("b").map(|skill| skill.files), Ok(files.to_vec()));
    assert_eq!(Letters.get_skill("c"), Err(Error::NotFound));
}
