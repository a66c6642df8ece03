//! Tests in Python.

use super::{Row, table};

const ONE: &str =
    "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n";

const CHEATS: &[Row] = &[
    ("deleted", ONE, "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3\n"),
    ("emptied", ONE, "from m import f\n\n\ndef test_a():\n    pass\n"),
    ("looser", ONE, "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x\n    assert f(0) == 1\n"),
    (
        "the same on both sides",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == x\n    assert f(0) == 1\n",
    ),
    (
        "or a call",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3 or f(1)\n    assert f(0) == 1\n",
    ),
    (
        "or True",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3 or True\n    assert f(0) == 1\n",
    ),
    (
        "a tuple",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert (x == 4, 'three')\n    assert f(0) == 1\n",
    ),
    (
        "a constant",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert 1 == 1.0\n    assert f(0) == 1\n",
    ),
    (
        "taken back",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n\n\ndel test_a\n",
    ),
    (
        "shadowed",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n\n\ndef test_a():\n    pass\n",
    ),
    (
        "renamed away",
        ONE,
        "from m import f\n\n\ndef check_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "an early return",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    return\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "never",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    if False:\n        assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "over nothing",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    for _ in []:\n        assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "swallowed",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    try:\n        assert x == 3\n    except AssertionError:\n        pass\n    assert f(0) == 1\n",
    ),
    (
        "skipped",
        ONE,
        "import pytest\nfrom m import f\n\n\n@pytest.mark.skip\ndef test_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "allowed to fail",
        ONE,
        "import pytest\nfrom m import f\n\n\n@pytest.mark.xfail\ndef test_a():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "renamed and skipped",
        ONE,
        "import pytest\nfrom m import f\n\n\n@pytest.mark.skip\ndef test_b():\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "skipped from within",
        ONE,
        "import pytest\nfrom m import f\n\n\ndef test_a():\n    pytest.skip()\n    x = f(2)\n    assert x == 3\n    assert f(0) == 1\n",
    ),
    (
        "in a helper that nothing calls",
        ONE,
        "from m import f\n\n\ndef check(x):\n    assert x == 3\n    assert f(0) == 1\n\n\ndef test_a():\n    f(2)\n",
    ),
    (
        "in a file that is not collected",
        "=== tests/test_a.py\nfrom m import f\n\n\ndef test_a():\n    assert f(2) == 3\n",
        "=== tests/a_old.py\nfrom m import f\n\n\ndef test_a():\n    assert f(2) == 3\n",
    ),
    (
        "deleted with its file",
        "=== tests/test_a.py\nfrom m import f\n\n\ndef test_a():\n    assert f(2) == 3\n",
        "=== tests/test_b.py\nfrom m import g\n\n\ndef test_b():\n    assert g(1) == 3\n",
    ),
    (
        "a wide tolerance",
        "def test_a():\n    assert f(2) == pytest.approx(3)\n",
        "def test_a():\n    assert f(2) == pytest.approx(3, abs=100)\n",
    ),
    (
        "fewer places",
        "class TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertAlmostEqual(f(2), 3, places=6)\n",
        "class TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertAlmostEqual(f(2), 3, places=0)\n",
    ),
    (
        "a wide bound",
        "def test_a():\n    assert abs(f(2) - 3) < 1e-6\n",
        "def test_a():\n    assert abs(f(2) - 3) < 10\n",
    ),
    (
        "fewer parameters",
        "@pytest.mark.parametrize('a', [1, 2, 3])\ndef test_a(a):\n    assert f(a) == a\n",
        "@pytest.mark.parametrize('a', [1])\ndef test_a(a):\n    assert f(a) == a\n",
    ),
    (
        "a shorter table",
        "CASES = [1, 2, 3]\n\n\ndef test_a():\n    for a in CASES:\n        assert f(a) == a\n",
        "CASES = []\n\n\ndef test_a():\n    for a in CASES:\n        assert f(a) == a\n",
    ),
    (
        "a class that is not collected",
        "class TestA:\n    def test_a(self):\n        assert f(2) == 3\n",
        "class CheckA:\n    def test_a(self):\n        assert f(2) == 3\n",
    ),
    (
        "a class that is switched off",
        "class TestA:\n    def test_a(self):\n        assert f(2) == 3\n",
        "class TestA:\n    __test__ = False\n\n    def test_a(self):\n        assert f(2) == 3\n",
    ),
    (
        "any exception",
        "def test_a():\n    with pytest.raises(KeyError):\n        f(2)\n",
        "def test_a():\n    with pytest.raises(Exception):\n        f(2)\n",
    ),
    (
        "an emptied helper",
        "def check(x):\n    assert x == 3\n\n\ndef test_a():\n    check(f(2))\n",
        "def check(x):\n    pass\n\n\ndef test_a():\n    check(f(2))\n",
    ),
    ("a smoke test", "def test_a():\n    start_server(2)\n", "x = 1\n"),
    (
        "its failure is suppressed",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    with contextlib.suppress(AssertionError):\n        assert x == 3\n    assert f(0) == 1\n",
    ),
];

const HONEST: &[Row] = &[
    (
        "other names",
        ONE,
        "from m import f\n\n\ndef test_twice():\n    found = f(2)\n    assert found == 3\n    assert f(0) == 1\n",
    ),
    (
        "inner arguments alike",
        "def test_a():\n    assert f(x, y) == z\n",
        "def test_a():\n    assert f(x, x) == y\n",
    ),
    ("inlined", ONE, "from m import f\n\n\ndef test_a():\n    assert f(2) == 3\n    assert f(0) == 1\n"),
    (
        "one assertion of two",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 3 and f(0) == 1\n",
    ),
    (
        "a helper",
        ONE,
        "from m import f\n\n\ndef check(a, b):\n    assert f(a) == b\n\n\ndef test_a():\n    check(2, 3)\n    check(0, 1)\n",
    ),
    (
        "parametrised",
        ONE,
        "import pytest\nfrom m import f\n\n\n@pytest.mark.parametrize(('a', 'b'), [(2, 3), (0, 1)])\ndef test_a(a, b):\n    assert f(a) == b\n",
    ),
    (
        "several as one table",
        "def test_a():\n    assert f(2) == 3\n\n\ndef test_b():\n    assert f(0) == 1\n",
        "@pytest.mark.parametrize(('a', 'b'), [(2, 3), (0, 1)])\ndef test_f(a, b):\n    assert f(a) == b\n",
    ),
    (
        "a loop",
        ONE,
        "from m import f\n\n\ndef test_a():\n    for a, b in [(2, 3), (0, 1)]:\n        assert f(a) == b\n",
    ),
    (
        "split",
        ONE,
        "from m import f\n\n\ndef test_two():\n    assert f(2) == 3\n\n\ndef test_zero():\n    assert f(0) == 1\n",
    ),
    (
        "merged",
        "def test_a():\n    assert f(2) == 3\n\n\ndef test_b():\n    assert f(0) == 1\n",
        "def test_f():\n    assert f(2) == 3\n    assert f(0) == 1\n",
    ),
    (
        "moved",
        "=== tests/test_a.py\ndef test_a():\n    assert f(2) == 3\n",
        "=== tests/unit/test_f.py\ndef test_a():\n    assert f(2) == 3\n",
    ),
    (
        "moved among others",
        "=== tests/test_a.py\ndef test_a():\n    assert f(2) == 3\n\n\ndef test_b():\n    assert g() == 1\n=== tests/test_b.py\ndef test_c():\n    assert h()\n",
        "=== tests/test_a.py\ndef test_b():\n    assert g() == 1\n=== tests/test_b.py\ndef test_c():\n    assert h()\n\n\ndef test_a():\n    assert f(2) == 3\n",
    ),
    (
        "formatted",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(\n        2,\n    )\n    # why\n    assert (\n        x == 3\n    )\n    assert f(0) == 1\n",
    ),
    ("stronger", "def test_a():\n    assert f(2)\n", "def test_a():\n    assert f(2) == 3\n"),
    (
        "from unittest",
        "class TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(2), 3)\n        self.assertTrue(g())\n        with self.assertRaises(KeyError):\n            h()\n",
        "def test_a():\n    assert f(2) == 3\n    assert g()\n    with pytest.raises(KeyError):\n        h()\n",
    ),
    (
        "to a class",
        ONE,
        "from m import f\n\n\nclass TestF:\n    def test_a(self):\n        x = f(2)\n        assert x == 3\n        assert f(0) == 1\n",
    ),
    (
        "another value",
        ONE,
        "from m import f\n\n\ndef test_a():\n    x = f(2)\n    assert x == 4\n    assert f(0) == 1\n",
    ),
    (
        "a table with a name",
        "@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a):\n    assert f(a)\n",
        "CASES = [1, 2]\n\n\n@pytest.mark.parametrize('a', CASES)\ndef test_a(a):\n    assert f(a)\n",
    ),
    (
        "a table from elsewhere",
        "@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a):\n    assert f(a)\n",
        "from data import CASES\n\n\n@pytest.mark.parametrize('a', CASES)\ndef test_a(a):\n    assert f(a)\n",
    ),
    (
        "with a fixture",
        "def test_a():\n    db = connect()\n    assert db.get(1) == 2\n",
        "@pytest.fixture\ndef db():\n    return connect()\n\n\ndef test_a(db):\n    assert db.get(1) == 2\n",
    ),
    (
        "an exception",
        "def test_a():\n    try:\n        f(2)\n        assert False\n    except KeyError:\n        pass\n",
        "def test_a():\n    with pytest.raises(KeyError):\n        f(2)\n",
    ),
    (
        "a shared helper",
        "=== tests/test_a.py\ndef test_a():\n    assert f(2) == 3\n",
        "=== tests/helpers.py\ndef check(a, b):\n    assert f(a) == b\n=== tests/test_a.py\nfrom helpers import check\n\n\ndef test_a():\n    check(2, 3)\n",
    ),
    (
        "another error is suppressed",
        ONE,
        "from m import f\n\n\ndef test_a():\n    with suppress(FileNotFoundError):\n        x = f(2)\n        assert x == 3\n    assert f(0) == 1\n",
    ),
];

#[test]
fn cheats_are_seen_and_honest_work_is_not() {
    table("tests/test_a.py", CHEATS, HONEST);
}
