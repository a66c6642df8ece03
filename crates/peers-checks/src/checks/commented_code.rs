//! `commented-code`: code that was commented out (`modes.md` §5.10).

use peers_code::{Comment, Language, Source};
use peers_model::check;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::scan::{Which, answer, at_line, nothing_to_scan, scan};

pub(crate) const CHECK: Check = Check {
    name: check::COMMENTED_CODE.name,
    about: "No comment of the sources is code (advice)",
    args: check::COMMENTED_CODE.args,
    run: |cx, args| {
        let least = args.number(&check::COMMENTED_CODE, "min-run");
        judge(cx, least, !args.is_asked("strict")).unwrap_or_else(Report::from)
    },
};

fn judge(cx: &CheckCx, least: usize, advice: bool) -> Result<Report, CouldNot> {
    let scan = scan(cx, Which::Sources, &|path, source| {
        let runs = runs(source.comments());
        let code =
            runs.into_iter().filter(|run| run.lines.len() >= least && is_code(path, source.language(), run));
        code.map(|run| (run.line, run.lines.len())).collect::<Vec<_>>()
    })?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let mut findings = Vec::new();
    for (path, runs) in &scan.found {
        findings.extend(runs.iter().map(|(line, lines)| {
            Finding::at(
                path,
                at_line(*line),
                "commented-code",
                &format!("{lines} lines of comments are code"),
                None,
            )
        }));
    }
    Ok(answer(files, findings, scan.unreadable, advice))
}

/// Comments on lines that follow each other, without their marks.
struct Run {
    line: usize,
    lines: Vec<String>,
}

fn runs(comments: Vec<Comment>) -> Vec<Run> {
    let mut runs: Vec<(Run, usize)> = Vec::new();
    // Comments for readers of the documentation hold examples.
    let documents = |text: &str| ["///", "//!", "/**", "#!"].iter().any(|mark| text.starts_with(mark));
    for comment in comments.into_iter().filter(|comment| comment.alone && !documents(&comment.text)) {
        let lines = comment.text.lines().map(|line| {
            let line = line.trim_start();
            let bare = line.strip_prefix("//").or_else(|| line.strip_prefix('#')).unwrap_or(line);
            bare.trim_start_matches("/*").trim_end_matches("*/").to_owned()
        });
        match runs.last_mut().filter(|(_, end)| comment.line == *end + 1) {
            Some((run, end)) => {
                run.lines.extend(lines);
                *end = comment.end;
            }
            None => runs.push((Run { line: comment.line, lines: lines.collect() }, comment.end)),
        }
    }
    runs.into_iter().map(|(run, _)| run).collect()
}

/// Whether the text of a run reads as at least two statements of its language, and not as prose.
fn is_code(path: &str, language: Language, run: &Run) -> bool {
    let margin = run
        .lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or_default();
    let lines: Vec<&str> = run.lines.iter().map(|line| line.get(margin..).unwrap_or_default()).collect();
    let said = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let looks = lines.iter().filter(|line| looks_like_code(line)).count();
    if looks * 2 < said {
        return false;
    }
    let text = lines.join("\n");
    // Statements stand in functions there.
    let text = match language {
        Language::Rust => format!("fn f() {{\n{text}\n}}\n"),
        Language::Go => format!("package p\nfunc f() {{\n{text}\n}}\n"),
        Language::Python | Language::JavaScript => text + "\n",
    };
    Source::parse(path, text.as_bytes()).is_ok_and(|source| source.statements() >= 2)
}

/// A line with the marks of code: an end of a statement, a call, an assignment, a word that begins one.
fn looks_like_code(line: &str) -> bool {
    const WORDS: [&str; 22] = [
        "def ",
        "class ",
        "return",
        "import ",
        "from ",
        "if ",
        "for ",
        "while ",
        "let ",
        "const ",
        "var ",
        "fn ",
        "pub ",
        "func ",
        "function ",
        "use ",
        "else",
        "}",
        "elif ",
        "try:",
        "match ",
        "raise ",
    ];
    let line = line.trim();
    let ends = line.ends_with([';', '{', '}', ':', ')', ',']);
    let assigns =
        line.contains(" = ") || line.contains(" := ") || line.contains("();") || line.contains("+=");
    let begins = WORDS.iter().any(|word| line.starts_with(word));
    assigns
        || (begins && ends)
        || line.ends_with([';', '{', '}'])
        || (line.ends_with(')') && line.contains('('))
}
