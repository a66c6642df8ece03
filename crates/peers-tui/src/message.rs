//! What comes in, and what is asked for in return.

use peers_model::Timestamp;
use peers_view::Page;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use crate::host::{At, Content, Done, Event, Part, Snapshot};
use crate::prefs::Prefs;

/// Something that came.
#[derive(Debug)]
pub enum Msg {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// Text that was pasted.
    Paste(String),
    /// The terminal has another size.
    Resize,
    /// So late it is.
    Clock(Timestamp),
    /// The loops.
    Rows(Result<Snapshot, String>),
    /// A part of a loop.
    Part {
        /// Of which.
        name: String,
        /// Which.
        part: Part,
        /// What was read.
        content: Result<Content, String>,
    },
    /// What happened.
    Events(Vec<Event>),
    /// What was asked for once.
    Answer(Ask, Result<Page, String>),
    /// A command came to its end.
    Done(Vec<String>, Done),
    /// The terminal was another program's; why that could not be started, if so.
    Back(Option<String>),
    /// A signal asks this program to end.
    Signal(i32),
    /// A thread is gone without which nothing goes on; why.
    Gone(String),
}

/// What is asked of the host once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// What keeps these from running.
    Doctor(Vec<String>),
    /// These side by side.
    Compare(Vec<String>),
}

/// What is looked at again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Want {
    /// A loop, and which parts of it.
    pub(crate) of: Option<(String, Vec<Part>)>,
    /// What happens in all loops.
    pub(crate) events: bool,
}

/// What the model asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cmd {
    /// Leave, with this exit code of a signal if one came.
    Quit(Option<i32>),
    /// Let the shell have the terminal until somebody continues this program.
    Suspend,
    /// Look at this from now on.
    Want(Want),
    /// Look at everything now.
    Refresh,
    /// Ask this once.
    Ask(Ask),
    /// Run these one after the other, as long as each ends well.
    Run(Vec<Vec<String>>),
    /// Run this on the terminal.
    Show(Vec<String>, At),
    /// Put this on the clipboard.
    Copy(String),
    /// Ring the bell.
    Bell,
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Keep this for the next session.
    Keep(Prefs),
}
