//! Prompt delivery and option handling that all command builders share.

use crate::tool::{
    ARGV_PROMPT_BYTES, Ask, CommandPlan, PROMPT, PROMPT_FILE, PlanError, PlanWarning, PromptMode, ToolSpec,
};

/// Checks the parts of a spec that every tool has in common.
pub(crate) fn check(spec: &ToolSpec) -> Result<(), PlanError> {
    let tool = || spec.kind.name().to_owned();
    if spec.argv.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(PlanError::EmptyArgv { tool: tool() });
    }
    let (needed, unwanted): (Option<&str>, &[&'static str]) = match spec.prompt_mode {
        PromptMode::Stdin => (None, &[PROMPT, PROMPT_FILE]),
        PromptMode::File => (Some(PROMPT_FILE), &[PROMPT]),
        PromptMode::ArgvSubstitute => (Some(PROMPT), &[PROMPT_FILE]),
    };
    let has = |placeholder: &str| spec.argv.iter().any(|arg| arg.contains(placeholder));
    if let Some(placeholder) = unwanted.iter().find(|placeholder| has(placeholder)) {
        return Err(PlanError::UnusedPlaceholder { tool: tool(), placeholder });
    }
    match needed {
        Some(PROMPT) if !has(PROMPT) => {
            Err(PlanError::MissingPlaceholder { tool: tool(), placeholder: PROMPT })
        }
        Some(PROMPT_FILE) if !has(PROMPT_FILE) => {
            Err(PlanError::MissingPlaceholder { tool: tool(), placeholder: PROMPT_FILE })
        }
        _ => Ok(()),
    }?;
    let fields = [
        ("reasoning", &spec.reasoning, spec.kind.reasoning_values()),
        ("provider", &spec.provider, spec.kind.provider_values()),
    ];
    for (field, value, allowed) in fields {
        if let Some(value) = value.as_deref().filter(|value| !allowed.contains(value)) {
            return Err(PlanError::Unsupported { tool: tool(), field, value: value.to_owned() });
        }
    }
    Ok(())
}

/// Puts the prompt where `spec` wants it. `argv` already has every other argument.
pub(crate) fn deliver(spec: &ToolSpec, argv: Vec<String>, ask: &Ask) -> Result<CommandPlan, PlanError> {
    let prompt = printable(&ask.prompt);
    let redactions = secrets(&argv);
    let mut plan = CommandPlan { argv, redactions, ..CommandPlan::default() };
    match spec.prompt_mode {
        PromptMode::Stdin => plan.stdin = Some(prompt),
        PromptMode::File => {
            let path = ask.prompt_file.as_deref().ok_or(PlanError::NoPromptFile)?;
            replace(&mut plan.argv, PROMPT_FILE, path);
            plan.spill = Some(prompt);
        }
        PromptMode::ArgvSubstitute => {
            let longest = plan
                .argv
                .iter()
                .map(|arg| arg.len() + arg.matches(PROMPT).count() * prompt.len())
                .max()
                .unwrap_or(0);
            if longest > ARGV_PROMPT_BYTES {
                let path = ask.prompt_file.as_deref().ok_or(PlanError::NoPromptFile)?;
                let pointer = format!(
                    "Your complete instructions are in the file {path}. Read that file to its end first, \
                     then do what it says."
                );
                replace(&mut plan.argv, PROMPT, &pointer);
                plan.warnings.push(PlanWarning::PromptSpilled { bytes: prompt.len() });
                plan.spill = Some(prompt);
            } else {
                replace(&mut plan.argv, PROMPT, &prompt);
                plan.warnings.push(PlanWarning::PromptInArgv);
            }
        }
    }
    Ok(plan)
}

fn replace(argv: &mut [String], placeholder: &str, text: &str) {
    for arg in argv.iter_mut().filter(|arg| arg.contains(placeholder)) {
        *arg = arg.replace(placeholder, text);
    }
}

/// The text without NUL and the other C0 controls, except line feed and tab.
fn printable(text: &str) -> String {
    text.chars().filter(|&c| !c.is_ascii_control() || c == '\n' || c == '\t').collect()
}

/// The values of arguments whose option name says that they are secret.
fn secrets(argv: &[String]) -> Vec<String> {
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password"].iter().any(|word| {
            name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with(['-', '_', '.']))
        })
    };
    let mut found = Vec::new();
    let mut previous = "";
    for arg in argv {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name.trim_start_matches('-'), value),
            None => (previous.strip_prefix("--").unwrap_or_default(), arg.as_str()),
        };
        let value = value.trim().trim_matches('"');
        if secret(name.trim()) && value.len() >= 8 && !value.starts_with('-') {
            found.push(value.to_owned());
        }
        previous = arg;
    }
    found
}

/// Whether an option is there, as `--x`, `--x=v` or, for a one-letter name, `-xV`.
pub(crate) fn has_option(argv: &[String], names: &[&str]) -> bool {
    option_values(argv, names).next().is_some()
}

/// The values of an option in order; an empty one if the last argument has no value.
pub(crate) fn option_values<'a>(argv: &'a [String], names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let given = argv.get(1..).unwrap_or_default();
    let end = given.iter().position(|arg| arg == "--").unwrap_or(given.len());
    let given = given.get(..end).unwrap_or_default();
    given.iter().enumerate().filter_map(move |(at, arg)| {
        names.iter().find_map(|name| {
            let rest = arg.strip_prefix(name)?;
            if rest.is_empty() {
                return Some(given.get(at + 1).map_or("", String::as_str));
            }
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if !name.starts_with("--") => Some(rest),
                None => None,
            }
        })
    })
}

/// The model that a spec asks for: the last value of an option, else `setting`, else the field.
pub(crate) fn asked(spec: &ToolSpec, options: &[&str], setting: Option<String>) -> Option<String> {
    let option = option_values(&spec.argv, options).last().map(str::to_owned);
    let model = option.or(setting).or_else(|| spec.model.clone())?;
    let model = model.trim();
    (!model.is_empty()).then(|| model.to_owned())
}

/// Where more options go: before the first argument that holds the prompt, else before `--`, else at
/// the end.
pub(crate) fn insert_position(argv: &[String]) -> usize {
    argv.iter()
        .position(|arg| arg.contains(PROMPT) || arg.contains(PROMPT_FILE) || arg == "--")
        .unwrap_or(argv.len())
}

/// Inserts `options` at `at`.
pub(crate) fn insert(argv: &mut Vec<String>, at: usize, options: Vec<String>) {
    let at = at.min(argv.len());
    argv.splice(at..at, options);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_option_is_found_in_each_form_but_not_after_the_end_of_options() {
        for text in ["x --model m", "x --model=m", "x -p --model"] {
            assert!(has_option(&argv(text), &["--model"]), "{text}");
        }
        for text in ["x --models m", "x -- --model m", "--model m", "x model"] {
            assert!(!has_option(&argv(text), &["--model"]), "{text}");
        }
        assert!(has_option(&argv("x -mgpt"), &["-m"]) && has_option(&argv("x -m gpt"), &["-m"]));
    }

    #[test]
    fn controls_are_stripped_and_line_feeds_stay() {
        assert_eq!(printable("a\0b\u{1b}[1m\n\tc\r"), "ab[1m\n\tc");
    }

    #[test]
    fn secrets_in_arguments_are_named_for_redaction() {
        let found =
            secrets(&argv("x --api-key sk-12345678 --auth-token=abcdefgh --model keyboard --key short"));
        assert_eq!(found, ["sk-12345678", "abcdefgh"]);
        let quoted = ["x", "-c", "model_providers.p.experimental_bearer_token=\"0123456789\""];
        assert_eq!(secrets(&quoted.map(str::to_owned)), ["0123456789"]);
    }
}
