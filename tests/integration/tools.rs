//! Tests of the MCP tools that belljar offers to models.

mod read_only_tools;
