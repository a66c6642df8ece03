//! What stands in front of a screen: questions, forms, what a command printed, help.

use peers_model::TickNo;
use peers_view::{Page, Tone};
use tui_input::Input;

use crate::actions::{Rung, rung, shown, verb_of};
use crate::host::{At, Done, TickText};
use crate::model::Options;
use crate::palette::Palette;

/// What stands in front of a screen.
#[derive(Debug)]
pub(crate) enum Dialog {
    Help {
        scroll: usize,
    },
    Palette(Palette),
    /// One line for the filter of the fleet, or for a search.
    Line {
        search: bool,
        input: Input,
    },
    Confirm(Confirm),
    Choice(Choice),
    Form(Form),
    /// A command is at work.
    Running(Vec<Vec<String>>),
    /// What it printed.
    Output(Output),
    /// One tick in full.
    Tick {
        tick: TickNo,
        what: TickText,
        scroll: usize,
    },
}

/// What is asked before something is done.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) title: String,
    /// What to know of it.
    pub(crate) lines: Vec<String>,
    pub(crate) does: Does,
    /// What has to be typed; one key is enough where absent.
    pub(crate) word: Option<String>,
    pub(crate) input: Input,
}

impl Confirm {
    /// Whether what was typed is what is asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.word.as_ref().is_none_or(|word| !word.is_empty() && self.input.value().trim() == word)
    }
}

/// What is done then.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    /// These, one after the other.
    Run(Vec<Vec<String>>),
    /// This one, on the terminal; where.
    Show(Vec<String>, At),
}

impl Does {
    /// The commands as they are typed.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Run(all) => all.iter().map(|argv| shown(argv)).collect(),
            Self::Show(argv, _) => vec![shown(argv)],
        }
    }
}

/// One of several ways.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) title: String,
    /// The loop; typed where a way asks for a word.
    pub(crate) about: String,
    pub(crate) ways: Vec<(char, String, Does)>,
    pub(crate) at: usize,
}

/// Several lines that are filled in.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) title: String,
    pub(crate) kind: FormKind,
    pub(crate) fields: Vec<Field>,
    /// The field that has the keys.
    pub(crate) at: usize,
    /// What is wrong with what was filled in.
    pub(crate) problem: Option<String>,
}

/// One line of a form.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// What may stand there.
    pub(crate) hint: String,
    pub(crate) input: Input,
}

/// What a form makes.
#[derive(Debug, Clone)]
pub(crate) enum FormKind {
    /// A start of these loops.
    Start(Vec<String>),
    /// More budget for these.
    Extend(Vec<String>),
    /// The acknowledgement of a blocked step.
    AckBlock(String),
    /// Another acceptance command.
    Amend(String),
    /// A new project.
    New,
}

impl Form {
    pub(crate) fn new(
        title: impl Into<String>,
        kind: FormKind,
        fields: &[(&'static str, &str, &str)],
    ) -> Self {
        let field = |(name, hint, value): &(&'static str, &str, &str)| Field {
            name,
            hint: (*hint).to_owned(),
            input: Input::new((*value).to_owned()),
        };
        Self { title: title.into(), kind, fields: fields.iter().map(field).collect(), at: 0, problem: None }
    }

    fn value(&self, name: &str) -> Option<String> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(field.input.value().trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn is_yes(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.starts_with(['y', 'Y']))
    }

    /// The command that it makes, and the word that has to be typed for it, if one has.
    pub(crate) fn command(&self, options: &Options) -> Result<(Vec<String>, Option<String>), String> {
        let need = |name: &str| self.value(name).ok_or_else(|| format!("`{name}` is empty"));
        let mut words: Vec<String> = Vec::new();
        let mut option = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_owned(), value]);
            }
        };
        Ok(match &self.kind {
            FormKind::Start(names) => {
                option("--max-ticks", self.value("ticks"));
                option("--max-usd", self.value("usd"));
                option("--sandbox", self.value("sandbox"));
                if self.is_yes("worktree") {
                    words.push("--worktree".to_owned());
                }
                (options.controller("start", names.iter().chain(&words)), None)
            }
            FormKind::Extend(names) => {
                option("--runtime", self.value("run time"));
                option("--ticks", self.value("ticks"));
                option("--tokens", self.value("tokens"));
                option("--usd", self.value("usd"));
                option("--for", self.value("for"));
                if !self
                    .fields
                    .iter()
                    .any(|field| field.name != "for" && !field.input.value().trim().is_empty())
                {
                    return Err("fill in at least one cap".to_owned());
                }
                (options.controller("budget raise", names.iter().chain(&words)), None)
            }
            FormKind::AckBlock(name) => {
                let step = need("step")?;
                option("--reason", Some(need("reason")?));
                let named = [name.clone(), step.clone()];
                (options.controller("ack-block", named.iter().chain(&words)), Some(step))
            }
            FormKind::Amend(name) => {
                option("--acceptance", Some(need("command")?));
                option("--reason", Some(need("reason")?));
                (options.controller("amend", std::iter::once(name).chain(&words)), Some(name.clone()))
            }
            FormKind::New => {
                let path = need("path")?;
                option("--name", self.value("name"));
                option("--test", self.value("test command"));
                option("--task", self.value("task"));
                option("--agents", self.value("agents"));
                option("--modes", self.value("modes"));
                if self.value("test command").is_none() && self.is_yes("detect gates") {
                    words.push("--detect".to_owned());
                }
                if self.is_yes("start") {
                    words.push("--start".to_owned());
                }
                (options.controller("new", std::iter::once(&path).chain(&words)), None)
            }
        })
    }
}

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) title: String,
    pub(crate) page: Page,
    pub(crate) scroll: usize,
}

impl Output {
    /// Folded to so many cells.
    pub(crate) fn of(argv: &[String], done: &Done, width: usize) -> Self {
        let mut page = Page::default();
        match done.code {
            // What it found is no failure.
            Some(code) if code != 0 && rung(&verb_of(argv)) == Rung::Read => {
                page.tell(Tone::Care, format!("exit code {code}"));
            }
            Some(0) => page.tell(Tone::Good, "✓ done, exit code 0"),
            Some(code) => page.tell(Tone::Bad, format!("✗ exit code {code}")),
            None => page.tell(Tone::Bad, "✗ it did not come to its end"),
        }
        page.blank();
        for line in done.output.lines() {
            let chars: Vec<char> = line.chars().collect();
            for piece in chars.chunks(width.max(20)) {
                page.tell(Tone::Plain, piece.iter().collect::<String>());
            }
            if chars.is_empty() {
                page.blank();
            }
        }
        Self { title: shown(argv), page, scroll: 0 }
    }
}
