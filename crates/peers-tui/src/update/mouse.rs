//! Clicks and the wheel.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::message::Cmd;
use crate::model::{Model, Screen};

/// Lines that the wheel moves.
const WHEEL: i64 = 3;

impl Model {
    pub(super) fn mouse(&mut self, event: MouseEvent) -> Vec<Cmd> {
        if self.dialog.is_some() {
            return Vec::new();
        }
        match event.kind {
            MouseEventKind::ScrollDown => self.go(if self.screen == Screen::Fleet { 1 } else { WHEEL }),
            MouseEventKind::ScrollUp => self.go(if self.screen == Screen::Fleet { -1 } else { -WHEEL }),
            MouseEventKind::Down(MouseButton::Left) => {
                return self.click(Position { x: event.column, y: event.row });
            }
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, at: Position) -> Vec<Cmd> {
        if let Some((_, tab)) = self.hits.tabs.iter().find(|(area, _)| area.contains(at)) {
            let tab = *tab;
            self.go_to_tab(tab);
            return Vec::new();
        }
        if let Some((_, sort)) = self.hits.heads.iter().find(|(area, _)| area.contains(at)) {
            // The same again turns it round.
            if self.prefs.sort == *sort {
                self.prefs.reversed ^= true;
            } else {
                self.prefs.sort = *sort;
            }
            return vec![Cmd::Keep(self.prefs.clone())];
        }
        let Some((area, first)) = self.hits.list.filter(|(area, _)| area.contains(at)) else {
            return Vec::new();
        };
        let row = first + usize::from(at.y - area.y);
        match self.screen {
            Screen::Fleet => {
                let Some(name) = self.rows().get(row).map(|row| row.name.clone()) else { return Vec::new() };
                // A second click opens it.
                if self.chosen.as_ref() == Some(&name) {
                    return self.open();
                }
                self.chosen = Some(name);
            }
            _ => {
                if self.one.rows().is_some_and(|rows| row < rows) {
                    if self.one.at == row {
                        return self.open();
                    }
                    self.one.at = row;
                }
            }
        }
        Vec::new()
    }
}
