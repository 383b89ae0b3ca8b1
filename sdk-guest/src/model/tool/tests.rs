//! Tests of tools: every form of function, every form of result, without a host.

use serde::Deserialize;

use super::*;
use crate::{Answer, Contents, Question};

struct Shop {
    stock: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// How many pieces
    pieces: u32,
}

#[derive(Serialize, JsonSchema)]
struct Receipt {
    pieces: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    sure: bool,
}

impl Shop {
    fn stock(&self) -> Result<String> {
        Ok(format!("{} pieces", self.stock))
    }

    fn order(&self, Order { pieces }: Order) -> Result<Structured<Receipt>> {
        if pieces > self.stock {
            return Err(Error::unavailable("sold out"));
        }
        Ok(Structured::new(format!("{pieces} pieces ordered"), Receipt { pieces }))
    }

    fn order_if_sure(&self, order: Order, context: &Context) -> Result<Outcome<Structured<Receipt>>> {
        match context.accepted::<Confirmation>("sure")? {
            Some(Confirmation { sure: true }) => self.order(order).map(Outcome::Done),
            Some(_) => Err(Error::denied("not sure")),
            None if context.can_ask => Ok(Question::of::<Confirmation>("sure", "Are you sure?").into()),
            None => Err(Error::invalid("this tool needs a client that can ask")),
        }
    }

    fn echo(&self, arguments: Value) -> Result<ToolResult> {
        Ok(ToolResult::error("echo").block(Contents::text("echo", arguments.to_string())).structured("{}"))
    }
}

const ECHO: &str = r#"{ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" }"#;

fn tools() -> ToolSet<Shop> {
    ToolSet::new()
        .tool(Tool::reading("stock", "What is there."), Shop::stock)
        .tool(Tool::adding("order", "Orders."), Shop::order)
        .tool(Tool::destroying("order_if_sure", "Orders.").open_world(), Shop::order_if_sure)
        .tool(Tool::reading("echo", "Says it again.").input(ECHO).output("{\"type\":\"object\"}"), Shop::echo)
        .tool(Tool::reading("motto", "Ours.").view(View::new("page.html").app_only()), |_: &Shop| Ok("more"))
}

fn call(name: &str, arguments: &str, context: &Context) -> Result<Outcome<ToolResult>> {
    tools().call(&Shop { stock: 5 }, name, arguments, context)
}

#[test]
fn schemas_come_from_the_functions() {
    let all = tools().list();
    let schema = |text: &Option<String>| text.as_deref().map(|text| serde_json::from_str::<Value>(text).unwrap());
    let order = serde_json::json!({
        "type": "object",
        "properties": { "pieces": { "type": "integer", "minimum": 0, "description": "How many pieces" } },
        "required": ["pieces"],
        "additionalProperties": false,
    });
    for name in ["order", "order_if_sure"] {
        let tool = all.iter().find(|tool| tool.name == name).unwrap();
        assert_eq!(schema(&tool.input), Some(order.clone()), "{name}");
        let pieces = serde_json::json!({ "pieces": { "type": "integer", "minimum": 0 } });
        assert_eq!(schema(&tool.output).map(|output| output["properties"].clone()), Some(pieces), "{name}");
    }
    let [stock, _, order_if_sure, echo, motto] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((stock.output.as_ref(), stock.idempotent, stock.effect), (None, true, Effect::Reads));
    assert_eq!((order_if_sure.idempotent, order_if_sure.open_world), (false, true));
    assert_eq!(echo.input.as_deref(), Some(ECHO));
    assert_eq!(motto.view, Some(View { page: "page.html".to_owned(), app_only: true }));
}

#[test]
fn a_tool_with_schemas_needs_none_of_its_types() {
    #[derive(Deserialize)]
    struct Pieces {
        pieces: u32,
    }

    let tools = ToolSet::<Shop>::new()
        .tool_with_schemas(
            Tool::reading("any", "Counts."),
            |_: &Shop, Pieces { pieces }: Pieces| Ok(pieces.to_string()),
        )
        .tool_with_schemas(Tool::reading("echo", "Says it again.").input(ECHO).output("{}"), Shop::echo);
    let schemas: Vec<_> = tools.list().into_iter().map(|tool| (tool.input.unwrap(), tool.output)).collect();
    assert_eq!(schemas, [(r#"{"type":"object"}"#.to_owned(), None), (ECHO.to_owned(), Some("{}".to_owned()))]);
    let call = |arguments: &str| tools.call(&Shop { stock: 0 }, "any", arguments, &Context::default());
    assert_eq!(call(r#"{"pieces":2}"#), Ok(ToolResult::text("2").into()));
    assert!(matches!(call("{}"), Err(Error::Invalid(_))));
}

#[test]
fn results_are_converted() {
    let none = Context::default();
    assert_eq!(call("stock", "{}", &none), Ok(ToolResult::text("5 pieces").into()));
    let receipt = ToolResult::text("2 pieces ordered").structured(r#"{"pieces":2}"#);
    assert_eq!(call("order", r#"{"pieces":2}"#, &none), Ok(receipt.into()));
    assert_eq!(call("motto", "{}", &none), Ok(ToolResult::text("more").into()));
    let echo = call("echo", r#"{"a":[1]}"#, &none).unwrap().done().unwrap();
    assert_eq!((echo.is_error, echo.content.len(), echo.structured.as_deref()), (true, 2, Some("{}")));
}

#[test]
fn errors_name_what_is_wrong() {
    let none = Context::default();
    assert_eq!(call("steal", "{}", &none), Err(Error::NotFound));
    assert_eq!(call("order", r#"{"pieces":6}"#, &none), Err(Error::unavailable("sold out")));
    let why = "the arguments do not fit the schema: missing field `pieces` at line 1 column 2";
    assert_eq!(call("order", "{}", &none), Err(Error::invalid(why)));
    assert!(matches!(call("order", "not JSON", &none), Err(Error::Invalid(_))));
}

#[test]
fn questions_are_asked_before_the_result() {
    let order = |context: &Context| call("order_if_sure", r#"{"pieces":2}"#, context);
    let ask = order(&Context::asking()).unwrap().ask().unwrap();
    let [question] = ask.questions.as_slice() else { panic!("{ask:?}") };
    let form =
        serde_json::json!({ "properties": { "sure": { "type": "boolean" } }, "required": ["sure"], "type": "object" });
    assert_eq!(
        (question.key.as_str(), serde_json::from_str::<serde_json::Value>(&question.form).unwrap()),
        ("sure", form)
    );
    let answered = |content: &str| order(&Context::asking().answer(Answer::accept("sure", content)));
    assert!(answered(r#"{"sure":true}"#).unwrap().done().is_some());
    assert_eq!(answered(r#"{"sure":false}"#), Err(Error::denied("not sure")));
    let Err(Error::Invalid(why)) = answered(r#"{"sure":1}"#) else { panic!("1 is not a boolean") };
    assert!(why.starts_with("the answer to \"sure\" does not fit its form: "), "{why}");
    assert_eq!(order(&Context::default()), Err(Error::invalid("this tool needs a client that can ask")));
    // Someone who declined has not accepted.
    let declined = Context::asking().answer(Answer::decline("sure"));
    assert_eq!(declined.accepted::<Confirmation>("sure").map(|answer| answer.is_none()), Ok(true));
}
