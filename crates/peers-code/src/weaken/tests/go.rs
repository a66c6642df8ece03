//! Tests in Go.

use super::{Row, table};

const ONE: &str = "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n";

const CHEATS: &[Row] = &[
    (
        "deleted",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n",
    ),
    ("emptied", ONE, "package a\n\nfunc TestA(t *testing.T) {\n}\n"),
    (
        "only logged",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Logf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "looser",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got < 0 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "looser by name",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.NotNil(t, F(0))\n}\n",
    ),
    (
        "the same on both sides",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != got {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "and false",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 && false {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "and a call",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 && g() {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "an early return",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\treturn\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "skipped",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tt.Skip()\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "not a test by its name",
        ONE,
        "package a\n\nfunc testA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "over nothing",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tfor range []int{} {\n\t\tif got != 3 {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "not collected",
        "=== a_test.go\npackage a\n\nfunc TestA(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
        "=== a_testing.go\npackage a\n\nfunc TestA(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "not built",
        ONE,
        "//go:build never\n\npackage a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "fewer cases",
        "package a\n\nfunc TestA(t *testing.T) {\n\ttests := []struct{ a, b int }{{2, 3}, {0, 1}}\n\tfor _, tt := range tests {\n\t\tif F(tt.a) != tt.b {\n\t\t\tt.Error(tt.a)\n\t\t}\n\t}\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\ttests := []struct{ a, b int }{{2, 3}}\n\tfor _, tt := range tests {\n\t\tif F(tt.a) != tt.b {\n\t\t\tt.Error(tt.a)\n\t\t}\n\t}\n}\n",
    ),
    (
        "a wide tolerance",
        "package a\n\nfunc TestA(t *testing.T) {\n\tassert.InDelta(t, 3.0, F(2), 0.0001)\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\tassert.InDelta(t, 3.0, F(2), 100)\n}\n",
    ),
    (
        "a wide bound",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif math.Abs(F(2)-3) > 0.0001 {\n\t\tt.Fail()\n\t}\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif math.Abs(F(2)-3) > 100 {\n\t\tt.Fail()\n\t}\n}\n",
    ),
    (
        "an emptied helper",
        "package a\n\nfunc check(t *testing.T, x int) {\n\trequire.Equal(t, 3, x)\n}\n\nfunc TestA(t *testing.T) {\n\tcheck(t, F(2))\n}\n",
        "package a\n\nfunc check(t *testing.T, x int) {\n}\n\nfunc TestA(t *testing.T) {\n\tcheck(t, F(2))\n}\n",
    ),
    (
        "in a closure that nobody calls",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tgot := F(2)\n\tcheck := func() {\n\t\tif got != 3 {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
];

const HONEST: &[Row] = &[
    (
        "other names",
        ONE,
        "package a\n\nfunc TestTwo(t *testing.T) {\n\tfound := F(2)\n\tif found != 3 {\n\t\tt.Errorf(\"found %d\", found)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "inner arguments alike",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif F(x, y) != z {\n\t\tt.Fail()\n\t}\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif F(x, x) != y {\n\t\tt.Fail()\n\t}\n}\n",
    ),
    (
        "a statement in the condition",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tif got := F(2); got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "testify",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tassert.Equal(t, 3, F(2))\n\tassert.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "a helper",
        ONE,
        "package a\n\nfunc check(t *testing.T, a, b int) {\n\tt.Helper()\n\trequire.Equal(t, b, F(a))\n}\n\nfunc TestA(t *testing.T) {\n\tcheck(t, 2, 3)\n\tcheck(t, 0, 1)\n}\n",
    ),
    (
        "a table",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\ttests := []struct{ a, b int }{{2, 3}, {0, 1}}\n\tfor _, tt := range tests {\n\t\tif got := F(tt.a); got != tt.b {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t}\n}\n",
    ),
    (
        "a table with names",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tfor name, tt := range map[string]struct{ a, b int }{\"two\": {2, 3}, \"zero\": {0, 1}} {\n\t\tt.Run(name, func(t *testing.T) {\n\t\t\trequire.Equal(t, tt.b, F(tt.a))\n\t\t})\n\t}\n}\n",
    ),
    (
        "in parts",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\trequire.Equal(t, 3, F(2))\n\t})\n\tt.Run(\"zero\", func(t *testing.T) {\n\t\trequire.Equal(t, 1, F(0))\n\t})\n}\n",
    ),
    (
        "split",
        ONE,
        "package a\n\nfunc TestTwo(t *testing.T) {\n\trequire.Equal(t, 3, F(2))\n}\n\nfunc TestZero(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "merged",
        "package a\n\nfunc TestTwo(t *testing.T) {\n\trequire.Equal(t, 3, F(2))\n}\n\nfunc TestZero(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
        ONE,
    ),
    (
        "moved",
        "=== a_test.go\npackage a\n\nfunc TestA(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
        "=== f_test.go\npackage a\n\nfunc TestA(t *testing.T) {\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
    (
        "stronger",
        "package a\n\nfunc TestA(t *testing.T) {\n\trequire.NotNil(t, F(2))\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\trequire.Equal(t, 3, F(2))\n}\n",
    ),
    (
        "one condition of two",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif F(2) != 3 {\n\t\tt.Fail()\n\t}\n\tif F(0) != 1 {\n\t\tt.Fail()\n\t}\n}\n",
        "package a\n\nfunc TestA(t *testing.T) {\n\tif F(2) != 3 || F(0) != 1 {\n\t\tt.Fail()\n\t}\n}\n",
    ),
    (
        "parallel",
        ONE,
        "package a\n\nfunc TestA(t *testing.T) {\n\tt.Parallel()\n\tgot := F(2)\n\tif got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n\trequire.Equal(t, 1, F(0))\n}\n",
    ),
];

#[test]
fn cheats_are_seen_and_honest_work_is_not() {
    table("a_test.go", CHEATS, HONEST);
}
