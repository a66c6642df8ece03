//! From what a gate's command did to a verdict.

use std::path::Path;

use peers_core::apply::bounded;
use peers_core::dsl::{Evidence, Expr, MAX_JSON_BYTES, strict_json};
use peers_core::test_output;
use peers_model::limits;
use peers_model::verdict::Verdict;
use peers_sys::redact::Rules;
use peers_sys::spawn::RawExit;
use peers_sys::{FileError, SafeDir, term};
use serde_json::Value;

use super::capture::Capture;
use super::command::Finished;
use super::unwritten::Unwritten;
use crate::env::LeftOut;

/// Characters of the end of each stream in a diagnostic.
const TAIL: usize = 1000;
/// Bytes of lines from before that end which name tests that failed.
const NAMING: usize = 700;
/// Findings of a check that a diagnostic shows.
const FINDINGS: usize = 50;

/// Could not judge.
pub(super) fn error(why: &str) -> Verdict {
    Verdict::Error { diagnostic: bounded(&term::block(why), limits::DIAGNOSTIC) }
}

/// Judged, and not good.
pub(super) fn red(why: &str) -> Verdict {
    Verdict::Fail { diagnostic: bounded(&term::block(why), limits::DIAGNOSTIC) }
}
/// What a report that was not written says of itself.
const NOT_WRITTEN: &str = "the command did not write it: it is a file of the commit, or was there after \
                           `setup`; let the command make the report";

/// The verdict on a shell gate. `left_out` is told where the command did not find what it runs.
pub(super) fn shell(
    finished: &Finished,
    pass_when: &Expr,
    (tree, unwritten): (&Path, &Unwritten),
    left_out: Option<&LeftOut>,
    rules: &Rules,
) -> Verdict {
    if let Some(failure) = &finished.stub {
        return error(&format!("the gate could not be started: {failure}"));
    }
    if finished.timed_out {
        return Verdict::Timeout { diagnostic: diagnostic("timeout", finished, rules) };
    }
    let (code, signal) = match finished.exit {
        Some(RawExit::Code(code)) => (code, None),
        Some(RawExit::Signal(signal)) => (signal.saturating_add(128), Some(signal)),
        None => return error("the exit of the gate's command was lost"),
    };
    let evidence = Evidence {
        exit_code: code.into(),
        signal,
        timed_out: false,
        stdout: &finished.stdout.text(),
        stderr: &finished.stderr.text(),
        json: &|path| read_json(tree, unwritten, path),
    };
    let reason = match pass_when.eval(&evidence) {
        Ok(true) => return Verdict::Pass,
        Ok(false) => "pass_when returned False".to_owned(),
        Err(error) => format!("pass_when error: {error}"),
    };
    let not_found =
        code == 127 || [evidence.stdout, evidence.stderr].iter().any(|text| text.contains(NO_MODULE));
    let reason = match left_out.filter(|_| not_found) {
        Some(left_out) => format!("{reason}; {left_out}"),
        None => reason,
    };
    Verdict::Fail { diagnostic: diagnostic(&reason, finished, rules) }
}

/// What Python says of a module that is not installed, in a program of its own or asked for by `-m`.
const NO_MODULE: &str = "No module named ";

/// The verdict on a built-in check, which judges by itself: 0 pass, 1 violated, else it could not.
pub(super) fn check(finished: &Finished, rules: &Rules) -> Verdict {
    if let Some(failure) = &finished.stub {
        return error(&format!("the check could not be started: {failure}"));
    }
    if finished.timed_out {
        return Verdict::Timeout { diagnostic: diagnostic("timeout", finished, rules) };
    }
    let words = findings(finished, rules);
    match finished.exit {
        Some(RawExit::Code(0)) => Verdict::Pass,
        Some(RawExit::Code(1)) => Verdict::Fail {
            diagnostic: words.unwrap_or_else(|| diagnostic("the check failed", finished, rules)),
        },
        Some(RawExit::Code(_) | RawExit::Signal(_)) | None => Verdict::Error {
            diagnostic: words.unwrap_or_else(|| diagnostic("the check gave no answer", finished, rules)),
        },
    }
}

/// `<reason>; exit_code=N; stdout-tail='…'; stderr-tail='…'`
fn diagnostic(reason: &str, finished: &Finished, rules: &Rules) -> String {
    let code = match finished.exit {
        Some(RawExit::Code(code)) => code.to_string(),
        Some(RawExit::Signal(signal)) => signal.saturating_add(128).to_string(),
        None => "unknown".to_owned(),
    };
    let text = format!(
        "{reason}; exit_code={code}; stdout-tail='{}'; stderr-tail='{}'",
        told(&finished.stdout, rules),
        told(&finished.stderr, rules)
    );
    bounded(&text, limits::DIAGNOSTIC)
}

/// The last characters of a stream, and before them what names a failure in the rest of it.
fn told(stream: &Capture, rules: &Rules) -> String {
    let tail = tail(stream, TAIL, rules);
    if tail.chars().count() < TAIL {
        return tail;
    }
    let text = stream.text();
    let text = rules.redact(&text);
    let text = term::block(&text);
    let end = text.trim_end().len().saturating_sub(tail.len());
    // A line that the cut goes through is whole here.
    let end = text.match_indices('\n').map(|(at, _)| at).find(|at| *at >= end).unwrap_or(text.len());
    let naming = test_output::naming(text.get(..end).unwrap_or_default(), NAMING);
    if naming.is_empty() { tail } else { format!("{}\n[...]\n{tail}", naming.join("\n")) }
}

/// The last characters of a stream, without secrets and fit to be shown.
pub(super) fn tail(stream: &Capture, chars: usize, rules: &Rules) -> String {
    // A secret that begins before what is shown must still be recognised.
    let text = stream.last(chars.saturating_mul(4).saturating_add(8 * 1024));
    let text = rules.redact(&text);
    let shown = term::block(&text);
    let shown = shown.trim_end();
    shown.chars().skip(shown.chars().count().saturating_sub(chars)).collect()
}

/// What a check says in its JSON report, as the lines that the next prompt shows.
fn findings(finished: &Finished, rules: &Rules) -> Option<String> {
    let report = strict_json(finished.stdout.text().trim().as_bytes()).ok()?;
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let findings = report.get("findings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut lines = vec![format!("{}: {}", text(&report, "check"), text(&report, "verdict").to_uppercase())];
    for finding in findings.iter().take(FINDINGS) {
        let line =
            finding.get("line").and_then(Value::as_u64).map(|line| format!(":{line}")).unwrap_or_default();
        let (path, kind, message) = (text(finding, "path"), text(finding, "kind"), text(finding, "message"));
        lines.push(format!("  {path}{line}: {kind}: {message}"));
    }
    if findings.len() > FINDINGS {
        lines.push(format!("  and {} more", findings.len() - FINDINGS));
    }
    for key in ["message", "hint"] {
        let said = text(&report, key);
        if !said.is_empty() {
            lines.push(format!("  {said}"));
        }
    }
    let shown: Vec<String> = lines.iter().map(|line| term::inline(line)).collect();
    Some(bounded(&rules.redact(&shown.join("\n")), limits::DIAGNOSTIC))
}

/// Reads a JSON file below the tree that a gate ran in, following no link.
fn read_json(tree: &Path, unwritten: &Unwritten, path: &str) -> Result<Value, String> {
    let cap = u64::try_from(MAX_JSON_BYTES).unwrap_or(u64::MAX);
    let read = || -> Result<Option<Vec<u8>>, FileError> {
        let (dir, name) = SafeDir::open_shared(tree)?.parent_of(path)?;
        if unwritten.holds(path, &dir, &name)? { Ok(None) } else { dir.read(name, cap).map(Some) }
    };
    let bytes = read().map_err(|error| {
        if error.is_not_found() {
            "there is no such file".to_owned()
        } else {
            // The path of the tree is nobody's business.
            match error {
                FileError::Symlink { .. } => "a symbolic link is in the way".to_owned(),
                FileError::HardLinked { .. } => "the file has more than one name".to_owned(),
                FileError::NotRegular { .. } => "it is not a regular file".to_owned(),
                FileError::TooLarge { .. } => format!("larger than {MAX_JSON_BYTES} bytes"),
                _ => "it cannot be read".to_owned(),
            }
        }
    })?;
    strict_json(&bytes.ok_or(NOT_WRITTEN)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn finished(exit: RawExit, stdout: &str, stderr: &str) -> Finished {
        let capture = |text: &str| {
            let mut capture = Capture::new(512 * 1024, 512 * 1024);
            capture.push(text.as_bytes());
            capture
        };
        Finished {
            exit: Some(exit),
            timed_out: false,
            cancelled: false,
            stub: None,
            stdout: capture(stdout),
            stderr: capture(stderr),
            leaked: 0,
            took: Duration::ZERO,
        }
    }

    fn judge(finished: &Finished, pass_when: &str, tree: &Path) -> Verdict {
        let all_written = Unwritten::default();
        shell(
            finished,
            &Expr::parse(pass_when).unwrap(),
            (tree, &all_written),
            None,
            &Rules::new(["hunter2-hunter2"]),
        )
    }

    #[test]
    fn a_red_gate_says_why_with_both_tails() {
        let verdict = judge(&finished(RawExit::Code(2), "out\n", "err\n"), "exit_code == 0", Path::new("/"));
        let expected = "pass_when returned False; exit_code=2; stdout-tail='out'; stderr-tail='err'";
        assert_eq!(verdict, Verdict::Fail { diagnostic: expected.into() });
        let verdict = judge(&finished(RawExit::Code(0), "x", ""), "int(stdout) == 0", Path::new("/"));
        assert!(verdict.diagnostic().starts_with("pass_when error: "), "{verdict:?}");
    }

    #[test]
    fn a_gate_that_does_not_find_what_it_runs_names_what_is_left_out_of_its_path() {
        let left_out = LeftOut { dir: "/r/.venv/bin".into(), write: Some(".venv/bin/pytest".into()) };
        let judge = |exit: i32, stderr: &str| {
            let (finished, pass) = (finished(RawExit::Code(exit), "", stderr), Expr::parse("exit_code == 0"));
            let at = (Path::new("/"), &Unwritten::default());
            shell(&finished, &pass.unwrap(), at, Some(&left_out), Rules::patterns()).diagnostic().to_owned()
        };
        let why = "`/r/.venv/bin` on your PATH lies in the repository, so gates do not get it; write `.venv/bin/pytest` in the gate";
        for (exit, stderr, told) in [
            (127, "sh: 1: pytest: not found", true),
            (1, "/usr/bin/python3: No module named pytest", true),
            (1, "1 failed", false),
        ] {
            let said = judge(exit, stderr);
            assert_eq!(
                said.starts_with(&format!("pass_when returned False; {why}; exit_code={exit}; ")),
                told,
                "{said}"
            );
        }
    }

    #[test]
    fn a_death_by_signal_is_128_and_more() {
        let killed = finished(RawExit::Signal(15), "", "");
        assert!(judge(&killed, "exit_code == 143 and signal == 15", Path::new("/")).is_pass());
        assert!(judge(&killed, "exit_code == 0", Path::new("/")).diagnostic().contains("exit_code=143"));
    }

    #[test]
    fn a_diagnostic_is_short_safe_to_show_and_without_secrets() {
        let noise = "x".repeat(5000);
        let hostile = format!("{noise}\u{1b}[2Jred\u{202e} hunter2-hunter2 end");
        let verdict = judge(&finished(RawExit::Code(1), &hostile, &noise), "exit_code == 0", Path::new("/"));
        let text = verdict.diagnostic();
        assert!(text.len() <= limits::DIAGNOSTIC && !text.contains(['\u{1b}', '\u{202e}']));
        assert!(
            !text.contains("hunter2") && text.contains("[redacted:secret:") && text.contains(" end'"),
            "{text}"
        );
    }

    #[test]
    fn of_a_long_output_the_lines_that_name_the_failing_test_stay() {
        let table = "src/module.py          120      3    98%\n".repeat(60);
        let out = format!("FAILED test_a.py::test_even - assert 3 == 2 hunter2-hunter2\n{table}");
        let err = format!("{}--- FAIL: TestOdd (0.00s)\n{}", "x\n".repeat(2000), "y\n".repeat(2000));
        let verdict = judge(&finished(RawExit::Code(1), &out, &err), "exit_code == 0", Path::new("/"));
        let text = verdict.diagnostic();
        assert!(
            text.contains("stdout-tail='FAILED test_a.py::test_even - assert 3 == 2 [redacted:"),
            "{text}"
        );
        assert!(text.contains("stderr-tail='--- FAIL: TestOdd (0.00s)\n[...]\n"), "{text}");
        assert!(text.len() <= limits::DIAGNOSTIC && text.ends_with("y'"), "{text}");
    }

    #[test]
    fn a_timeout_is_its_own_verdict_whatever_the_condition() {
        let late = Finished { timed_out: true, exit: None, ..finished(RawExit::Code(0), "half", "") };
        let verdict = judge(&late, "True or exit_code == 0", Path::new("/"));
        assert!(
            matches!(&verdict, Verdict::Timeout { diagnostic } if diagnostic.starts_with("timeout; exit_code=unknown; stdout-tail='half'")),
            "{verdict:?}"
        );
    }

    #[test]
    fn json_is_read_below_the_tree_without_following_links() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir(at("out")).unwrap();
        std::fs::write(at("out/cov.json"), r#"{"total": 82.5}"#).unwrap();
        std::fs::write(at("twice.json"), "{}").unwrap();
        std::fs::hard_link(at("twice.json"), at("again.json")).unwrap();
        std::os::unix::fs::symlink(at("out"), at("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("passwd.json")).unwrap();
        let done = finished(RawExit::Code(0), "", "");
        assert!(judge(&done, "json('out/cov.json').total >= 80", tree.path()).is_pass());
        for (path, word) in [
            ("gone.json", "no such file"),
            ("link/cov.json", "link"),
            ("passwd.json", "link"),
            ("twice.json", "more than one name"),
        ] {
            let verdict = judge(&done, &format!("json('{path}').total == 1"), tree.path());
            assert!(verdict.diagnostic().contains(word), "{path}: {verdict:?}");
        }
    }

    #[test]
    fn a_report_counts_only_once_it_was_written_anew() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        let pass_when = Expr::parse("json('out/cov.json').total >= 80").unwrap();
        let green = r#"{"total": 100}"#;
        std::fs::create_dir(at("out")).unwrap();
        std::fs::write(at("out/cov.json"), green).unwrap();
        let marked = Unwritten::mark(tree.path(), &pass_when.json_files()).unwrap();
        let done = finished(RawExit::Code(0), "", "");
        let judge =
            || shell(&done, &pass_when, (tree.path(), &marked), None, &Rules::new(["hunter2-hunter2"]));
        let red = judge();
        assert!(
            red.diagnostic().starts_with("pass_when error: ") && red.diagnostic().contains("did not write"),
            "{red:?}"
        );
        // Another name of it is the same file.
        std::fs::rename(at("out"), at("aside")).unwrap();
        std::fs::rename(at("aside"), at("out")).unwrap();
        assert!(!judge().is_pass());
        // The same bytes, written anew in place and as another file.
        std::fs::write(at("out/cov.json"), green).unwrap();
        assert!(judge().is_pass());
        let marked = Unwritten::mark(tree.path(), &pass_when.json_files()).unwrap();
        std::fs::write(at("new"), green).unwrap();
        std::fs::rename(at("new"), at("out/cov.json")).unwrap();
        assert!(shell(&done, &pass_when, (tree.path(), &marked), None, &Rules::new(["x-x-x-x-x"])).is_pass());
    }

    #[test]
    fn a_check_answers_by_its_exit_code_and_shows_its_findings() {
        let rules = Rules::patterns();
        let report = r#"{"check":"no-stubs","verdict":"fail","findings":[{"path":"src/a.rs","line":3,"kind":"stub","message":"todo!()"}]}"#;
        let red = check(&finished(RawExit::Code(1), report, ""), rules);
        assert_eq!(red, Verdict::Fail { diagnostic: "no-stubs: FAIL\n  src/a.rs:3: stub: todo!()".into() });
        assert!(check(&finished(RawExit::Code(0), "", ""), rules).is_pass());
        for exit in [RawExit::Code(2), RawExit::Code(3), RawExit::Code(101), RawExit::Signal(9)] {
            let verdict = check(&finished(exit, "", "no such tool"), rules);
            assert!(verdict.is_error() && verdict.diagnostic().contains("no such tool"), "{verdict:?}");
        }
    }
}
