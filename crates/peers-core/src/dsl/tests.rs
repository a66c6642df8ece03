//! Tests of `dsl`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Evidence, Expr, strict_json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Pass,
    Fail,
    /// Red because it could not be evaluated.
    Error,
    /// Refused before the run.
    Refused,
}

use Answer::{Error, Fail, Pass, Refused};

fn read(path: &str) -> Result<Value, String> {
    match path {
        "cov.json" => Ok(json!({
            "totals": {"percent": 82.5, "ok": true},
            "items": [1, 2, 3],
            "n": null,
            "a-b": 1,
            "names": ["x", "y"],
            "deep": {"list": [{"k": "v"}]},
            "big": 18_446_744_073_709_551_615_u64,
            "in": 7,
            "text": "abc",
        })),
        "linked-dir/x.json" => Err("a component is a symbolic link".into()),
        _ => Err("no such file".into()),
    }
}

fn evidence(stdout: &str) -> Evidence<'_> {
    Evidence { exit_code: 0, signal: None, timed_out: false, stdout, stderr: "", json: &read }
}

fn judge(source: &str, evidence: &Evidence<'_>) -> Answer {
    match Expr::parse(source).map(|expr| expr.eval(evidence)) {
        Err(_) => Refused,
        Ok(Err(_)) => Error,
        Ok(Ok(true)) => Pass,
        Ok(Ok(false)) => Fail,
    }
}

fn table(stdout: &str, rows: &[(&str, Answer)]) {
    for (source, wanted) in rows {
        let got = judge(source, &evidence(stdout));
        let why = Expr::parse(source).map(|e| e.eval(&evidence(stdout)));
        assert_eq!(got, *wanted, "{source}: {why:?}");
    }
}

#[test]
fn displays_and_stars_are_no_part_of_the_language() {
    let sets = ["{} == {}", "{1} == {1}", "{'a': 1} == {'a': 1}", "regex(*stdout)"];
    let words = ["await stdout", "(yield 1) == 1", "+exit_code == 0", "~exit_code == -1"];
    table("3 passed\n", &[sets, words].concat().iter().map(|source| (*source, Refused)).collect::<Vec<_>>());
}

#[test]
fn the_published_examples_have_the_published_verdicts() {
    let slow = format!("regex('(a+)+$', '{}b') == None", "a".repeat(44));
    let parens = format!("{}exit_code == 0{}", "(".repeat(300), ")".repeat(300));
    let sums = format!("exit_code == {}1", "1+".repeat(5000));
    table(
        "3 passed\n",
        &[
            ("exit_code == 0", Pass),
            ("0 <= exit_code < 5", Pass),
            ("exit_code == 0.0", Pass),
            ("exit_code", Refused),
            ("regex('passed', stdout)", Refused),
            ("stdout.strip", Refused),
            ("exit_code == 0 and stdout", Refused),
            ("not exit_code", Refused),
            ("regex('passed', stdout) != None", Pass),
            ("not regex('FAIL', stdout)", Pass),
            ("regex('FAIL', stdout) is None", Pass),
            ("regex('passed', stdout) and True", Pass),
            ("regex('absent', stdout) and True", Fail),
            ("'passed' in stdout", Pass),
            ("'passed' not in stdout", Fail),
            ("exit_code == 0 or json('nope.json').x == 1", Pass),
            ("exit_code == 0 and (stderr == '' or regex('warn', stderr) == None)", Pass),
            ("json('cov.json').totals.percent >= 80", Pass),
            ("json('cov.json').totals.ok", Pass),
            ("json('./cov.json').n == None", Pass),
            ("len(json('cov.json').items) == 3", Pass),
            ("2 in json('cov.json').items", Pass),
            ("int(json('cov.json').totals.percent) == 82", Pass),
            ("json('cov.json').missing == 1", Error),
            ("json('nope.json') == 1", Error),
            ("json('linked-dir/x.json').v == 7", Error),
            ("json('/etc/passwd') == 1", Refused),
            ("json('../x') == 1", Refused),
            ("int(stdout.strip()) < 5", Error),
            ("len(stdout.splitlines()) == 1", Pass),
            ("stdout.startswith('3')", Pass),
            ("stdout + stderr == '3 passed\\n'", Pass),
            ("stdout.strip().lower() == '3 passed'", Pass),
            ("stdout.split(' ', 1) == 1", Refused),
            ("regex(pattern='x', text=stdout) == None", Refused),
            ("exit_code == -15", Fail),
            ("1 - 1 == 0", Refused),
            ("2 * 3 == 6", Refused),
            ("10 ** 9 > 1", Refused),
            ("stdout < 3", Refused),
            ("exit_code == '0'", Refused),
            ("stdout[0] == '3'", Refused),
            ("exit_code in (0, 1)", Refused),
            ("[1] == [1]", Refused),
            ("exit_code if True else 1", Refused),
            ("'x'.strip() == 'x'", Refused),
            ("().__class__", Refused),
            ("stdout.__class__", Refused),
            ("json('cov.json')._data == 1", Refused),
            ("__import__('os')", Refused),
            ("open('/etc/passwd')", Refused),
            ("getattr(stdout, 'x')", Refused),
            ("exec('x')", Refused),
            ("unknown == 1", Refused),
            ("lambda: True", Refused),
            ("[x for x in stdout]", Refused),
            ("f'{stdout}' == ''", Refused),
            ("(x := 1) == 1", Refused),
            ("b'a' == b'a'", Refused),
            ("1j == 1", Refused),
            ("stdout.encode()", Refused),
            ("stdout.format('x') == ''", Refused),
            ("stdout.replace('a','b') == ''", Refused),
            ("regex('x', stdout).group(1) == '3'", Refused),
            ("regex('[', stdout) == None", Refused),
            (&slow, Pass),
            ("regex(stdout, stdout) != None", Refused),
            ("9999999999999999999 > 1", Refused),
            ("int('99999999999999999999') > 1", Error),
            ("float('inf') > 1", Error),
            ("1e400 > 1", Refused),
            ("True", Refused),
            ("None is None", Refused),
            ("json == json", Refused),
            ("cwd == cwd", Refused),
            ("exit_code == 0; exit_code == 1", Refused),
            ("import os", Refused),
            ("", Refused),
            ("exit_code == 0 # c\n and stderr != ''", Refused),
            (&parens, Refused),
            (&sums, Refused),
        ],
    );
    table(
        "3\n",
        &[("int(stdout.strip()) < 5", Pass), ("int(stdout) == 3", Pass), ("float(stdout) == 3", Pass)],
    );
}

#[test]
fn mixed_kinds_are_told_apart_at_load_or_unequal_at_run_time() {
    table(
        "3\n",
        &[
            ("True == 1", Refused),
            ("stdout == None", Refused),
            ("exit_code is 0", Refused),
            ("exit_code is None", Refused),
            ("regex('3', stdout) == True", Refused),
            ("json('cov.json').totals.ok == 1", Fail),
            ("json('cov.json').text == 1", Fail),
            ("json('cov.json').text < 1", Error),
            ("json('cov.json').totals.ok < 2", Error),
            ("json('cov.json').text == 'abc'", Pass),
            ("json('cov.json').names == stdout.split()", Fail),
            ("json('cov.json').n is None", Pass),
            ("json('cov.json').items is not None", Pass),
            ("json('cov.json').n and exit_code == 0", Error),
            ("json('cov.json').items", Error),
            ("json('cov.json').totals.percent", Error),
            ("not json('cov.json').totals.ok", Fail),
            ("json('cov.json').big == 1", Error),
            ("'totals' in json('cov.json')", Pass),
            ("1 in json('cov.json')", Error),
            ("'x' in json('cov.json').names", Pass),
            ("'b' in json('cov.json').text", Pass),
            ("'x' in json('cov.json').n", Error),
            ("json('cov.json').items == json('./cov.json').items", Pass),
            ("exit_code + 1 == 1", Pass),
            ("exit_code + 0.5 < 1", Pass),
            ("exit_code + stdout == '0'", Refused),
            ("json('cov.json').text + 1 == 2", Error),
            ("json('cov.json').totals.ok + 1 == 2", Error),
            ("json('cov.json').items + 1 == 2", Error),
            ("999999999999999999 + exit_code + 999999999999999999 > 1", Pass),
        ],
    );
}

#[test]
fn signal_and_time_limit_can_be_asked_for() {
    let base = evidence("");
    let killed = Evidence { exit_code: 143, signal: Some(15), ..base };
    assert_eq!(judge("signal == 15 and exit_code == 143", &killed), Pass);
    assert_eq!(judge("signal is None and not timed_out", &killed), Fail);
    assert_eq!(judge("signal is None and not timed_out", &base), Pass);
    assert_eq!(judge("signal == None", &base), Pass);
    assert_eq!(judge("signal < 9", &base), Error, "None has no order");
    assert_eq!(judge("exit_code == 143", &Evidence { timed_out: true, ..killed }), Pass);
}

#[test]
fn json_pointers_reach_what_dots_cannot() {
    table(
        "",
        &[
            ("json('cov.json', '/a-b') == 1", Pass),
            ("json('cov.json', '/items/0') == 1", Pass),
            ("json('cov.json', '/items/3') == 1", Error),
            ("json('cov.json', '/items/00') == 1", Error),
            ("json('cov.json', '/items/-') == 1", Error),
            ("json('cov.json', '/deep/list/0/k') == 'v'", Pass),
            ("json('cov.json', '/deep').list == 1", Fail),
            ("json('cov.json', '') == 1", Fail),
            ("json('cov.json', 'a-b') == 1", Refused),
            ("json('cov.json', '/a~2b') == 1", Refused),
            ("json('cov.json', stdout) == 1", Refused),
            ("json('cov.json').in == 7", Refused),
            ("json('cov.json', '/in') == 7", Pass),
            ("json('.//cov.json').items.x == 1", Error),
            ("json('.') == 1", Refused),
            ("json('') == 1", Refused),
            ("json('a/../cov.json') == 1", Refused),
            ("json('a\\x00b') == 1", Refused),
            ("json(stdout) == 1", Refused),
            ("json() == 1", Refused),
            ("json('cov.json').items() == 1", Refused),
        ],
    );
}

#[test]
fn a_file_is_read_once_per_evaluation_and_only_when_needed() {
    let reads = std::cell::Cell::new(0);
    let count = |path: &str| {
        reads.set(reads.get() + 1);
        read(path)
    };
    let evidence = Evidence { json: &count, ..evidence("") };
    let expr = Expr::parse("json('cov.json').n == None and json('./cov.json').totals.ok").unwrap();
    assert!(expr.eval(&evidence).unwrap());
    assert_eq!(reads.get(), 1);
    let short = Expr::parse("exit_code == 1 and json('cov.json').totals.ok").unwrap();
    assert!(!short.eval(&evidence).unwrap());
    assert_eq!(reads.get(), 1);
}

#[test]
fn the_text_methods_do_what_their_names_say() {
    table(
        "  ok\r\nFAILED 2\n\n",
        &[
            ("stdout.last_line() == 'FAILED 2'", Pass),
            ("len(stdout.lines()) == 3", Pass),
            ("len(stdout.splitlines()) == 3", Pass),
            ("'FAILED 2' in stdout.lines()", Pass),
            ("'FAILED' in stdout.lines()", Fail),
            ("stdout.lstrip().startswith('ok')", Pass),
            ("stdout.rstrip().endswith('2')", Pass),
            ("stdout.strip().upper().lower().endswith('failed 2')", Pass),
            ("'ok' in stdout.split()", Pass),
            ("len(stdout.split('F')) == 2", Pass),
            ("stdout.split('') == stdout.split()", Refused),
            ("stdout.split(stderr) == stdout.split()", Error),
            ("stdout.strip(' \\n').startswith('ok')", Pass),
            ("stdout.strip().lines().lower() == 'x'", Refused),
            ("stdout.startswith(3)", Refused),
            ("stdout.lower('x') == ''", Refused),
            ("(stdout + stderr).strip().startswith('ok')", Pass),
            ("len(exit_code) == 1", Refused),
            ("int(timed_out) == 0", Refused),
            ("int('+4') == 4 and int(' -4 ') == -4", Pass),
            ("int('1_0') == 10", Error),
            ("int('4.0') == 4", Error),
            ("float('nan') == 1", Error),
            ("float('1e3') == 1000", Pass),
            ("int(json('cov.json').totals.ok) == 1", Error),
        ],
    );
    table("", &[("stdout.last_line() == ''", Pass), ("stdout.splitlines() == stdout.split()", Pass)]);
}

#[test]
fn a_dollar_matches_before_one_final_newline() {
    table(
        "2 FAIL\n",
        &[
            ("regex('FAIL$', stdout) == None", Fail),
            ("regex('^2 FAIL$', stdout) != None", Pass),
            ("regex('2$', stdout) == None", Pass),
        ],
    );
    table(
        "2 FAIL\n\n",
        &[("regex('FAIL$', stdout) == None", Pass), ("regex('(?m)FAIL$', stdout) == None", Fail)],
    );
}

#[test]
fn string_literals_keep_pattern_escapes_and_refuse_ambiguous_ones() {
    table(
        "12 ok\n",
        &[
            (r"regex('^\d+ ok', stdout) != None", Pass),
            (r"regex('\bok\b', stdout) == None", Refused),
            (r"regex('\\bok\\b', stdout) != None", Pass),
            (r"regex(r'\bok\b', stdout) != None", Pass),
            (r"regex('(1)\1', stdout) == None", Refused),
            (r"stdout == '12' ' ok' '\n'", Pass),
            (r#"stdout == "12\x20ok\u000a""#, Pass),
            (r"stdout == '\x4'", Refused),
            (r"stdout == '\ud800'", Refused),
            ("stdout == '12\nok'", Refused),
            ("stdout == '''12 ok'''", Refused),
            ("stdout == 'open", Refused),
            (r"stdout == r'\' or exit_code == 0", Refused),
            ("stdout == u'x'", Refused),
        ],
    );
}

#[test]
fn patterns_are_bounded_and_their_refusals_say_why() {
    let refusal = |source: &str| Expr::parse(source).unwrap_err().message;
    assert!(refusal("regex('(?=x)', stdout) == None").contains("look-around"));
    assert!(refusal("regex('(?<!x)y', stdout) == None").contains("look-around"));
    assert!(refusal(r"regex(r'(a)\1', stdout) == None").contains("back-references"));
    assert!(refusal("regex('\\w{1000}{1000}', stdout) == None").contains("too large"));
    assert!(refusal(&format!("regex('{}', stdout) == None", "a".repeat(1025))).contains("1024"));
    assert!(refusal("regex('(', stdout) == None").contains("unclosed group"));
    assert_eq!(judge(&format!("regex('{}', stdout) == None", "a".repeat(1024)), &evidence("")), Pass);
}

#[test]
fn numbers_are_compared_exactly_and_bounded() {
    table(
        "",
        &[
            ("exit_code == 0x0", Pass),
            ("exit_code < 0b11", Pass),
            ("exit_code < 1_000", Pass),
            ("exit_code < 1__0", Refused),
            ("exit_code < 10_", Refused),
            ("exit_code < 0_x", Refused),
            ("exit_code < 010", Refused),
            ("exit_code < 0o10", Refused),
            ("exit_code < .5", Pass),
            ("exit_code < 5.", Pass),
            ("exit_code < 1e3", Pass),
            ("exit_code < 1e", Refused),
            ("exit_code < 999999999999999999", Pass),
            ("exit_code < 0xffffffffffffffff", Refused),
            ("exit_code < -0x1", Fail),
            ("exit_code > -1.5", Refused),
            ("exit_code + 999999999999999999 == 1e18", Fail),
            ("exit_code + 999999999999999999 < 1e18", Pass),
            ("exit_code + 1e308 + 1e308 > 1", Error),
            ("exit_code < 9223372036854775808.0", Pass),
            ("exit_code > -9223372036854775809.0", Refused),
        ],
    );
}

#[test]
fn an_error_points_at_its_column() {
    let column = |source: &str| Expr::parse(source).unwrap_err().column;
    assert_eq!(column("exit_code == 0 and stdoutt == ''"), 20);
    assert_eq!(column("exit_code == 'é' or #"), 21);
    assert_eq!(column("stdout == 'é' # x"), 15);
    let error =
        Expr::parse("exit_code == 0 and json('nope.json').a == 1").unwrap().eval(&evidence("")).unwrap_err();
    assert_eq!(error.column, 20);
    assert!(error.message.contains("no such file"));
}

#[test]
fn vacuous_expressions_are_recognised() {
    let parse = |source: &str| Expr::parse(source).unwrap();
    for source in [
        "exit_code == 0 or True",
        "not (exit_code == 0 and False)",
        "exit_code == exit_code",
        "exit_code >= 0",
        "0 <= exit_code <= 255",
        "exit_code == 0 or exit_code != 0",
        "exit_code < 5 or exit_code > 3",
        "not (exit_code > 300)",
    ] {
        assert!(parse(source).cannot_fail() && !parse(source).cannot_pass(), "{source}");
    }
    for source in ["exit_code < 0", "exit_code == 256", "exit_code == 0 and exit_code == 1"] {
        assert!(parse(source).cannot_pass() && !parse(source).cannot_fail(), "{source}");
    }
    for source in [
        "exit_code == 0",
        "exit_code == 255",
        "exit_code < 255",
        "stdout == stderr",
        "not regex('FAIL', stdout)",
        "len(stdout) < 1",
        "signal == 9",
        "not timed_out",
        "len(json('cov.json')) >= 0",
    ] {
        assert!(!parse(source).cannot_fail() && !parse(source).cannot_pass(), "{source}");
    }
    assert!(parse("stdout == '' and not (exit_code != 0)").reads_exit_code());
    assert!(!parse("stdout.strip() == ''").reads_exit_code());
}

#[test]
fn the_same_condition_set_otherwise_is_the_same() {
    let same = |old: &str, new: &str| Expr::parse(old).unwrap().same(&Expr::parse(new).unwrap());
    for (old, new) in [
        ("exit_code==0", "exit_code  ==\n 0"),
        ("'a' in stdout", "\"a\" in stdout"),
        ("exit_code == 1_0", "exit_code == 10"),
    ] {
        assert!(same(old, new), "{old} | {new}");
    }
    for (old, new) in [
        ("exit_code == 0", "exit_code != 0"),
        ("exit_code == 0", "exit_code == 1"),
        ("'a' in stdout", "'a' in stderr"),
        ("'a b' in stdout", "'a  b' in stdout"),
        ("exit_code == 0 and stdout == ''", "exit_code == 0 or stdout == ''"),
    ] {
        assert!(!same(old, new), "{old} | {new}");
    }
}

#[test]
fn strict_json_refuses_what_hides_values() {
    assert_eq!(
        strict_json(br#"{"a":[1,-2,2.5,"x",null,true]}"#).unwrap(),
        json!({"a": [1, -2, 2.5, "x", null, true]})
    );
    for bad in [
        &br#"{"a":1,"a":2}"#[..],
        br#"{"a":{"b":1,"b":1}}"#,
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"1 2",
        b"",
        b"\xff",
        b"\xef\xbb\xbf1",
        b"{'a':1}",
        b"[1,]",
    ] {
        assert!(strict_json(bad).is_err(), "{}", String::from_utf8_lossy(bad));
    }
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(strict_json(deep(64).as_bytes()).is_ok());
    assert!(strict_json(deep(65).as_bytes()).is_err());
    assert!(strict_json(deep(200_000).as_bytes()).is_err());
    assert!(strict_json(" ".repeat(super::MAX_JSON_BYTES + 1).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in any::<String>()) {
        check_total(&text);
    }

    /// What is said of an expression holds in every run that is tried.
    #[test]
    fn what_is_said_without_a_run_holds_in_runs(source in small_expression(), code in 0_i64..4, stdout in "[ab ]{0,3}") {
        let run = Evidence { exit_code: code, ..evidence(&stdout) };
        let answer = |expr: &Expr| expr.eval(&run).unwrap_or(false);
        if let Ok(expr) = Expr::parse(&source) {
            prop_assert!(!expr.cannot_fail() || answer(&expr), "{source} on {code} {stdout:?}");
            prop_assert!(!expr.cannot_pass() || !answer(&expr), "{source} on {code} {stdout:?}");
        }
    }

    #[test]
    fn strict_json_reads_what_serde_writes(numbers in prop::collection::vec(any::<i64>(), 0..20), text in any::<String>()) {
        let value = json!({"n": numbers, "t": text});
        prop_assert_eq!(strict_json(value.to_string().as_bytes()).unwrap(), value);
    }
}

fn small_expression() -> impl Strategy<Value = String> {
    let atoms = vec![
        "exit_code == 0",
        "exit_code >= 1",
        "exit_code < 2",
        "0 <= exit_code <= 2",
        "exit_code != 1",
        "regex('a', stdout)",
        "regex('b*', stdout)",
        "'a' in stdout",
        "stdout == ''",
        "len(stdout) > 1",
        "len(stdout) <= 1",
        "int(stdout) == 1",
        "json('cov.json').totals.percent >= 80",
        "json('cov.json').totals.percent > 82",
        "json('nope.json').x == 1",
        "signal is None",
        "signal < 9",
        "timed_out",
        "True",
        "False",
    ];
    let leaf = prop::sample::select(atoms).prop_map(str::to_owned);
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) or ({b})")),
        ]
    })
}

fn check_total(text: &str) {
    match Expr::parse(text) {
        Err(error) => {
            assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{error}");
            assert!(!error.message.is_empty());
        }
        Ok(expr) => {
            assert_eq!(expr.source(), text);
            // Whatever parses evaluates to an answer or an error, on empty and on full evidence.
            for stdout in ["", "1\n", "a b\nc"] {
                drop(expr.eval(&evidence(stdout)));
            }
        }
    }
}

#[test]
fn the_files_of_json_are_known_wherever_they_are_named() {
    let files = |text: &str| Expr::parse(text).unwrap().json_files().into_iter().collect::<Vec<_>>();
    let found = files(
        "exit_code == 0 and (not json('a.json').ok == True or len(stdout) + int(json('out/./b.json', '/n')) == 1 \
         or regex('x', json('c.json').s) or 1 < json('a.json').n < 3 or 'x' in json('d.json').s)",
    );
    assert_eq!(found, ["a.json", "c.json", "d.json", "out/b.json"]);
    assert!(files("exit_code == 0").is_empty());
}

#[test]
fn what_people_try_first_is_answered_by_what_works() {
    for (tried, says) in [
        ("int(regex('([0-9]+) passed', stdout)) >= 10", "put a threshold into it"),
        ("regex('([0-9]+) passed', stdout).group(1) == 10", "int(stdout.last_line()) >= 10"),
        ("regex('([0-9]+) passed', stdout)[1] == '10'", "nothing can be taken out of regex()"),
        ("regex('x', stdout) >= 10", "put a threshold into it"),
        ("stdout.split()[0] == 'a'", "stdout.last_line()"),
        ("json('a.json')[0] == 1", "json('file', '/key/0')"),
        ("exit_code in [0, 2]", "lists are not supported; write `exit_code == 0 or exit_code == 2`"),
        ("exit_code in (0, 1)", "`0 <= exit_code <= 2`"),
        ("regex('x', stdout)", "write `exit_code == 0 and regex(…)`, or `regex(…) != None`"),
        ("duration < 60", "`timeout_s` of the goal is the limit"),
        ("exitcode == 0", "did you mean `exit_code`?"),
        ("rc == 0", "did you mean `exit_code`?"),
        ("'x' in output", "did you mean `stdout`?"),
        ("stdout contains 'x'", "write `'x' in stdout`"),
        ("stdout.contains('x')", "write `'x' in stdout`"),
        ("stdout =~ 'x'", "write `regex('pattern', stdout)`"),
        ("regex(stdout, 'x') != None", "it comes first: regex('pattern', text)"),
        ("json(stdout).a == 1", "json() reads files alone"),
    ] {
        let error = Expr::parse(tried).unwrap_err();
        assert!(error.message.contains(says), "{tried}: {error}");
    }
    for works in [
        "exit_code == 0 and regex('[1-9][0-9]+ passed', stdout)",
        "int(stdout.last_line()) >= 10",
        "exit_code == 0 or exit_code == 2",
        "0 <= exit_code <= 2",
        "'x' in stdout",
        "regex('x', stdout) != None",
    ] {
        Expr::parse(works).unwrap_or_else(|error| panic!("{works}: {error}"));
    }
}
