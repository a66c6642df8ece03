//! Shell commands whose exit code says less than it seems to.

use std::ops::ControlFlow;

use super::script::{Item, Join, List, Pipeline, Stage, Word, outline};

/// Commands within commands that are looked into.
const NESTED: usize = 3;

/// What is wrong with the exit code of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The whole does nothing that can fail.
    Nothing(String),
    /// `… || true` and its like: the text behind `||`.
    Forced(String),
    /// The last command cannot fail, whatever those before it did.
    Ends(String),
    /// The last command is not waited for.
    Background,
    /// `&>`, which `/bin/sh` need not know.
    BothStreams,
    /// A filter stands behind a pipe: its name.
    Filtered(String),
    /// What fails before the end is not told: the command.
    Lost(String),
    /// `set +e`.
    ErrexitOff,
    /// `|| exit 0` before the end: the command before it.
    Early,
}

/// Everything that is wrong; empty also where the command is not understood.
pub(super) fn flaws(cmd: &str) -> Vec<Flaw> {
    let Some(list) = outline(cmd) else { return Vec::new() };
    let mut flaws = Vec::new();
    look(&list, Options::default(), cmd, 0, &mut flaws);
    flaws
}

/// What `set` and the shell's own flags switched on.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    errexit: bool,
    pipefail: bool,
}

/// The program that a command begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The directory in which it runs, with a `/` at its end; empty = where the command starts.
    pub dir: String,
    /// As it stands in the command.
    pub word: String,
}

impl Program {
    /// Its path from where the command starts; `None` for one of the search path, and for one that lies
    /// elsewhere.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        let whole = format!("{}{}", self.dir, self.word);
        let parts: Vec<&str> = whole.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let elsewhere = whole.starts_with(['/', '~']) || parts.contains(&"..");
        (self.word.contains('/') && !elsewhere).then(|| parts.join("/"))
    }
}

/// The first program that a command runs; `None` where that cannot be told.
pub(super) fn program(cmd: &str) -> Option<Program> {
    let mut dir = String::new();
    begins(&outline(cmd)?, &mut dir, 0).break_value().flatten()
}

fn begins(list: &List, dir: &mut String, depth: usize) -> ControlFlow<Option<Program>> {
    let pipelines = list
        .items
        .iter()
        .flat_map(|item| std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)));
    for stage in pipelines.flat_map(|pipeline| &pipeline.stages) {
        let words = match stage {
            Stage::Simple(words) => command(words),
            Stage::Group(list) => {
                begins(list, dir, depth)?;
                continue;
            }
            Stage::Loop(_) => return ControlFlow::Break(None),
        };
        match words {
            [] => {}
            [cd, to] if cd.text == "cd" && to.literal => {
                dir.push_str(&to.text);
                dir.push('/');
            }
            [name, ..] if QUIET.contains(&name.text.as_str()) && name.text != "cd" => {}
            [name, ..] if name.literal && name.text != "cd" => {
                if let Some((script, _)) = script_of(words)
                    && depth < NESTED
                    && let Some(list) = outline(script)
                {
                    begins(&list, dir, depth + 1)?;
                }
                return ControlFlow::Break(Some(Program { dir: dir.clone(), word: name.text.clone() }));
            }
            _ => return ControlFlow::Break(None),
        }
    }
    ControlFlow::Continue(())
}

fn look(list: &List, mut options: Options, text: &str, depth: usize, flaws: &mut Vec<Flaw>) {
    let Some((final_item, before)) = list.items.split_last() else { return };
    let saves_code = text.contains("$?");
    let mut real = 0_usize;
    let mut off_at = None;
    for (at, item) in before.iter().enumerate() {
        if let Some(words) = sole(item) {
            let was = options;
            set(words, &mut options);
            if was.errexit && !options.errexit || set_off(words) {
                off_at = Some(at);
            } else if options.errexit {
                off_at = None;
            }
        }
        if item.joined {
            flaws.push(Flaw::BothStreams);
        }
        if exits_early(item) {
            flaws.push(Flaw::Early);
        }
        real += usize::from(does_something(item));
        if !options.errexit
            && !saves_code
            && let Some(runner) = runner_of(item)
        {
            flaws.push(Flaw::Lost(runner));
        }
    }
    if let Some(at) = off_at
        && list.items.len().saturating_sub(at) > 2
        && !saves_code
    {
        // One sentence about it is enough, here and below.
        flaws.retain(|flaw| !matches!(flaw, Flaw::Lost(_)));
        flaws.push(Flaw::ErrexitOff);
    }
    if final_item.background {
        flaws.push(if final_item.joined { Flaw::BothStreams } else { Flaw::Background });
        return;
    }
    let (join, pipeline) = match final_item.rest.last() {
        Some((join, pipeline)) => (Some(*join), pipeline),
        None => (None, &final_item.first),
    };
    if pipeline.negated {
        return;
    }
    let green = |shown: String, flaws: &mut Vec<Flaw>| match join {
        Some(Join::Or) => flaws.push(Flaw::Forced(shown)),
        Some(Join::And) => {}
        None if real == 0 => flaws.push(Flaw::Nothing(shown)),
        None if options.errexit || before.iter().any(leaves) => {}
        None => {
            flaws.retain(|flaw| !matches!(flaw, Flaw::Lost(_)));
            flaws.push(Flaw::Ends(shown));
        }
    };
    if let Some(shown) = cannot_fail(pipeline) {
        green(shown, flaws);
        return;
    }
    let mut inner = Vec::new();
    match pipeline.stages.as_slice() {
        [Stage::Group(list)] => look(list, options, text, depth + 1, &mut inner),
        [Stage::Loop(_)] if !options.errexit && !saves_code => {
            inner.extend(runner_of(final_item).map(Flaw::Lost));
        }
        [Stage::Simple(words)] if depth < NESTED => {
            if let Some((script, options)) = script_of(words)
                && let Some(list) = outline(script)
            {
                look(&list, options, script, depth + 1, &mut inner);
            }
        }
        [.., Stage::Simple(words)] if !options.pipefail && pipeline.stages.len() > 1 => {
            if let Some(name) = name(words).filter(|name| is_filter(name, words)) {
                flaws.push(Flaw::Filtered(name.to_owned()));
            }
        }
        _ => {}
    }
    for flaw in inner {
        match flaw {
            // Nothing in there is not nothing in all.
            Flaw::Nothing(shown) => green(shown, flaws),
            other => flaws.push(other),
        }
    }
}

/// The words of an item that is one plain command.
fn sole(item: &Item) -> Option<&[Word]> {
    match (item.rest.as_slice(), item.first.stages.as_slice()) {
        ([], [Stage::Simple(words)]) if !item.first.negated && !item.background => Some(words),
        _ => None,
    }
}

/// The words from the command's name on: assignments and words that only start it are left out.
fn command(words: &[Word]) -> &[Word] {
    let assigns = |word: &Word| {
        let name = word.text.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        })
    };
    let starts = |word: &Word| matches!(word.text.as_str(), "exec" | "command" | "env" | "nice" | "time");
    let skipped = words.iter().take_while(|word| assigns(word) || starts(word)).count();
    words.get(skipped..).unwrap_or_default()
}

/// The name of the command, without its directory.
fn name(words: &[Word]) -> Option<&str> {
    let word = command(words).first().filter(|word| word.literal)?;
    word.text.rsplit('/').next()
}

fn set(words: &[Word], options: &mut Options) {
    if name(words) != Some("set") {
        return;
    }
    let mut named: Option<bool> = None;
    for word in command(words).iter().skip(1) {
        if let Some(on) = named.take() {
            match word.text.as_str() {
                "errexit" => options.errexit = on,
                "pipefail" => options.pipefail = on,
                _ => {}
            }
            continue;
        }
        let on = match word.text.as_bytes().first() {
            Some(b'-') => true,
            Some(b'+') => false,
            _ => continue,
        };
        if word.text.contains('e') {
            options.errexit = on;
        }
        named = word.text.contains('o').then_some(on);
    }
}

/// `set +e`, by whatever name.
fn set_off(words: &[Word]) -> bool {
    let mut options = Options { errexit: true, pipefail: true };
    set(words, &mut options);
    !options.errexit
}

/// What it says, if a pipeline ends green whatever happens.
fn cannot_fail(pipeline: &Pipeline) -> Option<String> {
    let [Stage::Simple(words)] = pipeline.stages.as_slice() else { return None };
    let words = command(words);
    let name = name(words)?;
    let shown = match name {
        "true" | ":" => name.to_owned(),
        "echo" | "printf" => format!("{name} …"),
        "exit" if words.get(1).is_some_and(|word| word.text == "0") => "exit 0".to_owned(),
        _ => return None,
    };
    Some(shown)
}

fn exits_early(item: &Item) -> bool {
    item.rest.iter().any(|(join, pipeline)| {
        *join == Join::Or && cannot_fail(pipeline).is_some_and(|shown| shown == "exit 0")
    })
}

/// What prepares and says something, and runs nothing.
const QUIET: [&str; 8] = ["set", "export", "cd", "echo", "printf", "true", ":", "unset"];

/// Whether the item is more than preparation.
fn does_something(item: &Item) -> bool {
    match sole(item) {
        Some(words) => {
            let runs_within = words.iter().any(|word| word.text.contains("$(") || word.text.contains('`'));
            name(words).map_or(runs_within || !command(words).is_empty(), |name| !QUIET.contains(&name))
        }
        None => true,
    }
}

/// Whether the item may end the whole by itself, so that its author thought of the exit code.
fn leaves(item: &Item) -> bool {
    let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
    pipelines.flat_map(|pipeline| &pipeline.stages).any(|stage| match stage {
        Stage::Simple(words) => {
            name(words) == Some("exit") && command(words).get(1).is_none_or(|word| word.text != "0")
        }
        Stage::Group(list) | Stage::Loop(list) => list.items.iter().any(leaves),
    })
}

/// The command that proves something, if the item is one whose failure should not be lost.
fn runner_of(item: &Item) -> Option<String> {
    let exits = |pipeline: &Pipeline| matches!(pipeline.stages.as_slice(), [Stage::Simple(words)] if name(words) == Some("exit"));
    let handled = item.background || item.rest.iter().any(|(join, then)| *join == Join::Or || exits(then));
    if handled || leaves(item) {
        return None;
    }
    let mut all = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
    all.find_map(|pipeline| match pipeline.stages.as_slice() {
        [Stage::Simple(words)] if !pipeline.negated => runner(words),
        [Stage::Group(list)] if !pipeline.negated => list.items.iter().find_map(runner_of),
        // Each turn goes on to the next, and the end of the loop tells of the last one.
        [Stage::Loop(list)] if !pipeline.negated && !sets_errexit(list) => {
            list.items.iter().find_map(runner_of)
        }
        _ => None,
    })
}

fn sets_errexit(list: &List) -> bool {
    let mut options = Options::default();
    list.items.iter().filter_map(sole).for_each(|words| set(words, &mut options));
    options.errexit
}

/// Words behind which another command stands, with those that follow them first.
const WRAPPERS: [(&str, &[&str]); 10] = [
    ("npx", &[]),
    ("bunx", &[]),
    ("uvx", &[]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("bundle", &["exec"]),
    ("xvfb-run", &[]),
];

/// A command whose failure is what a gate is there for: a runner of tests, a linter, a script.
fn runner(words: &[Word]) -> Option<String> {
    let words = command(words);
    let whole = words.first().filter(|word| word.literal)?.text.as_str();
    let name = name(words)?;
    let second = words.iter().skip(1).find(|word| !word.text.starts_with(['-', '+']));
    let second = second.map(|word| word.text.as_str()).unwrap_or_default();
    let wraps = |(wrapper, then): &(&str, &[&str])| {
        *wrapper == name && (then.is_empty() && !second.is_empty() || then.contains(&second))
    };
    let proves = match name {
        "pytest" | "tox" | "nox" | "mypy" | "pyright" | "ruff" | "flake8" | "pylint" | "eslint" | "tsc"
        | "ctest" | "bats" | "jest" | "vitest" | "mocha" | "phpunit" | "rspec" | "shellcheck"
        | "golangci-lint" | "gradle" | "mvn" => true,
        "make" | "just" | "rake" => matches!(second, "" | "test" | "check" | "lint"),
        "cargo" => matches!(second, "test" | "clippy" | "check" | "nextest" | "fmt"),
        "npm" | "bun" => matches!(second, "test" | "run" | "t"),
        // These take the names of scripts for their own words.
        "pnpm" | "yarn" => !matches!(
            second,
            "" | "install"
                | "i"
                | "add"
                | "ci"
                | "fetch"
                | "import"
                | "remove"
                | "rm"
                | "set"
                | "config"
                | "store"
        ),
        "go" | "dotnet" | "swift" | "mix" | "bazel" | "deno" => matches!(second, "test" | "vet"),
        "python" | "python3" => {
            words.iter().any(|word| matches!(word.text.as_str(), "pytest" | "unittest" | "mypy" | "ruff"))
                || is_file(words, second, &["-m", "-c"])
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" => !second.is_empty() && script_of(words).is_none(),
        "node" | "ruby" | "perl" | "php" => {
            is_file(words, second, &["-e", "-p", "-r"]) && !words.iter().any(|word| is_bundle(&word.text))
        }
        _ => WRAPPERS.iter().any(wraps),
    };
    // A program of the tree itself.
    let own = whole.starts_with("./") || whole.starts_with("../");
    let shown = if own { whole } else { name };
    (proves || own).then(|| if second.is_empty() { shown.to_owned() } else { format!("{shown} {second}") })
}

/// Whether an interpreter is given a file, and not a text or a module.
fn is_file(words: &[Word], second: &str, others: &[&str]) -> bool {
    !second.is_empty() && !words.iter().any(|word| others.contains(&word.text.as_str()))
}

/// Whether these are flags in one word (`-pe`, `-ne`, `-l`) that make an interpreter no runner of a file.
fn is_bundle(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|flags| !flags.starts_with('-') && flags.contains(['e', 'p', 'n', 'r', 'l']))
}

/// Whether a command at the end of a pipe passes text on and judges nothing.
fn is_filter(name: &str, words: &[Word]) -> bool {
    const FILTERS: [&str; 17] = [
        "tee", "cat", "head", "tail", "sort", "uniq", "tr", "cut", "wc", "nl", "less", "more", "fold", "fmt",
        "ts", "tac", "column",
    ];
    // These can be told to judge.
    let asked = words.iter().any(|word| word.text.contains("exit") || word.text.contains('q'));
    FILTERS.contains(&name) || (matches!(name, "sed" | "awk") && !asked)
}

/// The script of `sh -c 'script'`, and what its flags switch on.
fn script_of(words: &[Word]) -> Option<(&str, Options)> {
    let words = command(words);
    if !matches!(name(words)?, "sh" | "bash" | "dash" | "zsh" | "ksh") {
        return None;
    }
    let mut options = Options::default();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let flags = word.text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
        options.errexit |= flags.contains('e');
        if flags.ends_with('o') {
            match rest.next()?.text.as_str() {
                "pipefail" => options.pipefail = true,
                "errexit" => options.errexit = true,
                _ => {}
            }
        }
        if flags.contains('c') {
            let script = rest.next().filter(|word| word.literal)?;
            return Some((&script.text, options));
        }
    }
    None
}
