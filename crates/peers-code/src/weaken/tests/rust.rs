//! Tests in Rust.

use super::{Row, table};

const ONE: &str =
    "#[test]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n";

const CHEATS: &[Row] = &[
    ("deleted", ONE, "#[test]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, 3);\n}\n"),
    ("emptied", ONE, "#[test]\nfn a() {}\n"),
    (
        "looser",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert!(x > 0);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "the same on both sides",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, x);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "a constant",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert!(true);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "or true",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert!(x == 3 || true);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "or a call",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert!(x == 3 || g());\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "an early return",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    return;\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "never",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    if false {\n        assert_eq!(x, 3);\n    }\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "over nothing",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    for _ in 0..0 {\n        assert_eq!(x, 3);\n    }\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "no attribute",
        ONE,
        "fn a() {\n    let x = f(2);\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "ignored",
        ONE,
        "#[test]\n#[ignore]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "ignored under a name",
        ONE,
        "#[test]\n#[ignore]\nfn b() {\n    let x = f(2);\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "under a condition",
        ONE,
        "#[test]\n#[cfg(feature = \"never\")]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "a module under a condition",
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        assert_eq!(f(2), 3);\n    }\n}\n",
        "#[cfg(any())]\nmod tests {\n    #[test]\n    fn a() {\n        assert_eq!(f(2), 3);\n    }\n}\n",
    ),
    (
        "fewer cases",
        "#[test]\nfn a() {\n    for (a, b) in [(2, 3), (0, 1)] {\n        assert_eq!(f(a), b);\n    }\n}\n",
        "#[test]\nfn a() {\n    for (a, b) in [(2, 3)] {\n        assert_eq!(f(a), b);\n    }\n}\n",
    ),
    (
        "fewer attributes",
        "#[rstest]\n#[case(2, 3)]\n#[case(0, 1)]\nfn a(#[case] a: u8, #[case] b: u8) {\n    assert_eq!(f(a), b);\n}\n",
        "#[rstest]\n#[case(2, 3)]\nfn a(#[case] a: u8, #[case] b: u8) {\n    assert_eq!(f(a), b);\n}\n",
    ),
    (
        "a wide tolerance",
        "#[test]\nfn a() {\n    assert!((f(2) - 3.0).abs() < 1e-6);\n}\n",
        "#[test]\nfn a() {\n    assert!((f(2) - 3.0).abs() < 100.0);\n}\n",
    ),
    (
        "an emptied helper",
        "fn check(x: u8) {\n    assert_eq!(x, 3);\n}\n#[test]\nfn a() {\n    check(f(2));\n}\n",
        "fn check(x: u8) {}\n#[test]\nfn a() {\n    check(f(2));\n}\n",
    ),
    (
        "a helper that nothing calls",
        ONE,
        "fn check(x: u8) {\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n#[test]\nfn a() {\n    f(2);\n}\n",
    ),
    (
        "under a condition of the build",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    #[cfg(feature = \"never\")]\n    assert_eq!(x, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "in a closure that nobody calls",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    let check = || {\n        assert_eq!(x, 3);\n    };\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "its panic is caught",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    let _ = std::panic::catch_unwind(|| {\n        assert_eq!(x, 3);\n    });\n    assert_eq!(f(0), 1);\n}\n",
    ),
];

const HONEST: &[Row] = &[
    (
        "other names",
        ONE,
        "#[test]\nfn f_of_two_is_three() {\n    let found = f(2);\n    assert_eq!(found, 3);\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "inner arguments alike",
        "#[test]\nfn a() {\n    assert!(f(x, y) == z);\n}\n",
        "#[test]\nfn a() {\n    assert!(f(x, x) == y);\n}\n",
    ),
    ("inlined", ONE, "#[test]\nfn a() {\n    assert_eq!(f(2), 3);\n    assert_eq!(f(0), 1);\n}\n"),
    (
        "a helper",
        ONE,
        "fn check(a: u8, b: u8) {\n    assert_eq!(f(a), b);\n}\n#[test]\nfn a() {\n    check(2, 3);\n    check(0, 1);\n}\n",
    ),
    (
        "a loop",
        ONE,
        "#[test]\nfn a() {\n    for (a, b) in [(2, 3), (0, 1)] {\n        assert_eq!(f(a), b);\n    }\n}\n",
    ),
    (
        "cases",
        ONE,
        "#[rstest]\n#[case(2, 3)]\n#[case(0, 1)]\nfn a(#[case] a: u8, #[case] b: u8) {\n    assert_eq!(f(a), b);\n}\n",
    ),
    (
        "split",
        ONE,
        "#[test]\nfn two() {\n    assert_eq!(f(2), 3);\n}\n#[test]\nfn zero() {\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "merged",
        "#[test]\nfn two() {\n    assert_eq!(f(2), 3);\n}\n#[test]\nfn zero() {\n    assert_eq!(f(0), 1);\n}\n",
        ONE,
    ),
    (
        "into a module",
        ONE,
        "#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() {\n        let x = f(2);\n        assert_eq!(x, 3);\n        assert_eq!(f(0), 1);\n    }\n}\n",
    ),
    (
        "moved",
        "=== tests/a.rs\n#[test]\nfn a() {\n    assert_eq!(f(2), 3);\n}\n",
        "=== tests/b.rs\n#[test]\nfn a() {\n    assert_eq!(f(2), 3);\n}\n",
    ),
    (
        "formatted",
        ONE,
        "#[test]\nfn a() {\n    let x = f(\n        2\n    );\n    // why\n    assert_eq!(\n        x,\n        3\n    );\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "stronger",
        "#[test]\nfn a() {\n    assert!(f(2).is_some());\n}\n",
        "#[test]\nfn a() {\n    assert_eq!(f(2), Some(3));\n}\n",
    ),
    (
        "a macro for another",
        "#[test]\nfn a() {\n    assert!(f(2) == 3);\n}\n",
        "#[test]\nfn a() {\n    assert_eq!(f(2), 3);\n}\n",
    ),
    (
        "a message",
        ONE,
        "#[test]\nfn a() {\n    let x = f(2);\n    assert_eq!(x, 3, \"two gives {x}\");\n    assert_eq!(f(0), 1);\n}\n",
    ),
    (
        "a result",
        ONE,
        "#[test]\nfn a() -> Result<(), E> {\n    let x = f(2)?;\n    assert_eq!(x, 3);\n    assert_eq!(f(0)?, 1);\n    Ok(())\n}\n",
    ),
    (
        "a closure that is called",
        ONE,
        "#[test]\nfn a() {\n    let check = |a, b| assert_eq!(f(a), b);\n    check(2, 3);\n    check(0, 1);\n    assert_eq!(f(2), 3);\n}\n",
    ),
];

#[test]
fn cheats_are_seen_and_honest_work_is_not() {
    table("tests/a.rs", CHEATS, HONEST);
}
