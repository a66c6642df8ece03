//! What to write instead of what people try first.

use super::ast::Ty;

/// Nothing can be taken out of what a pattern found.
const NO_GROUPS: &str = "; it only says whether the pattern was found: put a threshold into it ('[1-9][0-9]+ passed' is 10 or more), or let the command print the number last: `int(stdout.last_line()) >= 10`";

/// What to do where a value of this type does not go, appended to a message.
pub(crate) fn of_type(ty: Ty) -> &'static str {
    match ty {
        Ty::Match => NO_GROUPS,
        Ty::Bool | Ty::Int | Ty::Float | Ty::Str | Ty::List | Ty::Null | Ty::MaybeInt | Ty::Any => "",
    }
}

/// Why there is no `[` here, by what stands before it.
pub(crate) fn bracket(before: &str) -> String {
    let before = before.trim_end();
    let in_list = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next() == Some("in");
    if in_list || before.is_empty() {
        return format!("lists are not supported{ONE_OF}");
    }
    if before.contains("json(") {
        return "`[` and `]` are not supported; reach into JSON with json('file', '/key/0')".to_owned();
    }
    if before.contains("regex(") {
        return format!("`[` and `]` are not supported: nothing can be taken out of regex(){NO_GROUPS}");
    }
    "`[` and `]` are not supported: of a text there is `stdout.last_line()`, or a pattern; for more let the command write JSON and use json('file', '/key/0')".to_owned()
}

/// How to ask for one of several values, appended to a message.
pub(crate) const ONE_OF: &str =
    "; write `exit_code == 0 or exit_code == 2`, or for a range `0 <= exit_code <= 2`";

/// What an unknown name most likely stands for, appended to a message.
pub(crate) fn unknown_name(name: &str) -> String {
    let plain: String = name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect();
    let meant = match plain.as_str() {
        "exitcode" | "exit" | "exitstatus" | "returncode" | "retcode" | "rc" | "ret" | "status" | "code" => {
            "exit_code"
        }
        "output" | "out" | "stdoutput" | "text" => "stdout",
        "error" | "errors" | "err" | "stderror" => "stderr",
        "timedout" | "timeout" => "timed_out",
        "sig" | "killed" => "signal",
        "duration" | "durations" | "durationms" | "elapsed" | "time" | "seconds" | "runtime" | "took" => {
            return "; how long it took has no name: `timeout_s` of the goal is the limit".to_owned();
        }
        _ => return String::new(),
    };
    format!("; did you mean `{meant}`?")
}

/// What to write for a word that asks whether a text holds another one, appended to a message.
pub(crate) fn holds(word: &str) -> &'static str {
    match word {
        "contains" | "includes" | "include" | "has" | "find" | "index" | "count" => "; write `'x' in stdout`",
        "matches" | "match" | "search" | "like" | "test" => "; write `regex('pattern', stdout)`",
        _ => "",
    }
}
