//! The tools that return something at once.

use std::thread;
use std::time::Duration;

use belljar_guest::{Block, Contents, Result, Structured, Tool, ToolResult, ToolSet, Tools, View, progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PIXEL, Primitives, TONE, VIEW, contents};

/// The schema whose keywords must reach the client unchanged.
const SCHEMA_2020_12: &str = include_str!("schema_2020_12.json").trim_ascii();

/// The schema of a parameter that clients also send as a header.
const MIRRORED: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"],"additionalProperties":false}"#;

/// The time between two reports of progress.
const STEP: Duration = Duration::from_millis(50);

/// The description of the tools that stand for a change of a list.
const CHANGE: &str = "Tells the operator, who then changes the list. A provider cannot change its own lists.";

#[derive(Deserialize)]
struct Region {
    region: String,
}

/// The arguments of `test_view`.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// Up to which number to count
    #[schemars(range(min = 1, max = 10))]
    to: u32,
}

/// The result of `test_view`.
#[derive(Serialize, JsonSchema)]
struct Counted {
    numbers: Vec<u32>,
}

impl Tools for Primitives {
    fn tools() -> ToolSet<Self> {
        let tools = ToolSet::new()
            .tool(
                Tool::reading("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features")
                    .input(SCHEMA_2020_12),
                Self::echo,
            )
            .tool(Tool::reading("test_simple_text", "Returns a text."), Self::simple_text)
            .tool(Tool::reading("test_image_content", "Returns a picture."), Self::image)
            .tool(Tool::reading("test_audio_content", "Returns a sound."), Self::audio)
            .tool(Tool::reading("test_embedded_resource", "Returns a resource."), Self::embedded)
            .tool(Tool::reading("test_multiple_content_types", "Returns three kinds of content."), Self::mixed)
            .tool(Tool::reading("test_error_handling", "Always fails."), Self::error)
            .tool(Tool::reading("test_tool_with_progress", "Reports its progress."), Self::with_progress)
            .tool(Tool::reading("sized", "Returns a text of 1 KiB."), Self::sized)
            .tool(Tool::reading("test_reconnection", "Answers at once."), Self::reconnection)
            .tool(Tool::reading("test_trigger_tool_change", CHANGE), Self::change)
            .tool(Tool::reading("test_trigger_prompt_change", CHANGE), Self::change)
            .tool(Tool::reading("test_logging_tool", "Logs nothing to the client."), Self::logging)
            .tool(Tool::reading("test_custom_header", "Has a mirrored parameter.").input(MIRRORED), Self::header)
            .tool(Tool::reading("test_view", "Counts, and shows it.").view(View::new(VIEW)), Self::count);
        Self::asking(tools)
    }
}

impl Primitives {
    fn echo(&self, arguments: Value) -> Result<String> {
        Ok(arguments.to_string())
    }

    fn simple_text(&self) -> Result<&'static str> {
        Ok("This is a simple text response for testing.")
    }

    fn image(&self) -> Result<Block> {
        Ok(Block::image("image/png", PIXEL))
    }

    fn audio(&self) -> Result<Block> {
        Ok(Block::audio("audio/wav", TONE))
    }

    fn embedded(&self) -> Result<Block> {
        Ok(contents("embedded-resource")?.into())
    }

    fn mixed(&self) -> Result<ToolResult> {
        let resource = r#"{"test":"data","value":123}"#;
        Ok(ToolResult::text("Multiple content types test:")
            .block(Block::image("image/png", PIXEL))
            .block(Contents::text("mixed-content-resource", resource).mime_type("application/json")))
    }

    fn error(&self) -> Result<ToolResult> {
        Ok(ToolResult::error("This tool intentionally returns an error for testing"))
    }

    fn with_progress(&self) -> Result<&'static str> {
        for done in [0.0, 50.0, 100.0] {
            if done > 0.0 {
                thread::sleep(STEP);
            }
            progress::report(done, Some(100.0), Some(&format!("Completed step {done} of 100")));
        }
        Ok("The work is done.")
    }

    fn sized(&self) -> Result<String> {
        Ok("x".repeat(1024))
    }

    // What a provider prints goes to the log of the host. No client may see it.
    #[expect(clippy::print_stderr, reason = "the subject of the test")]
    fn logging(&self) -> Result<&'static str> {
        eprintln!("a line of test_logging_tool");
        Ok("Nothing was logged to the client.")
    }

    // The host holds the stream of a call open until its result, so there is nothing to resume.
    fn reconnection(&self) -> Result<&'static str> {
        Ok("The stream stayed open.")
    }

    fn change(&self) -> Result<&'static str> {
        Ok("The operator knows of this call by the audit record.")
    }

    fn header(&self, arguments: Value) -> Result<String> {
        let Region { region } = serde_json::from_value(arguments).map_err(belljar_guest::Error::invalid)?;
        Ok(format!("The region is {region}."))
    }

    fn count(&self, Count { to }: Count) -> Result<Structured<Counted>> {
        let numbers: Vec<u32> = (1..=to).collect();
        Ok(Structured::new(format!("The numbers are {numbers:?}."), Counted { numbers }))
    }
}
