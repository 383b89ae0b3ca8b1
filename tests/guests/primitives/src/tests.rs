//! Tests of the tools, prompts and skills against the words of the suites.

use belljar_guest::{Answer, Arguments, Ask, BlockBody, Context, Outcome, PromptResult, Prompts, ToolResult, Tools};
use serde_json::{Value, json};

use super::*;

fn call(name: &str, arguments: &str, context: &Context) -> Result<Outcome<ToolResult>> {
    Primitives::tools().call(&Primitives, name, arguments, context)
}

fn asked(outcome: Outcome<ToolResult>) -> (Ask, Value) {
    let ask = outcome.ask().expect("a question");
    let form = serde_json::from_str(&ask.questions[0].form).expect("JSON");
    (ask, form)
}

fn text(outcome: Outcome<ToolResult>) -> String {
    match &outcome.done().expect("a result").content[0].body {
        BlockBody::Text(text) => text.clone(),
        other => panic!("not text: {other:?}"),
    }
}

fn get(name: &str, arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>> {
    Primitives::prompts().get(&Primitives, name, arguments, context)
}

#[test]
fn every_listed_resource_and_skill_file_can_be_read() {
    let listed: Vec<String> =
        Primitives.list_resources(None).unwrap().resources.into_iter().map(|entry| entry.reference).collect();
    assert!(listed.is_sorted(), "{listed:?}");
    let skill = Primitives.get_skill(SKILL).unwrap();
    for reference in listed.iter().chain(&skill.files) {
        assert!(Primitives.read(reference).is_ok(), "{reference}");
    }
    assert!(skill.files.iter().all(|file| listed.contains(file)), "{:?}", skill.files);
    assert_eq!(Primitives.read("skills/greeting"), Err(Error::NotFound));
}

#[test]
fn the_list_has_the_names_of_the_suites() {
    let tools = Primitives::tools().list();
    let schema = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").and_then(|tool| tool.input.clone());
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    for keyword in ["$schema", "$defs", "allOf", "if", "then", "else", "additionalProperties"] {
        assert!(schema.get(keyword).is_some(), "{keyword}");
    }
    let mut names = tools.iter().map(|tool| tool.name.as_str());
    assert!(names.all(|name| name.len() <= 48), "the interface allows 48 characters");
    assert_eq!((tools.len(), Primitives::prompts().list().len()), (23, 5));
}

#[test]
fn results_have_the_kinds_that_the_suites_want() {
    let none = Context::default();
    let content = |name: &str| call(name, "{}", &none).unwrap().done().unwrap().content;
    assert!(
        matches!(&content("test_image_content")[0].body, BlockBody::Image(image) if image.data.starts_with(b"\x89PNG"))
    );
    assert!(
        matches!(&content("test_audio_content")[0].body, BlockBody::Audio(sound) if sound.data.starts_with(b"RIFF"))
    );
    assert!(matches!(&content("test_embedded_resource")[0].body, BlockBody::Embedded(_)));
    assert_eq!(content("test_multiple_content_types").len(), 3);
    assert!(call("test_error_handling", "{}", &none).unwrap().done().unwrap().is_error);
    assert_eq!(text(call("test_simple_text", "{}", &none).unwrap()), "This is a simple text response for testing.");
    assert_eq!(text(call("test_custom_header", r#"{"region":"eu"}"#, &none).unwrap()), "The region is eu.");
    let counted = call("test_view", r#"{"to":3}"#, &none).unwrap().done().unwrap().structured;
    assert_eq!(counted.as_deref(), Some(r#"{"numbers":[1,2,3]}"#));
}

#[test]
fn forms_are_those_of_the_suites() {
    let (_, user) = asked(call("test_elicitation", r#"{"message":"Who?"}"#, &Context::asking()).unwrap());
    assert_eq!(user["required"], json!(["username", "email"]));
    let (_, defaults) = asked(call("test_elicitation_sep1034_defaults", "{}", &Context::asking()).unwrap());
    for (name, kind, default) in [
        ("name", "string", json!("John Doe")),
        ("age", "integer", json!(30)),
        ("score", "number", json!(95.5)),
        ("status", "string", json!("active")),
        ("verified", "boolean", json!(true)),
    ] {
        let property = &defaults["properties"][name];
        assert_eq!((&property["type"], &property["default"]), (&json!(kind), &default), "{name}: {defaults}");
    }
    assert_eq!(defaults["properties"]["status"]["enum"], json!(["active", "inactive", "pending"]));
    let (_, enums) = asked(call("test_elicitation_sep1330_enums", "{}", &Context::asking()).unwrap());
    assert_eq!(enums["properties"].as_object().map(serde_json::Map::len), Some(5));
    let answered = Context::asking().answer(Answer::decline("enums"));
    let declined = text(call("test_elicitation_sep1330_enums", "{}", &answered).unwrap());
    assert_eq!(declined, "Elicitation completed: action=decline, content={}");
    assert!(matches!(call("test_elicitation", r#"{"message":"Who?"}"#, &Context::default()), Err(Error::Invalid(_))));
}

#[test]
fn answers_without_a_state_are_enough_for_a_name() {
    let tool = "test_input_required_result_elicitation";
    let (ask, form) = asked(call(tool, "{}", &Context::asking()).unwrap());
    assert_eq!((ask.questions[0].key.as_str(), ask.state), ("user_name", None));
    assert_eq!(form, json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] }));
    let alice = Context::asking().answer(Answer::accept("user_name", r#"{"name":"Alice"}"#));
    assert_eq!(text(call(tool, "{}", &alice).unwrap()), "Hello, Alice!");
    let other = Context::asking().answer(Answer::accept("wrong_key", r#"{"data":"wrong"}"#));
    assert!(call(tool, "{}", &other).unwrap().ask().is_some());
}

#[test]
fn two_rounds_have_two_states() {
    let tool = "test_input_required_result_multi_round";
    let (first, _) = asked(call(tool, "{}", &Context::asking()).unwrap());
    let second =
        Context::asking().state(first.state.clone().unwrap()).answer(Answer::accept("step1", r#"{"name":"Al"}"#));
    let (second, _) = asked(call(tool, "{}", &second).unwrap());
    assert!(second.state != first.state && second.questions[0].key == "step2", "{second:?}");
    let third = Context::asking().state(second.state.unwrap());
    // Without an answer, it asks the same question again.
    assert_eq!(asked(call(tool, "{}", &third).unwrap()).0.questions[0].key, "step2");
    let third = third.answer(Answer::accept("step2", r#"{"color":"blue"}"#));
    assert_eq!(text(call(tool, "{}", &third).unwrap()), "Al likes blue.");
    // An answer without the state of the first round is not one to this question.
    let early = Context::asking().answer(Answer::accept("step1", r#"{"name":"Al"}"#));
    assert_eq!(asked(call(tool, "{}", &early).unwrap()).0.questions[0].key, "step1");
}

#[test]
fn a_confirmation_needs_its_state() {
    let tool = "test_input_required_result_request_state";
    let answer = || Context::asking().answer(Answer::accept("confirm", r#"{"ok":true}"#));
    let (ask, _) = asked(call(tool, "{}", &answer()).unwrap());
    let confirmed = call(tool, "{}", &answer().state(ask.state.unwrap())).unwrap();
    assert_eq!(text(confirmed), "state-ok, confirmed: true");
}

#[test]
fn prompts_have_the_words_of_the_suites() {
    let none = Context::default();
    let arguments = Arguments::from([("arg1", "a"), ("arg2", "b")]);
    let messages = |name: &str, arguments: &Arguments| get(name, arguments, &none).unwrap().done().unwrap().messages;
    let with_arguments = messages("test_prompt_with_arguments", &arguments).remove(0).block;
    assert_eq!(with_arguments.body, BlockBody::Text("Prompt with arguments: arg1='a', arg2='b'".to_owned()));
    let uri = Arguments::from([("resourceUri", "test://example-resource")]);
    let embedded = messages("test_prompt_with_embedded_resource", &uri).remove(0).block;
    assert!(matches!(embedded.body, BlockBody::Embedded(contents) if contents.reference == "example-resource"));
    assert_eq!(messages("test_prompt_with_image", &Arguments::default()).len(), 2);
    let prompt = "test_input_required_result_prompt";
    assert!(get(prompt, &Arguments::default(), &Context::asking()).unwrap().ask().is_some());
    let answered = Context::asking().answer(Answer::accept("user_context", r#"{"context":"test context"}"#));
    assert!(get(prompt, &Arguments::default(), &answered).unwrap().done().is_some());
    let suggested =
        Primitives.complete_prompt("test_prompt_with_arguments", &belljar_guest::Argument::new("arg1", "par"), &[]);
    assert_eq!(suggested.unwrap().values, ["paris", "park", "party"]);
}
