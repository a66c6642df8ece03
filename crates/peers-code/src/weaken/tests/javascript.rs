//! Tests in JavaScript and TypeScript.

use super::{Row, table};

const ONE: &str = "it('a', () => {\n  const x = f(2);\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n});\n";

const CHEATS: &[Row] = &[
    ("deleted", ONE, "it('a', () => {\n  const x = f(2);\n  expect(x).toBe(3);\n});\n"),
    ("emptied", ONE, "it('a', () => {});\n"),
    (
        "looser",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x).toBeDefined();\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "without a matcher",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "the same on both sides",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x).toBe(x);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "a constant",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(true).toBe(true);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "or",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x === 3 || true).toBe(true);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "or another",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x === 3 || f(1)).toBe(true);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "anything",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x).toEqual(expect.anything());\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "an early return",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  return;\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "never",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  if (false) {\n    expect(x).toBe(3);\n  }\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "over nothing",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  for (const y of []) {\n    expect(x).toBe(3);\n  }\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "each of nothing",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  [].forEach((y) => {\n    expect(x).toBe(3);\n  });\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "swallowed",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  try {\n    expect(x).toBe(3);\n  } catch (e) {}\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "skipped",
        ONE,
        "it.skip('a', () => {\n  const x = f(2);\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    ("x", ONE, "xit('a', () => {\n  const x = f(2);\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n});\n"),
    (
        "a group is skipped",
        ONE,
        "describe.skip('g', () => {\n  it('a', () => {\n    const x = f(2);\n    expect(x).toBe(3);\n    expect(f(0)).toBe(1);\n  });\n});\n",
    ),
    (
        "no longer declared",
        ONE,
        "const a = () => {\n  const x = f(2);\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n};\n",
    ),
    (
        "not collected",
        "=== src/a.test.ts\nit('a', () => {\n  expect(f(2)).toBe(3);\n});\n",
        "=== src/a.old.ts\nit('a', () => {\n  expect(f(2)).toBe(3);\n});\n",
    ),
    (
        "fewer cases",
        "it.each([[1], [2], [3]])('a %s', (x) => {\n  expect(f(x)).toBe(x);\n});\n",
        "it.each([[1]])('a %s', (x) => {\n  expect(f(x)).toBe(x);\n});\n",
    ),
    (
        "a wide tolerance",
        "it('a', () => {\n  expect(f(2)).toBeCloseTo(3, 6);\n});\n",
        "it('a', () => {\n  expect(f(2)).toBeCloseTo(3, 0);\n});\n",
    ),
    (
        "any error",
        "it('a', () => {\n  expect(() => f()).toThrow(KeyError);\n});\n",
        "it('a', () => {\n  expect(() => f()).toThrow();\n});\n",
    ),
    (
        "assert",
        "test('a', () => {\n  assert.strictEqual(f(2), 3);\n});\n",
        "test('a', () => {\n  assert.ok(f(2));\n});\n",
    ),
    (
        "an emptied helper",
        "function check(x) {\n  expect(x).toBe(3);\n}\nit('a', () => {\n  check(f(2));\n});\n",
        "function check(x) {}\nit('a', () => {\n  check(f(2));\n});\n",
    ),
    (
        "in a closure that nobody calls",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  const check = () => {\n    expect(x).toBe(3);\n  };\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "a new test alone is run",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x).toBe(3);\n  expect(f(0)).toBe(1);\n});\nit.only('b', () => {\n  expect(f(1)).toBe(2);\n});\n",
    ),
];

const HONEST: &[Row] = &[
    (
        "other names",
        ONE,
        "it('gives three', () => {\n  const found = f(2);\n  expect(found).toBe(3);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "inner arguments alike",
        "it('a', () => {\n  expect(f(x, y)).toBe(z);\n});\n",
        "it('a', () => {\n  expect(f(x, x)).toBe(y);\n});\n",
    ),
    ("inlined", ONE, "it('a', () => {\n  expect(f(2)).toBe(3);\n  expect(f(0)).toBe(1);\n});\n"),
    (
        "in a group",
        ONE,
        "describe('f', () => {\n  it('a', () => {\n    const x = f(2);\n    expect(x).toBe(3);\n    expect(f(0)).toBe(1);\n  });\n});\n",
    ),
    (
        "a helper",
        ONE,
        "const check = (a, b) => {\n  expect(f(a)).toBe(b);\n};\nit('a', () => {\n  check(2, 3);\n  check(0, 1);\n});\n",
    ),
    ("cases", ONE, "it.each([[2, 3], [0, 1]])('f %s', (a, b) => {\n  expect(f(a)).toBe(b);\n});\n"),
    (
        "a loop",
        ONE,
        "it('a', () => {\n  for (const [a, b] of [[2, 3], [0, 1]]) {\n    expect(f(a)).toBe(b);\n  }\n});\n",
    ),
    (
        "split",
        ONE,
        "it('two', () => {\n  expect(f(2)).toBe(3);\n});\nit('zero', () => {\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "merged",
        "it('two', () => {\n  expect(f(2)).toBe(3);\n});\nit('zero', () => {\n  expect(f(0)).toBe(1);\n});\n",
        ONE,
    ),
    (
        "moved",
        "=== src/a.test.ts\nit('a', () => {\n  expect(f(2)).toBe(3);\n});\n",
        "=== src/__tests__/f.ts\nit('a', () => {\n  expect(f(2)).toBe(3);\n});\n",
    ),
    (
        "formatted",
        ONE,
        "it(\"a\", () => {\n    const x = f(\n        2\n    );\n    // why\n    expect(x)\n        .toBe(3);\n    expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "stronger",
        "it('a', () => {\n  expect(f(2)).toBeDefined();\n});\n",
        "it('a', () => {\n  expect(f(2)).toBe(3);\n});\n",
    ),
    (
        "another value",
        ONE,
        "it('a', () => {\n  const x = f(2);\n  expect(x).toBe(4);\n  expect(f(0)).toBe(1);\n});\n",
    ),
    (
        "strict",
        "it('a', () => {\n  expect(f(2)).toEqual({ a: 1 });\n});\n",
        "it('a', () => {\n  expect(f(2)).toStrictEqual({ a: 1 });\n});\n",
    ),
    (
        "from assert",
        "test('a', () => {\n  assert.strictEqual(f(2), 3);\n  assert.ok(g());\n});\n",
        "test('a', () => {\n  expect(f(2)).toBe(3);\n  expect(g()).toBeTruthy();\n});\n",
    ),
    (
        "async",
        "it('a', () => {\n  return load().then((x) => {\n    expect(x).toBe(3);\n  });\n});\n",
        "it('a', async () => {\n  const x = await load();\n  expect(x).toBe(3);\n});\n",
    ),
    (
        "a closure that is passed on",
        ONE,
        "it('a', () => {\n  const check = (b) => {\n    expect(f(2)).toBe(3);\n    expect(f(0)).toBe(b);\n  };\n  [1, 1].forEach(check);\n});\n",
    ),
];

#[test]
fn cheats_are_seen_and_honest_work_is_not() {
    for usual in ["src/a.test.ts", "src/a.test.tsx", "src/a.test.js", "src/a.test.jsx"] {
        table(usual, CHEATS, HONEST);
    }
}
