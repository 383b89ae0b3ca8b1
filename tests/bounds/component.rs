//! Providers written by hand, for what no compiler would make: the core module in WebAssembly text, around it the
//! interface (`shell.wat`).

use belljar_tests::Site;

const SHELL: &str = include_str!("shell.wat");

/// A provider that lists nothing and answers each read with the text `fine`. The fields change that.
///
/// Memory: from 0 the answer to all that lists, all zeros; from 128 the answer to a read, of which the first content
/// lies at 160 and its body at 180 (kind, address, length); from 4096 what the host puts there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand<'a> {
    /// The core module's memories; the first is the one that the host reads.
    pub(crate) memory: &'a str,
    /// More definitions in the core module.
    pub(crate) fields: &'a str,
    /// What a read does before it answers; it has four locals, `$a` to `$d`.
    pub(crate) read: &'a str,
    /// Where the host may put what it passes: of four parameters the last is the size.
    pub(crate) realloc: &'a str,
    /// More definitions in the component, before the core module is instantiated.
    pub(crate) before: &'a str,
    /// The arguments of that instantiation.
    pub(crate) with: &'a str,
    /// What the core module takes of them.
    pub(crate) imports: &'a str,
    /// More options for how `read` is lifted.
    pub(crate) lift: &'a str,
}

impl Default for Hand<'_> {
    fn default() -> Self {
        Hand {
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

impl Hand<'_> {
    /// The component's bytes.
    pub(crate) fn assemble(&self) -> Vec<u8> {
        let Hand { memory, fields, read, realloc, before, with, imports, lift } = self;
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

    /// Mounts it under `name`.
    pub(crate) fn mount(&self, site: &Site, name: &str) {
        site.drop_in(&format!("{name}.wasm"), self.assemble());
    }
}

/// WebAssembly text as a binary.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Grows the first memory by so many MiB, one after the other, and traps when it is refused.
pub(crate) fn grow(mib: usize) -> String {
    "(if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) ".repeat(mib)
}

/// Memories and tables apart from the first one, each in an instance of its own.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    /// What the component defines.
    pub(crate) before: String,
    /// What the core module is instantiated with.
    pub(crate) with: String,
    /// What it takes of that.
    pub(crate) imports: String,
}

/// So many of them, each empty. `(call $grow0)` grows a memory by a MiB, `(call $widen0 (i32.const N))` a table by N.
pub(crate) fn apart(count: usize) -> Apart {
    let all = |text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let module = "(core module $apart (memory 0) (table $t 0 funcref)
        (func (export \"grow\") (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)))
        (func (export \"widen\") (param i32)
          (if (i32.eq (table.grow $t (ref.null func) (local.get 0)) (i32.const -1)) (then unreachable))))";
    let import = |n: usize| {
        format!("(import \"a{n}\" \"grow\" (func $grow{n})) (import \"a{n}\" \"widen\" (func $widen{n} (param i32))) ")
    };
    Apart {
        before: module.to_owned() + &all(&|n| format!("(core instance $a{n} (instantiate $apart)) ")),
        with: all(&|n| format!("(with \"a{n}\" (instance $a{n})) ")),
        imports: all(&import),
    }
}

impl Apart {
    /// A provider that has them, and whose read does `read`.
    pub(crate) fn hand<'a>(&'a self, read: &'a str) -> Hand<'a> {
        Hand { before: &self.before, with: &self.with, imports: &self.imports, read, ..Hand::default() }
    }
}
