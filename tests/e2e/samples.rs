//! A small shop in each language: with three flaws in it, and what a step of a plan adds.

use crate::support::World;

/// A shop in one language.
pub(crate) struct Sample {
    /// Files beside those below.
    pub(crate) ground: &'static [(&'static str, &'static str)],
    /// Where prices are added up, leaving the first out.
    pub(crate) price: &'static str,
    wrong_total: &'static str,
    pub(crate) right_total: &'static str,
    /// As a total with a rate, which is another signature.
    pub(crate) rated_total: &'static str,
    /// What is in the wrong one alone, for grep.
    pub(crate) wrong: &'static str,
    /// Where a key is written down; `{key}` stands for it.
    pub(crate) login: &'static str,
    written_key: &'static str,
    pub(crate) asked_key: &'static str,
    /// A test that is skipped for no reason, and what takes that out, for sed.
    pub(crate) test: &'static str,
    skipped: &'static str,
    pub(crate) unskip: &'static str,
    /// The modules, and the total, as the code map calls them.
    pub(crate) modules: &'static [&'static str],
    pub(crate) total: &'static str,
    /// What greets by `{name}` (`{Name}` in capitals), with its tests.
    greeting: [(&'static str, &'static str); 2],
    /// What each further greeting changes, as a line that is appended.
    pub(crate) registry: Option<(&'static str, &'static str)>,
    /// What is not finished, and where that is found: a test that is left out, a TODO, a body that is empty, and a
    /// result that says nothing, in the file of the body.
    pub(crate) unfinished: [(&'static str, &'static str, u32); 3],
    pub(crate) stub_line: u32,
}

impl Sample {
    /// The shop before it sells anything.
    pub(crate) fn bare(&self) -> World {
        let world = World::repo();
        for (path, text) in self.ground {
            world.write(path, text);
        }
        world
    }

    /// The shop with its flaws.
    pub(crate) fn flawed(&self) -> World {
        let world = self.bare();
        if let Some((path, line)) = self.registry {
            let modules: String = ["login", "price"].map(|name| line.replace("{name}", name)).concat();
            world.write(path, &(world.read(path) + &modules));
        }
        world.write(self.price, self.wrong_total);
        // Not in one piece here, since it would be one in this repository too.
        let key = format!("-----BEGIN {} KEY-----", "PRIVATE");
        world.write(self.login, &self.written_key.replace("{key}", &key));
        world.write(self.test, self.skipped);
        world.write("tests/run.sh", &format!("test -f {}\n", self.price));
        world.commit("A shop");
        world
    }

    /// Source and test of a greeting: where, and what.
    pub(crate) fn greeting(&self, name: &str) -> [(String, String); 2] {
        let capital: String =
            name.chars().enumerate().map(|(i, c)| if i == 0 { c.to_ascii_uppercase() } else { c }).collect();
        let of = |text: &str| text.replace("{name}", name).replace("{Name}", &capital);
        self.greeting.map(|(path, text)| (of(path), of(text)))
    }

    /// Where the source of a greeting is.
    pub(crate) fn source(&self, name: &str) -> String {
        let [(source, _), _] = self.greeting(name);
        source
    }
}

pub(crate) const PYTHON: Sample = Sample {
    ground: &[("shop/__init__.py", "\"\"\"A shop.\"\"\"\n")],
    price: "shop/price.py",
    wrong_total: "def total(prices):\n    return sum(prices[1:])\n",
    right_total: "def total(prices):\n    return sum(prices)\n",
    rated_total: "def total(prices, rate):\n    return sum(prices) * rate\n",
    wrong: "prices.1:",
    login: "shop/login.py",
    written_key: "KEY = \"{key}\"\n",
    asked_key: "import os\n\n\ndef key():\n    return os.environ[\"SHOP_KEY\"]\n",
    test: "tests/test_price.py",
    skipped: "import unittest\n\n\nclass TotalTest(unittest.TestCase):\n    @unittest.skip(\"later\")\n    def test_total(self):\n        self.assertEqual(3, 1 + 2)\n",
    unskip: "/unittest.skip/d",
    modules: &["shop.price", "shop.login"],
    total: "shop.price.total",
    greeting: [
        (
            "shop/{name}.py",
            r#""""Greets by {name}."""


def {name}(who):
    if not isinstance(who, str):
        raise TypeError(who)
    return "{name} " + who if who else "{name}"
"#,
        ),
        (
            "tests/test_{name}.py",
            r#"import unittest

from shop.{name} import {name}


class Test{name}(unittest.TestCase):
    def test_greets_by_name(self):
        self.assertEqual({name}("Ann"), "{name} Ann")

    def test_empty_name_is_allowed(self):
        self.assertEqual({name}(""), "{name}")

    def test_rejects_a_number(self):
        with self.assertRaises(TypeError):
            {name}(3)
"#,
        ),
    ],
    registry: None,
    unfinished: [
        (
            "tests/test_hei.py",
            "import unittest\n\n\nclass TestHei(unittest.TestCase):\n    @unittest.skip(\"later\")\n    def test_greets(self):\n        self.fail()\n",
            5,
        ),
        ("shop/ciao.py", "\"\"\"Greets.\"\"\"\n\n\ndef ciao(who):\n    # TODO: greet\n    return who\n", 5),
        (
            "shop/hei.py",
            "\"\"\"Greets.\"\"\"\n\n\ndef hei(who):\n    pass\n\n\ndef moi(who):\n    return {}\n",
            4,
        ),
    ],
    stub_line: 8,
};

pub(crate) const JAVASCRIPT: Sample = Sample {
    ground: &[("package.json", "{\"name\": \"shop\", \"version\": \"1.0.0\", \"type\": \"module\"}\n")],
    price: "shop/price.js",
    wrong_total: "export function total(prices) {\n  return prices.slice(1).reduce((sum, price) => sum + price, 0);\n}\n",
    right_total: "export function total(prices) {\n  return prices.reduce((sum, price) => sum + price, 0);\n}\n",
    rated_total: "export function total(prices, rate) {\n  return rate * prices.reduce((sum, price) => sum + price, 0);\n}\n",
    wrong: "slice.1.",
    login: "shop/login.js",
    written_key: "const KEY = \"{key}\";\n\nexport function key() {\n  return KEY;\n}\n",
    asked_key: "export function key() {\n  return process.env.SHOP_KEY;\n}\n",
    test: "tests/price.test.js",
    skipped: "import assert from \"node:assert\";\nimport { test } from \"node:test\";\n\ntest.skip(\"adds all\", () => {\n  assert.equal(3, 1 + 2);\n});\n",
    unskip: "s/test.skip(/test(/",
    modules: &["shop.price", "shop.login"],
    total: "shop.price.total",
    greeting: [
        (
            "shop/{name}.js",
            r#"/** Greets by {name}. */
export function {name}(who) {
  if (typeof who !== "string") {
    throw new TypeError(String(who));
  }
  return who === "" ? "{name}" : `{name} ${who}`;
}
"#,
        ),
        (
            "tests/{name}.test.js",
            r#"import assert from "node:assert";
import { test } from "node:test";

import { {name} } from "../shop/{name}.js";

test("greets by name", () => {
  assert.equal({name}("Ann"), "{name} Ann");
});

test("an empty name is allowed", () => {
  assert.equal({name}(""), "{name}");
});

test("rejects a number", () => {
  assert.throws(() => {name}(3), TypeError);
});
"#,
        ),
    ],
    registry: None,
    unfinished: [
        (
            "tests/hei.test.js",
            "import assert from \"node:assert\";\nimport { test } from \"node:test\";\n\ntest.skip(\"greets\", () => {\n  assert.fail();\n});\n",
            4,
        ),
        (
            "shop/ciao.js",
            "/** Greets. */\nexport function ciao(who) {\n  // TODO: greet\n  return who;\n}\n",
            3,
        ),
        (
            "shop/hei.js",
            "/** Greets. */\nexport function hei(who) {}\n\n/** Greets. */\nexport function moi(who) {\n  return {};\n}\n",
            2,
        ),
    ],
    stub_line: 5,
};

pub(crate) const TYPESCRIPT: Sample = Sample {
    ground: &[
        ("package.json", "{\"name\": \"shop\", \"version\": \"1.0.0\", \"type\": \"module\"}\n"),
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n"),
    ],
    price: "shop/price.ts",
    wrong_total: "export function total(prices: number[]): number {\n  return prices.slice(1).reduce((sum, price) => sum + price, 0);\n}\n",
    right_total: "export function total(prices: number[]): number {\n  return prices.reduce((sum, price) => sum + price, 0);\n}\n",
    rated_total: "export function total(prices: number[], rate: number): number {\n  return rate * prices.reduce((sum, price) => sum + price, 0);\n}\n",
    wrong: "slice.1.",
    login: "shop/login.ts",
    written_key: "const KEY = \"{key}\";\n\nexport function key(): string {\n  return KEY;\n}\n",
    asked_key: "export function key(): string {\n  return process.env.SHOP_KEY ?? \"\";\n}\n",
    test: "tests/price.test.ts",
    skipped: "import { expect, it } from \"vitest\";\n\nit.skip(\"adds all\", () => {\n  expect(1 + 2).toBe(3);\n});\n",
    unskip: "s/it.skip(/it(/",
    modules: &["shop.price", "shop.login"],
    total: "shop.price.total",
    greeting: [
        (
            "shop/{name}.ts",
            r#"/** Greets by {name}. */
export function {name}(who: string): string {
  if (who.includes("\n")) {
    throw new RangeError(who);
  }
  return who === "" ? "{name}" : `{name} ${who}`;
}
"#,
        ),
        (
            "tests/{name}.test.ts",
            r#"import { expect, it } from "vitest";

import { {name} } from "../shop/{name}";

it("greets by name", () => {
  expect({name}("Ann")).toBe("{name} Ann");
});

it("allows an empty name", () => {
  expect({name}("")).toBe("{name}");
});

it("rejects a line break", () => {
  expect(() => {name}("a\nb")).toThrow(RangeError);
});
"#,
        ),
    ],
    registry: None,
    unfinished: [
        (
            "tests/hei.test.ts",
            "import { expect, it } from \"vitest\";\n\nit.skip(\"greets\", () => {\n  expect(1).toBe(2);\n});\n",
            3,
        ),
        (
            "shop/ciao.ts",
            "/** Greets. */\nexport function ciao(who: string): string {\n  // TODO: greet\n  return who;\n}\n",
            3,
        ),
        (
            "shop/hei.ts",
            "/** Greets. */\nexport function hei(who: string): void {}\n\n/** Greets. */\nexport function moi(who: string): object {\n  return {};\n}\n",
            2,
        ),
    ],
    stub_line: 5,
};

pub(crate) const RUST: Sample = Sample {
    ground: &[
        ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/lib.rs", "//! A shop.\n\n"),
    ],
    price: "src/price.rs",
    wrong_total: "//! Prices.\n\n/// Adds them up.\npub fn total(prices: &[u32]) -> u32 {\n    prices[1..].iter().sum()\n}\n",
    right_total: "//! Prices.\n\n/// Adds them up.\npub fn total(prices: &[u32]) -> u32 {\n    prices.iter().sum()\n}\n",
    rated_total: "//! Prices.\n\n/// Adds them up.\npub fn total(prices: &[u32], rate: u32) -> u32 {\n    rate * prices.iter().sum::<u32>()\n}\n",
    wrong: "prices.1",
    login: "src/login.rs",
    written_key: "//! Login.\n\nconst KEY: &str = \"{key}\";\n\n/// The key.\npub fn key() -> String {\n    KEY.to_owned()\n}\n",
    asked_key: "//! Login.\n\n/// The key.\npub fn key() -> String {\n    std::env::var(\"SHOP_KEY\").unwrap_or_default()\n}\n",
    test: "tests/price.rs",
    skipped: "#[test]\n#[ignore]\nfn adds_all() {\n    assert_eq!(1 + 2, 3);\n}\n",
    unskip: "/ignore/d",
    modules: &["lib", "price", "login"],
    total: "price.total",
    greeting: [
        (
            "src/{name}.rs",
            r#"//! Greets by {name}.

/// Greets.
///
/// # Errors
/// The name, where there is a line break in it.
pub fn {name}(who: &str) -> Result<String, String> {
    if who.contains('\n') {
        return Err(who.to_owned());
    }
    Ok(if who.is_empty() { "{name}".to_owned() } else { format!("{name} {who}") })
}
"#,
        ),
        (
            "tests/{name}.rs",
            r#"use shop::{name}::{name};

#[test]
fn greets_by_name() {
    assert_eq!({name}("Ann"), Ok("{name} Ann".to_owned()));
}

#[test]
fn an_empty_name_is_allowed() {
    assert_eq!({name}(""), Ok("{name}".to_owned()));
}

#[test]
fn rejects_a_line_break() {
    assert!({name}("a\nb").is_err());
}
"#,
        ),
    ],
    registry: Some(("src/lib.rs", "pub mod {name};\n")),
    unfinished: [
        ("tests/hei.rs", "#[test]\n#[ignore]\nfn greets() {\n    panic!();\n}\n", 2),
        (
            "src/ciao.rs",
            "//! Greets.\n\n/// Greets.\npub fn ciao(who: &str) -> String {\n    // TODO: greet\n    who.to_owned()\n}\n",
            5,
        ),
        (
            "src/hei.rs",
            "//! Greets.\n\n/// Greets.\npub fn hei(_who: &str) {}\n\n/// Greets.\npub fn moi(_who: &str) -> Option<String> {\n    None\n}\n",
            4,
        ),
    ],
    stub_line: 7,
};

pub(crate) const GO: Sample = Sample {
    ground: &[("go.mod", "module shop\n\ngo 1.21\n")],
    price: "shop/price.go",
    wrong_total: "// Package shop sells.\npackage shop\n\n// Total adds prices up.\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, price := range prices[1:] {\n\t\tsum += price\n\t}\n\treturn sum\n}\n",
    right_total: "// Package shop sells.\npackage shop\n\n// Total adds prices up.\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, price := range prices {\n\t\tsum += price\n\t}\n\treturn sum\n}\n",
    rated_total: "// Package shop sells.\npackage shop\n\n// Total adds prices up.\nfunc Total(prices []int, rate int) int {\n\tsum := 0\n\tfor _, price := range prices {\n\t\tsum += price * rate\n\t}\n\treturn sum\n}\n",
    wrong: "prices.1:",
    login: "shop/login.go",
    written_key: "package shop\n\nconst written = \"{key}\"\n\n// Key is the key.\nfunc Key() string {\n\treturn written\n}\n",
    asked_key: "package shop\n\nimport \"os\"\n\n// Key is the key.\nfunc Key() string {\n\treturn os.Getenv(\"SHOP_KEY\")\n}\n",
    test: "shop/price_test.go",
    skipped: "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tt.Skip(\"later\")\n\tif 1+2 != 3 {\n\t\tt.Fatal(\"not 3\")\n\t}\n}\n",
    unskip: "/t.Skip/d",
    modules: &["shop.price", "shop.login"],
    total: "shop.price.Total",
    greeting: [
        (
            "shop/{name}.go",
            r#"package shop

import (
	"errors"
	"strings"
)

// {Name} greets.
func {Name}(who string) (string, error) {
	if strings.Contains(who, "\n") {
		return "", errors.New(who)
	}
	if who == "" {
		return "{name}", nil
	}
	return "{name} " + who, nil
}
"#,
        ),
        (
            "shop/{name}_test.go",
            r#"package shop

import "testing"

func Test{Name}GreetsByName(t *testing.T) {
	if got, err := {Name}("Ann"); err != nil || got != "{name} Ann" {
		t.Errorf("%q, %v", got, err)
	}
}

func Test{Name}EmptyNameIsAllowed(t *testing.T) {
	if got, err := {Name}(""); err != nil || got != "{name}" {
		t.Errorf("%q, %v", got, err)
	}
}

func Test{Name}RejectsALineBreak(t *testing.T) {
	if _, err := {Name}("a\nb"); err == nil {
		t.Error("no error")
	}
}
"#,
        ),
    ],
    registry: None,
    unfinished: [
        (
            "shop/hei_test.go",
            "package shop\n\nimport \"testing\"\n\nfunc TestHei(t *testing.T) {\n\tt.Skip(\"later\")\n}\n",
            6,
        ),
        (
            "shop/ciao.go",
            "package shop\n\n// Ciao greets.\nfunc Ciao(who string) string {\n\t// TODO: greet\n\treturn who\n}\n",
            5,
        ),
        (
            "shop/hei.go",
            "package shop\n\n// Hei greets.\nfunc Hei(who string) {}\n\n// Moi greets.\nfunc Moi(who string) error {\n\treturn nil\n}\n",
            4,
        ),
    ],
    stub_line: 7,
};

/// One test for each language; without being asked for all, of the first.
macro_rules! in_each_language {
    ($name:ident, $run:ident) => {
        mod $name {
            use crate::samples::{GO, JAVASCRIPT, PYTHON, RUST, TYPESCRIPT};

            #[test]
            fn python() {
                super::$run(&PYTHON);
            }

            #[test]
            #[ignore = "long: all languages with --include-ignored, as in .ci/run"]
            fn javascript() {
                super::$run(&JAVASCRIPT);
            }

            #[test]
            #[ignore = "long: all languages with --include-ignored, as in .ci/run"]
            fn typescript() {
                super::$run(&TYPESCRIPT);
            }

            #[test]
            #[ignore = "long: all languages with --include-ignored, as in .ci/run"]
            fn rust() {
                super::$run(&RUST);
            }

            #[test]
            #[ignore = "long: all languages with --include-ignored, as in .ci/run"]
            fn go() {
                super::$run(&GO);
            }
        }
    };
}
pub(crate) use in_each_language;
