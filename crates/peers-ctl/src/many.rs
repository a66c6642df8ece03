//! One command over several projects: each is done, each is told, and the exit code says whether all went well.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::registry::{State, Warning};
use peers_fleet::select::Selection;
use peers_fleet::{Project, ProjectName, start};
use peers_model::exit;
use serde_json::{Map, Value, json};

use crate::ctl::{Ctl, failed};

/// What is said of names where none means all.
pub(crate) const OR_ALL: &str = "Projects by name; `*` and `?` match several [default: all]";

/// Which projects, as every command that takes several has it.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Which {
    /// Projects by name; `*` and `?` match several [default: that of this directory, or the only one]
    #[arg(value_name = "NAME", verbatim_doc_comment)]
    names: Vec<String>,
    /// All projects
    #[arg(long)]
    all: bool,
    /// Projects with this label; repeat it to require several
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = label)]
    label: Vec<(String, Option<String>)>,
    /// Projects in this state
    #[arg(long, value_name = "STATE", value_parser = state(), value_delimiter = ',')]
    state: Vec<State>,
}

fn label(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (text, None),
    };
    peers_fleet::registry::label(key, value.unwrap_or_default()).map_err(|invalid| invalid.to_string())?;
    Ok((key.to_owned(), value.map(str::to_owned)))
}

/// The words of states, for options.
pub(crate) fn state() -> impl clap::builder::TypedValueParser<Value = State> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};
    const ALL: [State; 5] = [State::Fresh, State::Running, State::Stopped, State::Crashed, State::Unknown];
    PossibleValuesParser::new(ALL.map(State::word))
        .map(|word| ALL.into_iter().find(|state| state.word() == word).unwrap_or(State::Unknown))
}

impl Which {
    /// What was asked for.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            names: self.names.clone(),
            all: self.all,
            labels: self.label.clone(),
            states: self.state.clone(),
        }
    }

    /// The same, where nothing said means all.
    pub(crate) fn or_all(&self) -> Selection {
        let asked = self.selection();
        if asked.is_empty() { Selection { all: true, ..asked } } else { asked }
    }
}

/// What came of one project.
#[derive(Debug)]
pub(crate) struct Done {
    /// For people, a line or several.
    pub(crate) text: String,
    /// For programs, an object.
    pub(crate) data: Value,
    /// The exit code that it asks for; 0 is well.
    pub(crate) code: u8,
}

impl Done {
    pub(crate) fn well(text: impl Into<String>, data: Value) -> Self {
        Self { text: text.into(), data, code: exit::OK }
    }
}

/// Does `each` for every project that is meant, and tells it.
pub(crate) fn each(
    ctl: &Ctl,
    command: &str,
    names: &[ProjectName],
    warnings: &[Warning],
    mut each: impl FnMut(&ProjectName) -> Result<Done, CommandError>,
) -> Result<ExitCode, CommandError> {
    let single = names.len() == 1;
    let mut rows = Vec::new();
    let mut codes = Vec::new();
    for name in names {
        let (code, mut row) = match each(name) {
            Ok(Done { text, data, code }) => {
                if !ctl.json && !text.is_empty() {
                    ctl.out.page(&format!("{text}\n"))?;
                }
                (code, data)
            }
            Err(error) if error.is_silent() => return Err(error),
            // Alone it fails as a command fails.
            Err(error) if single => return Err(ctl.about_name(name, error)),
            Err(error) => {
                let error = ctl.about_name(name, error);
                if !ctl.json {
                    ctl.out.page(&format!("{name}: {}\n", error.render().trim_end()))?;
                }
                (error.exit_code(), json!({"error": {"code": error.exit_code(), "message": error.summary()}}))
            }
        };
        if let Value::Object(map) = &mut row {
            let mut head = Map::from_iter([
                ("name".to_owned(), json!(name)),
                ("ok".to_owned(), json!(code == exit::OK)),
                ("exit".to_owned(), json!(code)),
            ]);
            head.append(map);
            *map = head;
        }
        rows.push(row);
        codes.push(code);
    }
    if ctl.json {
        ctl.document(command, &rows, warnings)?;
    }
    Ok(ExitCode::from(together(&codes)))
}

/// Does `shown` for the only project that is meant, for a command that cannot show several.
pub(crate) fn only(
    ctl: &Ctl,
    command: &str,
    which: &Which,
    shown: impl FnOnce(&Project) -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &which.selection())?;
    let [name] = names.as_slice() else {
        let message =
            format!("`peers-ctl {command}` shows one project at a time, and {} were selected", names.len());
        return Err(CommandError::usage(message).hint("name one of them"));
    };
    let project = start::project(&config, name).map_err(failed)?;
    shown(&project).map_err(|error| ctl.about(&project, error))
}

/// The exit code of several: that of all where they agree, 7 where only some went well.
pub(crate) fn together(codes: &[u8]) -> u8 {
    let bad = codes.iter().find(|code| **code != exit::OK);
    match bad {
        None => exit::OK,
        Some(_) if codes.contains(&exit::OK) => exit::PARTIAL,
        Some(first) => *first,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn some_went_well_is_told_apart_from_none() {
        assert_eq!(super::together(&[]), 0);
        assert_eq!(super::together(&[0, 0]), 0);
        assert_eq!(super::together(&[0, 4]), 7);
        assert_eq!(super::together(&[4, 3]), 4);
    }
}
