//! Components written by hand, for tests of code that no compiler produces. Each is a core module in WebAssembly text, inside
//! a component with belljar's interface (`shell.wat`).

use belljar_tests::Site;

/// The component around the core module. `{{parts}}` and `{{lift}}` are replaced.
const SHELL: &str = include_str!("shell.wat");

/// A provider that lists nothing and answers each read with the text `fine`. The fields change this behaviour.
///
/// The layout of the memory:
///  - from 0: the result of `describe`, `list-resources` and `list-templates`, all zeros;
///  - from 128: the result of `read`. Its first content is at 160, and the body of this content at 180 (kind, address, length);
///  - from 224: the text `fine`;
///  - from 4096: the data that the host writes, at the addresses that `realloc` returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandWritten<'a> {
    /// The memories of the core module. The host reads the first one.
    pub(crate) memory: &'a str,
    /// More definitions in the core module.
    pub(crate) fields: &'a str,
    /// Instructions that a read runs before it answers. They may use the locals `$a` to `$d`.
    pub(crate) read: &'a str,
    /// The body of `realloc`. It returns the address at which the host writes its arguments. The fourth parameter is the size.
    pub(crate) realloc: &'a str,
    /// More definitions in the component, before the core module is instantiated.
    pub(crate) before: &'a str,
    /// The arguments of the instantiation of the core module.
    pub(crate) with: &'a str,
    /// The imports of the core module.
    pub(crate) imports: &'a str,
    /// More options of the canonical ABI for `read`.
    pub(crate) lift: &'a str,
}

impl Default for HandWritten<'_> {
    fn default() -> Self {
        HandWritten {
            memory: "(memory (export \"memory\") 1)",
            fields: "",
            read: "",
            realloc: "(global.get $heap)
                (global.set $heap (i32.and (i32.add (global.get $heap) (i32.add (local.get 3) (i32.const 15))) (i32.const -16)))",
            before: "",
            with: "",
            imports: "",
            lift: "",
        }
    }
}

impl HandWritten<'_> {
    /// The bytes of the component.
    pub(crate) fn assemble(&self) -> Vec<u8> {
        let HandWritten { memory, fields, read, realloc, before, with, imports, lift } = self;
        let parts = format!(
            r#"{before}
            (core module $hand
              {imports}
              {memory}
              (global $heap (mut i32) (i32.const 4096))
              (data (i32.const 128) "\00\00\00\00\a0\00\00\00\01\00\00\00")
              (data (i32.const 180) "\00\00\00\00\e0\00\00\00\04\00\00\00")
              (data (i32.const 224) "fine")
              {fields}
              (func (export "describe") (result i32) (i32.const 0))
              (func (export "list-resources") (param i32 i32 i32) (result i32) (i32.const 0))
              (func (export "list-templates") (result i32) (i32.const 0))
              (func (export "realloc") (param i32 i32 i32 i32) (result i32) {realloc})
              (func (export "read") (param i32 i32) (result i32) (local $a i32) (local $b i32) (local $c i32) (local $d i32)
                (i32.store (i32.const 160) (local.get 0))
                (i32.store (i32.const 164) (local.get 1))
                {read}
                (i32.const 128)))
            (core instance $main (instantiate $hand {with}))"#
        );
        let text = SHELL.replace("{{parts}}", &parts).replace("{{lift}}", lift);
        wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{parts}"))
    }

    /// Writes the component into the plugin directory, as the mount `name`.
    pub(crate) fn mount(&self, site: &Site, name: &str) {
        site.drop_in(&format!("{name}.wasm"), self.assemble());
    }
}

/// A component that compiles, and whose export has no functions.
pub(crate) fn hollow() -> Vec<u8> {
    assemble("(component (instance $i) (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))")
}

/// Translates WebAssembly text to a binary.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Instructions that grow the first memory by 1 MiB, `mib` times. They trap when the memory cannot grow.
pub(crate) fn grow(mib: usize) -> String {
    "(if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) ".repeat(mib)
}

/// Further memories and tables. Each pair of a memory and a table is in an instance of its own.
#[derive(Clone, Debug)]
pub(crate) struct ExtraMemories {
    /// Definitions of the component.
    pub(crate) before: String,
    /// Arguments of the core module's instantiation.
    pub(crate) with: String,
    /// Imports of the core module.
    pub(crate) imports: String,
}

/// Creates `count` empty memories and `count` empty tables. `(call $grow0)` grows the first of these memories by 1 MiB. `(call
/// $widen0 (i32.const N))` grows the first table by N elements.
pub(crate) fn extra_memories(count: usize) -> ExtraMemories {
    let all = |text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let module = "(core module $apart (memory 0) (table $t 0 funcref)
        (func (export \"grow\") (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)))
        (func (export \"widen\") (param i32)
          (if (i32.eq (table.grow $t (ref.null func) (local.get 0)) (i32.const -1)) (then unreachable))))";
    let import = |n: usize| {
        format!("(import \"a{n}\" \"grow\" (func $grow{n})) (import \"a{n}\" \"widen\" (func $widen{n} (param i32))) ")
    };
    ExtraMemories {
        before: module.to_owned() + &all(&|n| format!("(core instance $a{n} (instantiate $apart)) ")),
        with: all(&|n| format!("(with \"a{n}\" (instance $a{n})) ")),
        imports: all(&import),
    }
}

impl ExtraMemories {
    /// A provider with these memories and tables, whose read runs the instructions `read`.
    pub(crate) fn with_read<'a>(&'a self, read: &'a str) -> HandWritten<'a> {
        HandWritten { before: &self.before, with: &self.with, imports: &self.imports, read, ..HandWritten::default() }
    }
}
