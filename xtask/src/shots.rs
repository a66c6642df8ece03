//! `docs-shots`: the pictures of docs/cockpit.md, each what a terminal shows of the real program.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ground::build_all;
use crate::terminal::Terminal;
use crate::{Failure, Outcome};

/// Where the projects of the pictures are; the pictures show it.
const ROOT: &str = "/tmp/peers-shots";
/// Lines and columns.
const SIZE: (u16, u16) = (34, 124);
/// Cells of a character, pixels.
const CELL: (f64, f64) = (8.0, 17.0);

pub(crate) fn run(out: &mut dyn Write) -> Result<Outcome, Failure> {
    let [peers, ctl] = build_all(["peers-cli", "peers-ctl"])?;
    let root = Path::new(ROOT);
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::create_dir_all(root.join("home"))?;
    let world = World { root: root.to_owned(), bin: peers.parent().unwrap_or(root).to_owned() };
    world.fill()?;
    let pictures = Path::new("docs/pictures");
    fs::create_dir_all(pictures)?;
    let parser = &["tui", "--project", "parser"][..];
    for (name, args, keys, seen) in [
        ("fleet", &["tui"][..], "", "need you"),
        ("overview", parser, "", "last ticks"),
        ("gates", parser, "3[[[", "gates at tick"),
        ("diff", parser, "4jjjd", "diff --git"),
    ] {
        let mut terminal = Terminal::start(&world.command(&ctl, args), SIZE)?;
        terminal.until("the first screen", |screen| screen.contents().contains("need"))?;
        terminal.rest(Duration::from_millis(1500));
        for key in keys.chars() {
            terminal.keys(&key.to_string())?;
            terminal.rest(Duration::from_millis(300));
        }
        terminal.until(seen, |screen| screen.contents().contains(seen))?;
        terminal.rest(Duration::from_millis(1500));
        let path = pictures.join(format!("cockpit-{name}.svg"));
        fs::write(&path, svg(terminal.screen()))?;
        writeln!(out, "{}", path.display())?;
    }
    fs::remove_dir_all(root)?;
    Ok(Outcome::Ok)
}

struct World {
    root: PathBuf,
    bin: PathBuf,
}

impl World {
    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let home = self.root.join("home");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.bin.display()))
            .env("HOME", &home)
            .env("USER", "you")
            .env("SHELL", "/bin/sh")
            .args(args)
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    fn done(&self, program: &str, args: &[&str]) -> Result<(), Failure> {
        let output = self.command(Path::new(program), args).output()?;
        // What a scripted peer or a stop makes of a run is told by its row.
        if output.status.code().is_none() {
            return Err(format!("{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(())
    }

    /// Projects in different standing: one that is complete, one whose goals were changed behind its back, one that
    /// reached its ticks, two that are new.
    fn fill(&self) -> Result<(), Failure> {
        for key in ["user.name", "user.email"] {
            self.done("git", &["config", "--global", key, "you@example.org"])?;
        }
        for name in ["parser", "billing"] {
            self.done("peers", &["demo", "--language", "shell", "--dir", name])?;
            let dir = format!("{name}/project");
            self.done("peers-ctl", &["add", &dir, "--name", name, "--label", "team=core"])?;
        }
        let goals = self.root.join("billing/project/.peers/goals.yaml");
        let text = fs::read_to_string(&goals)?;
        fs::write(&goals, format!("{text}# somebody was here\n"))?;
        for name in ["gateway", "search", "docs"] {
            let dir = self.root.join(name);
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("README.md"), format!("# {name}\n"))?;
            for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "First"]]
            {
                self.done("git", &[&["-C", name], args].concat())?;
            }
            let args =
                if name == "gateway" { vec!["init"] } else { vec!["init", "--agents", "claude,codex"] };
            self.done("peers", &[&["-C", name], args.as_slice()].concat())?;
            self.done("peers-ctl", &["add", &format!("./{name}"), "--name", name])?;
        }
        Ok(())
    }
}

/// What stands on a terminal as a picture.
fn svg(screen: &vt100::Screen) -> String {
    let (rows, cols) = screen.size();
    let (width, height) = (f64::from(cols) * CELL.0 + 16.0, f64::from(rows) * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16181d\"/>\n"
    );
    for row in 0..rows {
        let mut col = 0;
        while col < cols {
            let Some(cell) = screen.cell(row, col) else { break };
            let look = look(cell);
            let (from, mut text) = (col, String::new());
            // A run of cells that look alike.
            while let Some(next) = screen.cell(row, col).filter(|next| col < cols && self::look(next) == look)
            {
                text.push_str(if next.contents().is_empty() { " " } else { next.contents() });
                col += if next.is_wide() { 2 } else { 1 };
            }
            let (colour, behind, bold, inverse) = look;
            if text.trim().is_empty() && !inverse && behind.is_none() {
                continue;
            }
            let (x, y) = (f64::from(from) * CELL.0 + 8.0, f64::from(row) * CELL.1 + 8.0);
            let wide = f64::from(col - from) * CELL.0;
            if let Some(fill) = if inverse { Some(colour) } else { behind } {
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{}\" fill=\"{fill}\"/>",
                    CELL.1
                );
            }
            let fill = if inverse { "#16181d" } else { colour };
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{}\" textLength=\"{wide}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{fill}\"{weight} xml:space=\"preserve\">{text}</text>",
                y + 13.0
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Colour, what is behind it, whether it is bold, whether it is turned round.
fn look(cell: &vt100::Cell) -> (&'static str, Option<&'static str>, bool, bool) {
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(1 | 9) => "#ff6b6b",
        vt100::Color::Idx(2 | 10) => "#5ad17a",
        vt100::Color::Idx(3 | 11) => "#e5c04b",
        vt100::Color::Idx(6 | 14) => "#58c4dd",
        vt100::Color::Idx(8) => "#7d8590",
        _ => "#e6e6e6",
    };
    let behind = (cell.bgcolor() != vt100::Color::Default).then_some("#30353f");
    (colour, behind, cell.bold(), cell.inverse())
}
