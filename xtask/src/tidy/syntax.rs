//! What the rules need to know of a Rust file: its attributes, macro calls, modules, items and paths.

use std::mem;
use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse as _, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::{Brace, Bracket, Paren};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ExprPath, Ident, Item, Lit, Meta, MetaList, Path, Token, UseTree};

/// What a file holds.
#[derive(Default)]
pub(crate) struct Facts {
    /// Those of test code too.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) macros: Vec<MacroCall>,
    /// The module that the file is, then those that it holds between braces.
    pub(crate) modules: Vec<Module>,
    /// The lines of what is compiled for tests only.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// Where the file stops being Rust, and why. Then nothing else is known of it.
    pub(crate) broken: Option<(usize, String)>,
}

#[derive(Debug)]
pub(crate) struct MacroCall {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

/// A module without what is compiled for tests only.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The modules of the file around it, outermost first, and its own name; nothing for the file itself.
    pub(crate) inside: Vec<String>,
    pub(crate) items: Vec<String>,
    pub(crate) paths: Vec<PathUse>,
    /// Modules in files of their own, those for tests included.
    pub(crate) files: Vec<ModuleFile>,
}

impl Module {
    /// What a name is imported from; `*` for all that is imported without a name.
    pub(crate) fn imports<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a PathUse> {
        self.paths.iter().filter(move |path| path.import.as_deref() == Some(name))
    }
}

/// `mod name;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFile {
    pub(crate) name: String,
    /// The value of a `#[path]` attribute.
    pub(crate) path: Option<String>,
    pub(crate) in_test: bool,
}

/// A path as written, `use` trees expanded: `use std::{fs, io::Read}` gives `std::fs` and `std::io::Read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// The name that a `use` gives it here; `*` for all names of the path.
    pub(crate) import: Option<String>,
}

/// Reads a file; one that is not Rust is [`Facts::broken`].
pub(crate) fn read(text: &str) -> Facts {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => {
            let broken = Some((error.span().start().line, error.to_string()));
            return Facts { broken, ..Facts::default() };
        }
    };
    let mut reader = Reader::default();
    reader.facts.modules.push(Module::default());
    reader.visit_file(&file);
    if reader.in_test {
        reader.facts.tests = vec![1..=text.lines().count()];
    }
    reader.facts
}

/// What stands between the parentheses of a list such as `cfg_attr(test, ignore)`.
pub(crate) fn parts(list: &MetaList) -> Vec<Meta> {
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    parts.into_iter().flatten().collect()
}

/// Whether a `cfg` attribute holds under test only.
fn is_test_only(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => parts(list).iter().any(needs_test),
        Meta::Path(_) | Meta::List(_) | Meta::NameValue(_) => false,
    }
}

/// `test`, `all(..., test, ...)` and `any` of nothing but such need it; `not` and a feature do not.
fn needs_test(predicate: &Meta) -> bool {
    match predicate {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        Meta::Path(_) | Meta::List(_) | Meta::NameValue(_) => None,
    }
}

#[derive(Default)]
struct Reader {
    facts: Facts,
    /// The module that is being read, outermost name first, and its index.
    inside: Vec<String>,
    module: usize,
    /// Whether what is being read is compiled for tests only.
    in_test: bool,
}

/// Visits that end what an attribute of their node began. Attributes are visited before all else of a node.
macro_rules! bounded {
    ($($visit:ident: $node:ident),*) => {
        $(fn $visit(&mut self, node: &'ast syn::$node) {
            self.bounded(node, |reader| visit::$visit(reader, node));
        })*
    };
}

impl<'ast> Visit<'ast> for Reader {
    bounded! {
        visit_impl_item: ImplItem, visit_trait_item: TraitItem, visit_foreign_item: ForeignItem,
        visit_field: Field, visit_variant: Variant, visit_fn_arg: FnArg, visit_generic_param: GenericParam,
        visit_stmt: Stmt, visit_arm: Arm, visit_expr: Expr, visit_field_value: FieldValue
    }

    fn visit_item(&mut self, item: &'ast Item) {
        self.bounded(item, |reader| {
            visit::visit_item(reader, item);
            if let Some(name) = name(item) {
                reader.record(|module| module.items.push(plain(name)));
            }
        });
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        let name = plain(&item.ident);
        let Some((_, items)) = &item.content else {
            let path = item.attrs.iter().find_map(path_attribute);
            let file = ModuleFile { name, path, in_test: self.in_test };
            if let Some(module) = self.facts.modules.get_mut(self.module) {
                module.files.push(file);
            }
            return;
        };
        self.inside.push(name);
        let outer = mem::replace(&mut self.module, self.facts.modules.len());
        self.facts.modules.push(Module { inside: self.inside.clone(), ..Module::default() });
        for item in items {
            self.visit_item(item);
        }
        self.module = outer;
        self.inside.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        self.use_tree(&item.tree, &[]);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.in_test |= is_test_only(attribute);
        self.facts.attributes.push(attribute.clone());
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => self.visit_token_stream(&list.tokens),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.macro_call(&call.path);
        visit::visit_macro(self, call);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.path(path);
        visit::visit_path(self, path);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.tokens(tokens.clone());
    }
}

impl Reader {
    fn bounded(&mut self, node: &impl Spanned, visit: impl FnOnce(&mut Self)) {
        let outer = self.in_test;
        visit(self);
        if self.in_test && !outer {
            let span = node.span();
            self.facts.tests.push(span.start().line..=span.end().line);
        }
        self.in_test = outer;
    }

    /// Changes the module that is being read, outside of tests.
    fn record(&mut self, change: impl FnOnce(&mut Module)) {
        if let (false, Some(module)) = (self.in_test, self.facts.modules.get_mut(self.module)) {
            change(module);
        }
    }

    fn path(&mut self, path: &Path) {
        let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        let line = path.segments.last().map_or(0, |last| last.ident.span().start().line);
        self.record(|module| module.paths.push(PathUse { segments, line, import: None }));
    }

    fn macro_call(&mut self, path: &Path) {
        let in_test = self.in_test;
        self.facts.macros.extend(path.segments.last().map(|last| MacroCall {
            name: plain(&last.ident),
            line: last.ident.span().start().line,
            in_test,
        }));
    }

    fn use_tree(&mut self, tree: &UseTree, prefix: &[String]) {
        match tree {
            UseTree::Path(path) => self.use_tree(&path.tree, &below(prefix, &path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(tree, prefix)),
            UseTree::Name(leaf) => self.import(prefix, &leaf.ident, &leaf.ident),
            UseTree::Rename(leaf) => self.import(prefix, &leaf.ident, &leaf.rename),
            UseTree::Glob(leaf) => {
                let segments = [prefix, &["*".to_owned()]].concat();
                let line = leaf.star_token.span.start().line;
                self.record(|module| {
                    module.paths.push(PathUse { segments, line, import: Some("*".to_owned()) });
                });
            }
        }
    }

    /// `use a::{self}` names `a`.
    fn import(&mut self, prefix: &[String], name: &Ident, here: &Ident) {
        let segments = if name == "self" { prefix.to_vec() } else { below(prefix, name) };
        let import = if here == "self" { prefix.last().cloned() } else { Some(plain(here)) };
        let line = name.span().start().line;
        self.record(|module| module.paths.push(PathUse { segments, line, import }));
    }

    /// Reads what a macro or an attribute is given: paths, imports, attributes and calls among other tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                self.next(input)?;
            }
            Ok(())
        };
        // It takes any token, so it cannot fail.
        let _infallible: syn::Result<()> = read.parse2(tokens);
    }

    fn next(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let outer = self.in_test;
        if let Some(item) = ahead(input, syn::ItemUse::parse) {
            self.visit_item_use(&item);
        } else if let Some(attributes) = attributes_ahead(input) {
            for attribute in &attributes {
                self.visit_attribute(attribute);
            }
        } else if let Some(found) = ahead(input, ExprPath::parse) {
            if input.peek(Token![!]) && (input.peek2(Paren) || input.peek2(Bracket) || input.peek2(Brace)) {
                self.macro_call(&found.path);
            }
            self.visit_path(&found.path);
        } else if let TokenTree::Group(group) = input.parse()? {
            self.tokens(group.stream());
        }
        // What an attribute among tokens belongs to is for the macro to know.
        self.in_test = outer;
        Ok(())
    }
}

fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

fn below(prefix: &[String], name: &Ident) -> Vec<String> {
    [prefix, &[plain(name)]].concat()
}

fn ahead<T>(input: ParseStream<'_>, parse: fn(ParseStream<'_>) -> syn::Result<T>) -> Option<T> {
    let fork = input.fork();
    let found = parse(&fork).ok()?;
    input.advance_to(&fork);
    Some(found)
}

fn attributes_ahead(input: ParseStream<'_>) -> Option<Vec<Attribute>> {
    if !input.peek(Token![#]) {
        return None;
    }
    let outer = ahead(input, Attribute::parse_outer);
    outer.or_else(|| ahead(input, Attribute::parse_inner)).filter(|found| !found.is_empty())
}

/// The name under which others reach an item.
fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the items and the last names of the paths that are no test.
    fn kept(source: &str) -> Vec<String> {
        let modules = read(source).modules;
        let names = modules.iter().flat_map(|module| {
            let paths = module.paths.iter().filter_map(|path| path.segments.last().cloned());
            module.items.iter().cloned().chain(paths)
        });
        names.collect()
    }

    fn found_paths(source: &str) -> Vec<String> {
        let facts = read(source);
        facts.modules.iter().flat_map(|module| &module.paths).map(|path| path.segments.join("::")).collect()
    }

    fn calls(source: &str) -> Vec<String> {
        read(source).macros.into_iter().map(|call| call.name).collect()
    }

    #[test]
    fn the_tests_module_is_cut_by_its_braces_and_the_rest_stays() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x { \"}\" } }\n}\nfn c() {}";
        assert_eq!(kept(source), ["a", "c"]);
        assert_eq!(read(source).tests, [2..=5]);
    }

    #[test]
    fn other_test_items_are_cut_whole() {
        assert_eq!(kept("#[cfg(test)] use std::fs; fn a() {}"), ["a"]);
        assert_eq!(kept("#[cfg(test)] #[must_use] fn f<A, B>(x: [u8; 2]) -> A { b } fn a() {}"), ["a"]);
        assert_eq!(kept("#[test] #[cfg(test)] struct S; struct A;"), ["A"]);
        assert_eq!(kept("struct S { #[cfg(test)] hook: u8, a: u16 }"), ["S", "u16"]);
        assert_eq!(kept("enum S { #[cfg(test)] Hook(u8), A(u16) }"), ["S", "u16"]);
        assert_eq!(kept("impl S { #[cfg(test)] fn f() -> u8 {} fn g() -> u16 {} }"), ["S", "u16"]);
        assert_eq!(kept("fn f() { #[cfg(test)] let a = b; c }"), ["f", "c"]);
        assert_eq!(read("struct S {\n#[derive(X)]\n#[cfg(test)]\nhook: u8,\n}").tests, [2..=4]);
    }

    #[test]
    fn only_a_cfg_that_needs_test_cuts() {
        assert_eq!(kept("#[cfg(all(unix, test))] mod m { fn b() {} }"), Vec::<String>::new());
        assert_eq!(kept("#[cfg(any(test, all(test, unix)))] mod m { fn b() {} }"), Vec::<String>::new());
        for stays in
            ["#[cfg(any(test, unix))]", "#[cfg(not(test))]", "#[cfg(unix)]", "#[test]", "#[cfg(any())]"]
        {
            assert!(kept(&format!("{stays} mod m {{ fn b() {{}} }}")).contains(&"b".to_owned()), "{stays}");
        }
    }

    #[test]
    fn an_inner_cfg_test_cuts_the_whole_file() {
        let source = "//! x\n#![cfg(test)]\nfn a() {}";
        assert_eq!((kept(source), read(source).tests), (Vec::new(), vec![1..=3]));
    }

    #[test]
    fn test_modules_in_their_own_files_are_named() {
        let facts =
            read("#[cfg(test)] mod a; #[cfg(test)]\n#[path = \"b_tests.rs\"] pub(crate) mod b; mod c;");
        let file = |name: &str, path: Option<&str>, in_test| ModuleFile {
            name: name.to_owned(),
            path: path.map(str::to_owned),
            in_test,
        };
        assert_eq!(
            facts.modules[0].files,
            [file("a", None, true), file("b", Some("b_tests.rs"), true), file("c", None, false)]
        );
    }

    #[test]
    fn what_a_module_between_braces_holds_is_its_own() {
        let facts = read("fn a() {} mod m { fn b() {} mod n { fn c() {} } } fn d() {}");
        let modules: Vec<_> =
            facts.modules.iter().map(|module| (module.inside.join("::"), module.items.join(" "))).collect();
        let expected = [("", "a d"), ("m", "b"), ("m::n", "c")];
        assert_eq!(modules, expected.map(|(inside, items)| (inside.to_owned(), items.to_owned())));
    }

    #[test]
    fn use_trees_are_expanded() {
        let source = "use std::{fs, io::{self, Read}, env as e}; use ::std::fs::*;";
        let found = ["std::fs", "std::io", "std::io::Read", "std::env", "std::fs::*"];
        assert_eq!(found_paths(source), found);
        // The same within a macro.
        assert_eq!(found_paths(&format!("m! {{ {source} }}"))[1..], found);
        let facts = read(source);
        let names: Vec<_> = facts.modules[0].paths.iter().flat_map(|path| &path.import).collect();
        assert_eq!(names, ["fs", "io", "Read", "e", "*"]);
    }

    #[test]
    fn paths_in_expressions_types_and_macros_are_read_to_their_end() {
        let expression = "x(std :: fs\n::read(a.b), Vec::<u8>::new(), a::B { c: d::e }, ::r#mod::f)";
        let found = ["x", "std::fs::read", "a", "Vec::new", "u8", "a::B", "d::e", "mod::f"];
        assert_eq!(found_paths(&format!("fn f() {{ {expression} }}")), found);
        let in_macro = found_paths(&format!("fn f() {{ m!({expression}) }}"));
        assert!(found.iter().all(|path| in_macro.iter().any(|other| other == path)), "{in_macro:?}");
        assert_eq!(found_paths("type A = Option<std::fs::File>;"), ["Option", "std::fs::File"]);
    }

    #[test]
    fn calls_of_macros_are_found_in_each_other_and_are_no_inequality() {
        let source = "fn f() { println!(x, dbg!(y)); vec![a != (b), todo! {}]; }";
        assert_eq!(calls(source), ["println", "dbg", "vec", "todo"]);
    }

    #[test]
    fn attributes_are_found_wherever_they_stand() {
        let source = "#![a]\n#[b(c)] fn f(#[d] x: u8) { m! { #![e] #[g] fn h() {} # #[i] use j; } }";
        assert_eq!(read(source).attributes.len(), 6);
    }

    #[test]
    fn a_file_that_is_not_rust_says_where_it_stops() {
        let (line, message) = read("fn a() {}\nfn b( {}").broken.unwrap();
        assert_eq!((line, message.is_empty()), (2, false));
    }
}
