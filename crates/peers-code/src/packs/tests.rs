//! What each pack sees.

use crate::{Kind, Source};

/// One line per symbol: `- f(a, b) @1-2` for a private one, `+` for a public one.
#[track_caller]
fn symbols(path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text.as_bytes()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let symbols = source.symbols().into_iter().map(|symbol| {
        let sign = if symbol.public { '+' } else { '-' };
        let kind = match symbol.kind {
            Kind::Module => "mod",
            Kind::Class => "class",
            Kind::Function => "fn",
            Kind::Method => "method",
            Kind::Value => "value",
        };
        let params = symbol.params.join(", ");
        format!("{sign}{kind} {}({params}) {}-{}: {}", symbol.path, symbol.line, symbol.end, symbol.signature)
    });
    symbols.collect()
}

#[test]
fn python() {
    let text = r#"
"""Doc."""
import os

LIMIT: int = 3
_hidden = 4

@decorated
async def fetch(url, *args, timeout: float = 1.0, **kw) -> str:
    def inner(): pass
    return url

if os.name == "nt":
    def other(): ...
else:
    def other(x): ...

class Box(Base):
    size = 1
    def __init__(self, a): self.a = a
    @staticmethod
    def make(b): return Box(b)
    def _own(self): pass
    class Inner:
        def deep(self): pass
"#;
    same(
        &symbols("a.py", text),
        &[
            "+value LIMIT() 5-5: LIMIT: int",
            "-value _hidden() 6-6: _hidden",
            "+fn fetch(url, *args, timeout, **kw) 9-11: async def fetch(url, *args, timeout: float = 1.0, **kw) -> str",
            "+fn other() 14-14: def other()",
            "+fn other(x) 16-16: def other(x)",
            "+class Box() 18-25: class Box(Base)",
            "+method Box.__init__(a) 20-20: def __init__(self, a)",
            "+method Box.make(b) 22-22: def make(b)",
            "-method Box._own() 23-23: def _own(self)",
            "+class Box.Inner() 24-25: class Inner",
            "+method Box.Inner.deep() 25-25: def deep(self)",
        ],
    );
    let exported =
        symbols("a.py", "__all__ = ['b']\n__all__ += ['_c']\ndef a(): pass\ndef b(): pass\ndef _c(): pass\n");
    assert_eq!(exported.iter().map(|line| &line[..1]).collect::<String>(), "-++");
}

#[test]
fn javascript() {
    let text = r#"
import x from "y";
export function run(a, {b, c}, ...rest) { return a; }
function hidden() {}
export const add = (a, b = 2) => a + b, LIMIT = 3;
export default class Box extends Base {
  constructor(a) { super(); }
  #own() {}
  get size() { return 1; }
}
const late = async function (q) {};
export { late, hidden as shown };
export { other } from "./other.js";
"#;
    same(
        &symbols("a.js", text),
        &[
            "+fn run(a, {b, c}, ...rest) 3-3: function run(a, {b, c}, ...rest)",
            "+fn hidden() 4-4: function hidden()",
            "+fn add(a, b) 5-5: add = (a, b = 2) =>",
            "+value LIMIT() 5-5: LIMIT",
            "+class Box() 6-10: class Box extends Base",
            "+method Box.constructor(a) 7-7: constructor(a)",
            "-method Box.#own() 8-8: #own()",
            "+method Box.size() 9-9: get size()",
            "+fn late(q) 11-11: late = async function (q)",
            "+value other() 13-13: other",
        ],
    );
    let common = "function a(x) {}\nconst b = 1;\nfunction c() {}\nmodule.exports = { a, b };\nexports.d = (y) => y;\n";
    same(
        &symbols("a.cjs", common),
        &[
            "+fn a(x) 1-1: function a(x)",
            "+value b() 2-2: b",
            "-fn c() 3-3: function c()",
            "+fn d(y) 5-5: exports.d = (y) =>",
        ],
    );
    same(
        &symbols("a.js", "module.exports = function parse(text, options) {};\n"),
        &["+fn default(text, options) 1-1: function parse(text, options)"],
    );
    same(
        &symbols("a.js", "module.exports = class Box { size() {} };\n"),
        &["+class default() 1-1: class Box", "+method default.size() 1-1: size()"],
    );
}

#[test]
fn typescript() {
    let text = r"
export interface Shape<T> { area(): number }
export type Id = string | number;
export enum Color { Red }
export abstract class Box<T> {
  private own(a: T): void {}
  abstract size(unit: string): number;
  open(a?: T): void {}
}
export namespace deep { export function inside(a: number) {} }
declare function ambient(x: string): void;
export function over(a: string): string;
export function over(a: any): any { return a; }
";
    same(
        &symbols("a.ts", text),
        &[
            "+class Shape() 2-2: interface Shape<T>",
            "+class Id() 3-3: type Id = string | number;",
            "+class Color() 4-4: enum Color",
            "+class Box() 5-9: abstract class Box<T>",
            "-method Box.own(a) 6-6: private own(a: T): void",
            "+method Box.size(unit) 7-7: abstract size(unit: string): number",
            "+method Box.open(a) 8-8: open(a?: T): void",
            "+mod deep() 10-10: namespace deep",
            "+fn deep.inside(a) 10-10: function inside(a: number)",
            "-fn ambient(x) 11-11: function ambient(x: string): void;",
            "+fn over(a) 12-12: function over(a: string): string;",
            "+fn over(a) 13-13: function over(a: any): any",
        ],
    );
    assert_eq!(symbols("a.tsx", "export const App = ({ a }: P) => <div>{a}</div>;\n").len(), 1);
}

#[test]
fn rust() {
    let text = r"
//! Doc.
pub const LIMIT: usize = 3;
/// A box.
#[derive(Debug)]
pub struct Box<T> { a: T }
pub(crate) enum Own { A }
impl<T: Clone> Box<T> {
    pub fn new(a: T, mut b: u8) -> Self where T: Clone { Self { a } }
    fn own(&self) {}
}
impl Drop for Box<u8> { fn drop(&mut self) {} }
pub trait Shape { fn area(&self, unit: &str) -> f64; fn twice(&self) -> f64 { 2.0 } }
pub mod deep { pub fn inside() {} fn hidden() {} }
mod closed { pub fn inside() {} }
#[macro_export]
macro_rules! say { () => {}; }
#[cfg(test)]
mod tests { fn helper() {} }
pub fn last() {}
";
    same(
        &symbols("a.rs", text),
        &[
            "+value LIMIT() 3-3: pub const LIMIT: usize",
            "+class Box() 6-6: pub struct Box<T> { a: T }",
            "-class Own() 7-7: pub(crate) enum Own",
            "+method Box.new(a, b) 9-9: pub fn new(a: T, mut b: u8) -> Self where T: Clone",
            "-method Box.own() 10-10: fn own(&self)",
            "+class Shape() 13-13: pub trait Shape",
            "+method Shape.area(unit) 13-13: fn area(&self, unit: &str) -> f64;",
            "+method Shape.twice() 13-13: fn twice(&self) -> f64",
            "+mod deep() 14-14: pub mod deep",
            "+fn deep.inside() 14-14: pub fn inside()",
            "-fn deep.hidden() 14-14: fn hidden()",
            "-mod closed() 15-15: mod closed",
            "-fn closed.inside() 15-15: pub fn inside()",
            "+fn say!() 17-17: macro_rules! say",
            "+fn last() 20-20: pub fn last()",
        ],
    );
}

#[test]
fn go() {
    let text = r"
package a

const Limit, low = 3, 4
var (
	Shared = 1
	own    int
)

type Box[T any] struct { A T }
type Shape interface { Area(unit string) float64 }
type Alias = Box[int]

func (b *Box[T]) Size(unit, other string, rest ...int) (int, error) { return 1, nil }
func (b Box[T]) own() {}
func Run(f func(x int) int) {}
";
    same(
        &symbols("a.go", text),
        &[
            "+value Limit() 4-4: Limit, low",
            "-value low() 4-4: Limit, low",
            "+value Shared() 6-6: Shared",
            "-value own() 7-7: own int",
            "+class Box() 10-10: Box[T any]",
            "+class Shape() 11-11: Shape interface { Area(unit string) float64 }",
            "+method Shape.Area(unit) 11-11: Area(unit string) float64",
            "+class Alias() 12-12: Alias = Box[int]",
            "+method Box.Size(unit, other, rest) 14-14: func (b *Box[T]) Size(unit, other string, rest ...int) (int, error)",
            "-method Box.own() 15-15: func (b Box[T]) own()",
            "+fn Run(f) 16-16: func Run(f func(x int) int)",
        ],
    );
}

/// Compares line by line, so that a difference is told by its line.
#[track_caller]
fn same(found: &[String], due: &[&str]) {
    for (at, line) in found.iter().enumerate() {
        assert_eq!(Some(&line.as_str()), due.get(at), "line {at} of\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), due.len(), "{}", found.join("\n"));
}

/// One line per test: its path, how much it asserts, `!` where it asserts a failure; then one per marker.
#[track_caller]
fn tests(path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text.as_bytes()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (tests, skips) = source.tests();
    let tests = tests.into_iter().map(|test| {
        let sign = if test.expects_error { "!" } else { "" };
        format!("{} {}{sign}", test.path, test.asserts.len())
    });
    let skips = skips.into_iter().map(|skip| {
        format!("{:?} {} {}: {}", skip.kind, skip.line, skip.target, skip.reason.as_deref().unwrap_or("-"))
    });
    tests.chain(skips).collect()
}

#[test]
fn tests_of_python() {
    let text = r#"
import pytest, unittest
from pytest import mark
pytestmark = [pytest.mark.skip(reason="whole file"), mark.slow]

def test_plain():
    assert f(1) == 2
    assert_that(g())

@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.xfail
async def test_raises(a):
    with pytest.raises(ValueError):
        f(a)

@mark.skip("no " "network")
def test_off(): pass

@unittest.skipIf(sys.platform == "win32", "paths differ")
class TestBox(unittest.TestCase):
    def test_size(self):
        self.assertEqual(size(), 1)
    @pytest.mark.skipif(sys.version_info < (3, 9), reason="needs 3.9")
    def test_inner(self):
        if not have(): pytest.skip("no display")
        self.skipTest("later")
    def helper(self): assert False

@skip
def helper(): pass
def maxit(): sys.exit(0)
"#;
    same(
        &tests("test_a.py", text),
        &[
            "test_plain 2",
            "test_raises 1!",
            "test_off 0",
            "TestBox.test_size 1",
            "TestBox.test_inner 0",
            "Skip 4 : whole file",
            "MayFail 11 test_raises: -",
            "Skip 16 test_off: no network",
            "Conditional 19 TestBox: paths differ",
            "Conditional 23 TestBox.test_inner: needs 3.9",
            "Conditional 25 TestBox.test_inner: no display",
            "Skip 26 TestBox.test_inner: later",
        ],
    );
}

#[test]
fn helpers_by_which_something_fails_are_no_tests() {
    for (path, text) in [
        (
            "tests/a.rs",
            "fn err(a: u8) -> E { f(a).unwrap_err() }\nfn fine() { f(1).unwrap(); }\n#[test]\nfn a() { f(2).unwrap_err(); }\n",
        ),
        (
            "test_a.py",
            "def err():\n    with pytest.raises(E): f()\ndef fine(): assert f()\ndef test_a():\n    with pytest.raises(E): f()\n",
        ),
        (
            "a.test.js",
            "const err = () => { assert.throws(f); };\nfunction fine() { assert.ok(f()); }\ntest('a', () => { assert.throws(f); });\n",
        ),
        (
            "a.test.ts",
            "function err(a: string): void { expect(() => f(a)).toThrow(); }\nconst fine = (): void => {};\n",
        ),
        (
            "a_test.go",
            "package a\nfunc err(t *testing.T) { require.Error(t, f()) }\nfunc fine(t *testing.T) { t.Fatal() }\nfunc TestA(t *testing.T) { require.Error(t, f()) }\n",
        ),
    ] {
        assert_eq!(Source::parse(path, text.as_bytes()).unwrap().helpers(), ["err"], "{path}");
    }
}

#[test]
fn tests_of_javascript() {
    let text = r#"
import { test, describe } from "node:test";
describe("box", () => {
  it("opens", async () => { expect(open(1)).toBe(2); expect(a).not.toEqual(b); });
  it.each([[1], [2]])("takes %s", (x) => { assert.throws(() => take(x)); });
  // Not on the build machines: they have no display.
  it.skip("draws", () => { expect(draw()).toBe(1); });
  test.only(`first`, () => {});
  xit("off", () => {});
  it.todo("later");
});
describe.skip("group", () => { test("a", () => { value.should.equal(1); }); });
test("named", { skip: "needs a network", timeout: 3 }, (t) => { t.equal(1, 1); });
test("own", (t) => { if (slow) { t.skip("slow machine"); } expect(f).to.be.true; });
process.exit(0); maxit(); helper("a", () => {});
test("plain", { skip: false }, () => { const r = expect(p).rejects.toThrow(); });
"#;
    same(
        &tests("a.test.js", text),
        &[
            "box > opens 2",
            "box > takes %s 1!",
            "box > draws 1",
            "box > first 0",
            "box > off 0",
            "group > a 1",
            "named 1",
            "own 1",
            "plain 1!",
            "Skip 7 box > draws: Not on the build machines: they have no display.",
            "Only 8 box > first: -",
            "Skip 9 box > off: -",
            "MayFail 10 box > later: -",
            "Skip 12 group: -",
            "Skip 13 named: needs a network",
            "Conditional 14 own: slow machine",
        ],
    );
}

#[test]
fn tests_of_rust() {
    let text = r#"
#[cfg(test)]
mod tests {
    #[test]
    fn plain() { assert_eq!(f(1), 2); check(3); f(2).expect("two"); }
    #[tokio::test(flavor = "current_thread")]
    #[ignore = "needs a network"]
    async fn ignored() { assert!(g().is_err()); }
    #[test]
    #[should_panic(expected = "no")]
    fn panics() { f(0); }
    #[test]
    #[cfg(feature = "slow")]
    #[cfg_attr(miri, ignore)]
    fn sometimes() { let Err(e) = g() else { panic!() }; assert!(matches!(e, E::A)); }
    fn helper() {}
}
#[rstest]
#[ignore]
fn top() { g().unwrap_err(); }
#[allow(dead_code)]
fn plain() {}
"#;
    same(
        &tests("src/a.rs", text),
        &[
            "tests::plain 2",
            "tests::ignored 1!",
            "tests::panics 1!",
            "tests::sometimes 2",
            "top 1!",
            "Skip 7 tests::ignored: needs a network",
            "Conditional 13 tests::sometimes: -",
            "Conditional 14 tests::sometimes: -",
            "Skip 19 top: -",
        ],
    );
}

#[test]
fn tests_of_go() {
    let text = r#"//go:build linux

package a

import "testing"

func TestPlain(t *testing.T) {
	if got := f(1); got != 2 { t.Errorf("got %d", got) }
	t.Run("sub case", func(t *testing.T) {
		t.Run("deep", func(t *testing.T) { t.Skip("no network") })
		require.Equal(t, 1, f(1))
	})
}
func TestFails(t *testing.T) {
	if testing.Short() { t.Skipf("slow: %d", 1) }
	if _, err := g(); err == nil { t.Fatal("no error") }
}
func TestIs(t *testing.T) { assert.ErrorIs(t, g(), Err) }
func TestTable(t *testing.T) { for _, tt := range cases { if (err != nil) != tt.wantErr { t.Fatal(err) } } }
func Testing(t *testing.T) {}
func helper(t *testing.T) { t.Fatal() }
"#;
    same(
        &tests("a_test.go", text),
        &[
            "TestPlain 2",
            "TestPlain/sub_case 1",
            "TestPlain/sub_case/deep 0",
            "TestFails 1!",
            "TestIs 1!",
            "TestTable 1!",
            "Conditional 1 : -",
            "Skip 10 TestPlain/sub_case/deep: no network",
            "Conditional 15 TestFails: slow: %d",
        ],
    );
}

/// Comments, imports, idle bodies and what is not done, one line each.
#[track_caller]
fn facts(path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text.as_bytes()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut out: Vec<String> = Vec::new();
    out.extend(source.comments().iter().map(|comment| {
        format!(
            "comment {}-{}{} {}",
            comment.line,
            comment.end,
            if comment.alone { "" } else { " behind" },
            comment.text.replace('\n', "|")
        )
    }));
    out.extend(
        source
            .imports()
            .iter()
            .map(|import| format!("import {} {} [{}]", import.line, import.module, import.names.join(", "))),
    );
    let (idle, unfinished) = source.undone();
    let declares = |yes: bool| if yes { " declares" } else { "" };
    out.extend(idle.iter().map(|idle| {
        format!(
            "idle {} {}{}: {}",
            idle.line,
            idle.name,
            declares(idle.declares),
            idle.returns.as_deref().unwrap_or("-")
        )
    }));
    out.extend(
        unfinished
            .iter()
            .map(|what| format!("unfinished {}{} {}", what.line, declares(what.declares), what.code)),
    );
    out
}

#[test]
fn facts_of_python() {
    let text = r##"
import os.path as p, sys
from .a import b as c, d  # behind
from x import *
# alone
def empty():
    """Doc."""
def dots(): ...
def none(): return {}
def real(): return x
class Shape(Protocol):
    def area(self): ...
class Own(abc.ABC):
    @abc.abstractmethod
    def a(self): pass
    def b(self): raise NotImplementedError
class Wrong(ValueError): pass
class Bare: pass
def later(): raise NotImplementedError("x")
text = "# no comment"
"##;
    same(
        &facts("a.py", text),
        &[
            "comment 3-3 behind # behind",
            "comment 5-5 # alone",
            "import 2 os.path []",
            "import 2 sys []",
            "import 3 .a [b, d]",
            "import 4 x []",
            "idle 6 empty: -",
            "idle 8 dots: -",
            "idle 9 none: {}",
            "idle 12 area declares: -",
            "idle 15 a declares: -",
            "idle 17 Wrong declares: -",
            "idle 18 Bare: -",
            "unfinished 16 declares raise NotImplementedError",
            "unfinished 19 raise NotImplementedError(\"x\")",
        ],
    );
}

#[test]
fn facts_of_javascript() {
    let text = r#"
import a, { b as c } from "./x"; /* two
lines */
export { d } from "y";
const e = require('z');
function empty() { // nothing
}
const none = () => null, real = () => a;
class Box { constructor(private a: A) {} m() {} n() { return []; } }
items.forEach(() => {});
function later() { throw new Error("Not implemented yet"); }
interface Shape { area(): number }
"#;
    same(
        &facts("a.ts", text),
        &[
            "comment 2-3 behind /* two|lines */",
            "comment 6-6 behind // nothing",
            "import 2 ./x [b]",
            "import 4 y [d]",
            "import 5 z []",
            "idle 6 empty: -",
            "idle 8 none: null",
            "idle 9 constructor declares: -",
            "idle 9 m: -",
            "idle 9 n: []",
            "unfinished 11 throw new Error(\"Not implemented yet\");",
        ],
    );
}

#[test]
fn facts_of_rust() {
    let text = r#"
//! Doc.
use a::{self, b::{c, d as e}, f::*};
use std::io;
/// Of empty.
fn empty() {}
fn unit() -> Result<(), E> { Ok(()) }
fn real() -> u8 { a }
impl Drop for A { fn drop(&mut self) {} }
trait T { fn on(&self) {} }
fn later() -> u8 { todo!("x") }
fn also() { panic!("not implemented") }
fn fine() { panic!("bad input") }
fn main() {}
"#;
    same(
        &facts("a.rs", text),
        &[
            "comment 2-2 //! Doc.",
            "comment 5-5 /// Of empty.",
            "import 3 a []",
            "import 3 a::b [c]",
            "import 3 a::b [d]",
            "import 3 a::f []",
            "import 4 std [io]",
            "idle 6 empty: -",
            "idle 7 unit: Ok(())",
            "idle 9 drop declares: -",
            "idle 10 on declares: -",
            "idle 14 main declares: -",
            "unfinished 11 todo!(\"x\")",
            "unfinished 12 panic!(\"not implemented\")",
        ],
    );
}

#[test]
fn facts_of_go() {
    let text = r#"
package a
import ("os"; q "x/y")
// Empty does nothing.
func Empty() {}
func none() error { return nil }
func two() (int, error) { return 0, nil }
func real() int { return a }
func (b *Box) later() { panic("TODO") }
func main() {}
"#;
    same(
        &facts("a.go", text),
        &[
            "comment 4-4 // Empty does nothing.",
            "import 3 os []",
            "import 3 x/y []",
            "idle 5 Empty: -",
            "idle 6 none: nil",
            "idle 7 two: 0, nil",
            "idle 10 main declares: -",
            "unfinished 9 panic(\"TODO\")",
        ],
    );
}

#[test]
fn mutations_change_the_meaning_of_sources_and_leave_them_readable() {
    for (path, text, due) in [
        (
            "a.py",
            "def f(a, b):\n    if a < b and not a: g(a)\n    if b: return a + 1\n    return True\ndef test_f(): assert 1 < 2\n",
            "a < b -> a <= b; a < b and not a -> a < b or not a; g(a) -> pass; if b: return a + 1 -> if not (b): return a + 1; return a + 1 -> return None; a + 1 -> a - 1; a + 1 -> a + 2; return True -> return None; return True -> return False",
        ),
        (
            "a.js",
            "function f(a) { if (a === 1 || !a) { g(a); } return a ? 'x' + a : false; }\n",
            "a === 1 -> a !== 1; a === 1 -> a === 2; a === 1 || !a -> a === 1 && !a; g(a); -> {}; return a ? 'x' + a : false; -> return undefined;; a ? 'x' + a : false -> a ? 'x' + a : true",
        ),
        (
            "a.rs",
            "fn f(a: u8) -> bool { if g(a) { h(); } a >= 3 }\n#[test]\nfn t() { assert!(f(3)); h(); }\n",
            "if g(a) { h(); } -> if !(g(a)) { h(); }; h(); -> {}; a >= 3 -> a > 3; a >= 3 -> a >= 4",
        ),
        (
            "a.go",
            "package a\nfunc f(a int) int { if a != 2 { g(a) }; return a * 3 }\n",
            "a != 2 -> a == 2; a != 2 -> a != 3; g(a) -> {}; a * 3 -> a / 3; a * 3 -> a * 4",
        ),
    ] {
        let source = Source::parse(path, text.as_bytes()).unwrap();
        let mutations = source.mutations();
        let shown: Vec<&str> = mutations.iter().map(|mutation| mutation.shown.as_str()).collect();
        assert_eq!(shown.join("; "), due, "{path}");
        for mutation in mutations {
            let changed = mutation.apply(text);
            assert_ne!(changed, text);
            assert!(Source::parse(path, changed.as_bytes()).is_ok(), "{path}: {changed}");
        }
    }
}

#[test]
fn mutations_leave_alone_what_no_suite_checks() {
    for (path, text, due) in [
        (
            "a.py",
            "\"\"\"Doc 1 < 2.\"\"\"\nimport sys\ndef f(a: Literal[1]) -> Final[True]:\n    log.debug(a + 1)\n    self._logger.info('x', a * 2)\n    if sys.version_info >= (3, 8):\n        g(a)\nif __name__ == '__main__':\n    f(1)\n",
            "g(a) -> pass",
        ),
        (
            "a.ts",
            "type A = 1 | 2;\ninterface B { a: true }\nfunction f(a: 1): void { console.log(a + 1); g(a); }\n",
            "g(a); -> {}",
        ),
        (
            "a.rs",
            "#[repr(align(8))]\nstruct A;\nfn f(a: [u8; 4]) { log::warn!(\"{}\", 1 + 2); debug!(\"{}\", 3); g(a.0); }\n#[cfg(test)]\nmod tests { fn helper() -> u8 { 7 } }\n",
            "g(a.0); -> {}",
        ),
        ("a.go", "package a\nfunc f(a [4]int) { log.Printf(\"%d\", 1+2); g(a) }\n", "g(a) -> {}"),
    ] {
        let source = Source::parse(path, text.as_bytes()).unwrap();
        let shown: Vec<String> = source.mutations().into_iter().map(|mutation| mutation.shown).collect();
        assert_eq!(shown.join("; "), due, "{path}");
    }
}

#[test]
fn every_mutant_parses_where_code_is_written_tightly() {
    for (path, text) in [
        (
            "a.py",
            "def f(a, b):\n    if (  # why\n        a\n    ):\n        return(a)\n    return (a)and(b)\n",
        ),
        ("a.js", "function f(a, b) { if (/* c */ a) return(b); return /* c */ a+-b; }\n"),
        ("b.js", "function f(a, b) { if ('x' in a) g(a)\n  else h(b)\n  return a*/x/.y + b*+a }\n"),
        ("a.rs", "fn f(a: u32, b: u8) -> bool { if a as u8 <= b { g(); } a as u8 > b }\n"),
        ("a.go", "package a\nfunc f(a, b int) int { if a > -b { g() }; return a- -b }\n"),
    ] {
        let source = Source::parse(path, text.as_bytes()).unwrap();
        let mutations = source.mutations();
        assert!(!mutations.is_empty(), "{path}");
        for mutation in mutations {
            let changed = mutation.apply(text);
            assert!(Source::parse(path, changed.as_bytes()).is_ok(), "{path}: {changed}");
            assert!(!changed.contains("returnNone") && !changed.contains("returnundefined"), "{changed}");
        }
    }
}
