//! Keys of what stands in front of a screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, InputRequest};

use super::moved;
use crate::actions::Rung;
use crate::dialog::{Confirm, Dialog, Does, Form};
use crate::host::TickText;
use crate::loops::Source;
use crate::message::Cmd;
use crate::model::Model;

/// Characters of one line that is typed.
const MOST: usize = 4096;

impl Model {
    pub(super) fn dialog_key(&mut self, key: KeyEvent) -> Vec<Cmd> {
        let Some(dialog) = self.dialog.take() else { return Vec::new() };
        // Ctrl-C leaves from everywhere.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return vec![Cmd::Quit(None)];
        }
        // A command that is at work is waited for: what it did must be seen.
        if key.code == KeyCode::Esc && !matches!(dialog, Dialog::Running(_)) {
            return self.closed(&dialog);
        }
        match dialog {
            Dialog::Help { scroll } => {
                if let Some(by) = self.scrolling(key) {
                    self.dialog = Some(Dialog::Help { scroll: moved(scroll, by, self.hits.front_most) });
                }
            }
            Dialog::Palette(palette) => return self.palette_key(palette, key),
            Dialog::Line { search, mut input } => {
                if key.code == KeyCode::Enter {
                    return self.line_given(search, input.value());
                }
                edit(&mut input, key);
                if !search {
                    // What fits is shown while it is typed.
                    let text = input.value().to_owned();
                    self.set_filter(&text);
                }
                self.dialog = Some(Dialog::Line { search, input });
            }
            Dialog::Confirm(confirm) => return self.confirm_key(confirm, key),
            Dialog::Choice(mut choice) => {
                let last = choice.ways.len().saturating_sub(1);
                let by_letter = |c: char| choice.ways.iter().position(|(key, ..)| *key == c);
                let taken = match key.code {
                    KeyCode::Enter => Some(choice.at),
                    KeyCode::Char(c) if by_letter(c).is_some() => by_letter(c),
                    KeyCode::Char('n' | 'N') => return Vec::new(),
                    KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => {
                        choice.at = moved(choice.at, 1, last);
                        None
                    }
                    KeyCode::Up | KeyCode::BackTab | KeyCode::Char('k') => {
                        choice.at = moved(choice.at, -1, last);
                        None
                    }
                    _ => None,
                };
                let way = taken.and_then(|at| choice.ways.get(at)).map(|(_, _, does)| does.clone());
                let Some(does) = way else {
                    self.dialog = Some(Dialog::Choice(choice));
                    return Vec::new();
                };
                return self.chosen_way((choice.title, choice.about), does);
            }
            Dialog::Form(form) => return self.form_key(form, key),
            Dialog::Running(all) => self.dialog = Some(Dialog::Running(all)),
            Dialog::Output(mut output) => {
                if let Some(by) = self.scrolling(key) {
                    output.scroll = moved(output.scroll, by, self.hits.front_most);
                    self.dialog = Some(Dialog::Output(output));
                }
            }
            Dialog::Tick { tick, what, scroll } => self.tick_key((tick, what, scroll), key),
        }
        Vec::new()
    }

    /// What is behind a dialog that was given up.
    fn closed(&mut self, dialog: &Dialog) -> Vec<Cmd> {
        if let Dialog::Line { search: false, .. } = dialog {
            self.set_filter("");
            return vec![Cmd::Keep(self.prefs.clone())];
        }
        Vec::new()
    }

    /// How far a key scrolls; nothing for one that closes what it is pressed in.
    fn scrolling(&self, key: KeyEvent) -> Option<i64> {
        let page = i64::from(self.hits.front.max(2)) - 1;
        Some(match key.code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown | KeyCode::Char(' ') => page,
            KeyCode::PageUp => -page,
            KeyCode::Home | KeyCode::Char('g') => i64::MIN,
            KeyCode::End | KeyCode::Char('G') => i64::MAX,
            KeyCode::Enter | KeyCode::Char('q' | '?') => return None,
            _ => 0,
        })
    }

    fn palette_key(&mut self, mut palette: crate::palette::Palette, key: KeyEvent) -> Vec<Cmd> {
        let found = palette.found(self.spot());
        match key.code {
            KeyCode::Enter => {
                return match found.get(palette.at) {
                    Some(binding) => self.act(binding.action),
                    None => Vec::new(),
                };
            }
            KeyCode::Down | KeyCode::Tab => palette.at = moved(palette.at, 1, found.len().saturating_sub(1)),
            KeyCode::Up | KeyCode::BackTab => palette.at = moved(palette.at, -1, found.len()),
            _ => {
                edit(&mut palette.input, key);
                palette.at = 0;
            }
        }
        self.dialog = Some(Dialog::Palette(palette));
        Vec::new()
    }

    fn line_given(&mut self, search: bool, text: &str) -> Vec<Cmd> {
        if search {
            text.clone_into(&mut self.search);
            self.search_on(true);
            return Vec::new();
        }
        self.set_filter(text);
        vec![Cmd::Keep(self.prefs.clone())]
    }

    fn confirm_key(&mut self, mut confirm: Confirm, key: KeyEvent) -> Vec<Cmd> {
        let typed = confirm.word.is_some();
        let yes = match key.code {
            KeyCode::Enter => confirm.is_given(),
            KeyCode::Char('y' | 'Y') => !typed,
            KeyCode::Char('n' | 'N') if !typed => return Vec::new(),
            _ => false,
        };
        if yes {
            return self.go_ahead(confirm.does);
        }
        if typed {
            edit(&mut confirm.input, key);
        }
        self.dialog = Some(Dialog::Confirm(confirm));
        Vec::new()
    }

    /// One of several ways was taken; that it was taken is the one key that most of them ask for.
    fn chosen_way(&mut self, (title, about): (String, String), does: Does) -> Vec<Cmd> {
        let grave = match &does {
            Does::Run(all) => all
                .first()
                .is_some_and(|argv| crate::actions::rung(&crate::actions::verb_of(argv)) == Rung::Word),
            Does::Show(..) => false,
        };
        if !grave {
            return self.go_ahead(does);
        }
        self.ask(title, Vec::new(), does, Some(about));
        Vec::new()
    }

    fn form_key(&mut self, mut form: Form, key: KeyEvent) -> Vec<Cmd> {
        let last = form.fields.len().saturating_sub(1);
        match key.code {
            KeyCode::Down | KeyCode::Tab => form.at = if form.at == last { 0 } else { form.at + 1 },
            KeyCode::Up | KeyCode::BackTab => form.at = form.at.checked_sub(1).unwrap_or(last),
            KeyCode::Enter => match form.command(&self.options) {
                Err(why) => form.problem = Some(why),
                Ok((argv, word)) => {
                    let lines = Vec::new();
                    self.ask(form.title, lines, Does::Run(vec![argv]), word);
                    return Vec::new();
                }
            },
            _ => {
                form.problem = None;
                if let Some(field) = form.fields.get_mut(form.at) {
                    edit(&mut field.input, key);
                }
            }
        }
        self.dialog = Some(Dialog::Form(form));
        Vec::new()
    }

    fn tick_key(&mut self, (tick, what, scroll): (peers_model::TickNo, TickText, usize), key: KeyEvent) {
        let all = TickText::ALL;
        let at = all.iter().position(|one| *one == what).unwrap_or_default();
        let by = match key.code {
            KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') => 1,
            KeyCode::Left | KeyCode::BackTab | KeyCode::Char('h') => all.len() - 1,
            _ => {
                if let Some(by) = self.scrolling(key) {
                    self.dialog =
                        Some(Dialog::Tick { tick, what, scroll: moved(scroll, by, self.hits.front_most) });
                }
                return;
            }
        };
        let what = all.get((at + by) % all.len()).copied().unwrap_or(what);
        self.one.tick_text = Source::Coming;
        self.dialog = Some(Dialog::Tick { tick, what, scroll: 0 });
    }

    /// Pasted text goes where text is typed, and nowhere else: it is no keys.
    pub(super) fn paste(&mut self, text: &str) -> Vec<Cmd> {
        let text: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect();
        let input = match &mut self.dialog {
            Some(Dialog::Line { input, .. }) => input,
            Some(Dialog::Palette(palette)) => &mut palette.input,
            Some(Dialog::Confirm(confirm)) if confirm.word.is_some() => &mut confirm.input,
            Some(Dialog::Form(form)) => match form.fields.get_mut(form.at) {
                Some(field) => &mut field.input,
                None => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        for c in text {
            insert(input, c);
        }
        if let Some(Dialog::Line { search: false, input }) = &self.dialog {
            let text = input.value().to_owned();
            self.set_filter(&text);
        }
        Vec::new()
    }
}

fn insert(input: &mut Input, c: char) {
    if input.value().chars().count() < MOST {
        input.handle(InputRequest::InsertChar(c));
    }
}

/// A key in a line that is edited.
fn edit(input: &mut Input, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let request = match key.code {
        KeyCode::Char('u') if control => InputRequest::DeleteLine,
        KeyCode::Char('w') if control => InputRequest::DeletePrevWord,
        KeyCode::Char('a') if control => InputRequest::GoToStart,
        KeyCode::Char('e') if control => InputRequest::GoToEnd,
        KeyCode::Char(_) if control => return,
        KeyCode::Char(c) => return insert(input, c),
        KeyCode::Backspace => InputRequest::DeletePrevChar,
        KeyCode::Delete => InputRequest::DeleteNextChar,
        KeyCode::Left => InputRequest::GoToPrevChar,
        KeyCode::Right => InputRequest::GoToNextChar,
        KeyCode::Home => InputRequest::GoToStart,
        KeyCode::End => InputRequest::GoToEnd,
        _ => return,
    };
    input.handle(request);
}
