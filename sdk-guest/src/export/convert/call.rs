//! The types that tools and prompts share.

use super::super::prompts::belljar::provider::call_types as wit;
use super::into_all;
use crate::model::Argument;
use crate::{Action, Answer, Ask, Block, BlockBody, Context, Link, Media, Message, Question, Suggestions};

impl From<Block> for wit::Block {
    fn from(block: Block) -> Self {
        let Block { body, annotations } = block;
        let body = match body {
            BlockBody::Text(text) => wit::BlockBody::Text(text),
            BlockBody::Image(media) => wit::BlockBody::Image(media.into()),
            BlockBody::Audio(media) => wit::BlockBody::Audio(media.into()),
            BlockBody::Link(link) => wit::BlockBody::Link(link.into()),
            BlockBody::Embedded(contents) => wit::BlockBody::Embedded(contents.into()),
        };
        wit::Block { body, annotations: annotations.map(Into::into) }
    }
}

impl From<Media> for wit::Media {
    fn from(media: Media) -> Self {
        let Media { mime_type, data } = media;
        wit::Media { mime_type, data }
    }
}

impl From<Link> for wit::Link {
    fn from(link: Link) -> Self {
        let Link { reference, name, title, description, mime_type, size } = link;
        wit::Link { reference, name, title, description, mime_type, size }
    }
}

impl From<Message> for wit::Message {
    fn from(message: Message) -> Self {
        let Message { role, block } = message;
        wit::Message { role: role.into(), block: block.into() }
    }
}

impl From<Ask> for wit::Ask {
    fn from(ask: Ask) -> Self {
        let Ask { questions, state } = ask;
        wit::Ask { questions: into_all(questions), state }
    }
}

impl From<Question> for wit::Question {
    fn from(question: Question) -> Self {
        let Question { key, message, form } = question;
        wit::Question { key, message, form }
    }
}

impl From<wit::Context> for Context {
    fn from(context: wit::Context) -> Self {
        let wit::Context { can_ask, answers, state } = context;
        Context { can_ask, answers: into_all(answers), state }
    }
}

impl From<wit::Answer> for Answer {
    fn from(answer: wit::Answer) -> Self {
        let wit::Answer { key, action, content } = answer;
        let action = match action {
            wit::Action::Accept => Action::Accept,
            wit::Action::Decline => Action::Decline,
            wit::Action::Cancel => Action::Cancel,
        };
        Answer { key, action, content }
    }
}

impl From<wit::Argument> for Argument {
    fn from(argument: wit::Argument) -> Self {
        let wit::Argument { name, value } = argument;
        Argument { name, value }
    }
}

impl From<Suggestions> for wit::Suggestions {
    fn from(suggestions: Suggestions) -> Self {
        let Suggestions { values, total } = suggestions;
        wit::Suggestions { values, total }
    }
}
