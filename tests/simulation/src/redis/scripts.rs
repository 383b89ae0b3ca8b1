//! Runs scripts as Redis does: Lua 5.1, with `redis.call`, `KEYS` and `ARGV`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::database::Database;
use super::resp::Reply;

/// The scripts that were loaded, by their names: the SHA-1 of their texts.
pub(crate) struct Scripts {
    lua: Lua,
    loaded: HashMap<Vec<u8>, Function>,
}

impl Scripts {
    /// No scripts. Those that come use `database`.
    ///
    /// # Errors
    /// If Lua cannot be set up.
    pub(crate) fn new(database: &Rc<RefCell<Database>>) -> mlua::Result<Self> {
        let lua = Lua::new();
        let digits: Function = lua.load("return function(number) return string.format('%.17g', number) end").eval()?;
        let database = Rc::clone(database);
        let call = lua.create_function(move |lua, arguments: MultiValue| {
            let mut words = Vec::with_capacity(arguments.len());
            for argument in arguments {
                words.push(match argument {
                    Value::String(text) => text.as_bytes().to_vec(),
                    Value::Integer(number) => number.to_string().into_bytes(),
                    Value::Number(number) => digits.call::<mlua::LuaString>(number)?.as_bytes().to_vec(),
                    _ => return Err(mlua::Error::runtime("an argument is neither a text nor a number")),
                });
            }
            let reply = database.borrow_mut().run(&words);
            to_lua(lua, reply)
        })?;
        let redis = lua.create_table()?;
        redis.set("call", call)?;
        lua.globals().set("redis", redis)?;
        Ok(Self { lua, loaded: HashMap::new() })
    }

    /// Loads a script. Gives its name.
    pub(crate) fn load(&mut self, text: &[u8]) -> Reply {
        let name = sha1_smol::Sha1::from(text).digest().to_string();
        match self.lua.load(text).into_function() {
            Ok(script) => {
                self.loaded.insert(name.clone().into_bytes(), script);
                Reply::text(name)
            }
            Err(error) => Reply::Error(format!("ERR Error compiling script: {error}").replace(['\r', '\n'], " ")),
        }
    }

    /// Runs a script.
    pub(crate) fn run(&self, name: &[u8], keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Reply {
        let Some(script) = self.loaded.get(name) else {
            return Reply::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned());
        };
        let run = || -> mlua::Result<Reply> {
            for (name, words) in [("KEYS", keys), ("ARGV", arguments)] {
                let words: Result<Vec<_>, _> = words.iter().map(|word| self.lua.create_string(word)).collect();
                self.lua.globals().set(name, self.lua.create_sequence_from(words?)?)?;
            }
            from_lua(script.call(())?)
        };
        run().unwrap_or_else(|error| Reply::Error(format!("ERR {error}").replace(['\r', '\n'], " ")))
    }
}

/// What `redis.call` gives to a script.
fn to_lua(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    Ok(match reply {
        Reply::Integer(number) => Value::Number(number as f64),
        Reply::Bulk(text) => Value::String(lua.create_string(text)?),
        Reply::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.into_iter().enumerate() {
                table.raw_set(index + 1, to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
        Reply::Status(text) => {
            let table = lua.create_table()?;
            table.raw_set("ok", text)?;
            Value::Table(table)
        }
        Reply::Error(text) => return Err(mlua::Error::runtime(text)),
        Reply::Null | Reply::Map(_) | Reply::Push(_) => Value::Boolean(false),
    })
}

/// What a script gives to the client.
fn from_lua(value: Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::Integer(number) => Reply::Integer(number),
        Value::Number(number) => Reply::Integer(number as i64),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => list(&table)?,
        _ => Reply::Null,
    })
}

/// A table up to its first hole.
fn list(table: &Table) -> mlua::Result<Reply> {
    if let Value::String(text) = table.raw_get("err")? {
        return Ok(Reply::Error(text.to_string_lossy()));
    }
    if matches!(table.raw_get("ok")?, Value::String(_)) {
        return Ok(Reply::Status("OK"));
    }
    let items: mlua::Result<Vec<Reply>> = table.sequence_values::<Value>().map(|item| from_lua(item?)).collect();
    items.map(Reply::Array)
}
