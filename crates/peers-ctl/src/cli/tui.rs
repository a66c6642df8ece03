//! `peers-ctl tui`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::parts::{has_terminal, theme};
use peers_fleet::ProjectName;
use peers_model::exit;
use peers_tui::{Left, Options, Pace, ThemeName};

use crate::cockpit;
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Watch and steer all loops in a live terminal
///
/// Which loop needs you, why, what it costs, and the key that helps. Enter opens a loop: gates over time, what
/// its agent says, what it changed. Every act runs the command that it shows. `?` lists the keys.
/// Loops keep running when it is closed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Open this loop first
    #[arg(long, value_name = "NAME")]
    project: Option<ProjectName>,
    /// Change nothing: keys that act are off
    #[arg(long)]
    read_only: bool,
    /// Colours and signs [default: dark; mono with `NO_COLOR`, ascii where the locale has no UTF-8]
    #[arg(long, value_enum, value_name = "THEME", verbatim_doc_comment)]
    theme: Option<Look>,
    /// Draw new data at most N times a second; keys are drawn at once
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=30))]
    fps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Look {
    Dark,
    Light,
    Mono,
    Ascii,
}

impl Look {
    fn name(self) -> ThemeName {
        match self {
            Self::Dark => ThemeName::Dark,
            Self::Light => ThemeName::Light,
            Self::Mono => ThemeName::Mono,
            Self::Ascii => ThemeName::Ascii,
        }
    }
}

impl Args {
    /// As it is opened where nothing was said; nothing where there is no terminal for it.
    pub(crate) fn if_possible(ctl: &Ctl) -> Option<Self> {
        let plain = Self {
            which: Which::default(),
            project: None,
            read_only: false,
            theme: None,
            fps: Pace::default().fps,
        };
        (!ctl.json && has_terminal(&ctl.env)).then_some(plain)
    }
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    ctl.refuse_json("tui")?;
    if !has_terminal(&ctl.env) {
        return Err(CommandError::new(exit::ENVIRONMENT, "the cockpit needs a terminal")
            .hint("`peers-ctl dashboard` prints the same, `--json` for programs"));
    }
    if let Some(name) = &args.project {
        let known = ctl.registry(&ctl.config()?)?;
        if known.registry.get(name).is_none() {
            return Err(failed(peers_fleet::start::unknown(name.as_str(), &known.registry)));
        }
    }
    let options = Options {
        theme: theme(args.theme.map(Look::name), &ctl.env),
        read_only: args.read_only,
        open: args.project.as_ref().map(ToString::to_string),
        ..Options::default()
    };
    let pace = Pace { fps: args.fps, ..Pace::default() };
    show(ctl, options, &args.which, pace)
}

/// Opens it over these loops.
pub(crate) fn show(ctl: &Ctl, options: Options, which: &Which, pace: Pace) -> Result<ExitCode, CommandError> {
    match cockpit::open(ctl, options, which.or_all(), pace)? {
        Left::Quit => {
            ctl.say("the loops keep running; `peers-ctl stop` stops them");
            Ok(ExitCode::SUCCESS)
        }
        Left::Signal(signal) => Ok(ExitCode::from(exit::signalled(signal))),
    }
}

/// Opens it for `dashboard --live` with how often that is to look.
pub(crate) fn live(
    ctl: &Ctl,
    which: &Which,
    project: Option<&ProjectName>,
    every: std::time::Duration,
) -> Result<ExitCode, CommandError> {
    let open = project.map(ToString::to_string);
    let options = Options { theme: theme(None, &ctl.env), open, ..Options::default() };
    show(ctl, options, which, Pace { rows: every, ..Pace::default() })
}
