//! Commit messages in the forms that the loop reads, and the commits themselves.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use peers_sys::env::Env;
use serde_json::{Map, Value, json};

use crate::args::Files;
use crate::shell::{Done, command, run};
use crate::step::{BugReport, BugResolve, Review, Skeptic};

/// A commit to be made; all texts are final.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Planned {
    pub(crate) files: Files,
    pub(crate) message: String,
    pub(crate) allow_empty: bool,
}

/// The parts of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    pub(crate) subject: String,
    pub(crate) paragraphs: Vec<String>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl Parts {
    pub(crate) fn message(&self) -> String {
        let mut text = self.subject.clone();
        text.push('\n');
        for paragraph in self.paragraphs.iter().filter(|paragraph| !paragraph.is_empty()) {
            let _infallible = write!(text, "\n{}\n", paragraph.trim_end_matches('\n'));
        }
        if !self.trailers.is_empty() {
            text.push('\n');
        }
        for (key, value) in &self.trailers {
            let _infallible = writeln!(text, "{key}: {value}");
        }
        text
    }

    /// Adds what makes a commit hand the turn over.
    pub(crate) fn hand_off(&mut self, peer: &str, self_review: Option<&str>) {
        let default = "Read the whole diff again, ran what the goals run and looked at the error paths; \
                       every open gate is named in the subject or was green before.";
        let review = self_review.unwrap_or(default);
        self.paragraphs.push(format!("## Self-Review\n{review}"));
        for (key, value) in [("Self-Review", "pass"), ("Peer-Status", "handoff"), ("Peer", peer)] {
            self.trailers.push((key.to_owned(), value.to_owned()));
        }
    }

    fn end(&mut self, peer: &str, handoff: bool) {
        if handoff {
            self.hand_off(peer, None);
        } else {
            self.trailers.push(("Peer".to_owned(), peer.to_owned()));
        }
    }
}

pub(crate) fn review(review: &Review, peer: &str) -> Parts {
    let mut body = Map::new();
    body.insert("goal".to_owned(), json!(review.goal));
    body.insert("pass".to_owned(), json!(review.pass));
    if let Some(notes) = &review.notes {
        body.insert("notes".to_owned(), json!(notes));
    }
    for (key, texts) in [("issues", &review.issues), ("checked", &review.checked)] {
        if !texts.0.is_empty() {
            body.insert(key.to_owned(), json!(texts.0));
        }
    }
    let mut parts = Parts {
        subject: format!("Review {}", review.goal),
        paragraphs: vec![section("Review", &Value::Object(body))],
        trailers: vec![("Peer-Review-Of".to_owned(), review.goal.clone())],
    };
    parts.end(peer, review.handoff);
    parts
}

pub(crate) fn bug_report(report: &BugReport, peer: &str) -> Parts {
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(report.id));
    body.insert("severity".to_owned(), json!(report.severity));
    for (key, text) in [
        ("title", &report.title),
        ("description", &report.description),
        ("location", &report.location),
        ("fix_by", &report.fix_by),
    ] {
        if let Some(text) = text {
            body.insert(key.to_owned(), json!(text));
        }
    }
    let block = if report.malformed {
        format!("## Bug-Report\n{{\"id\": \"{}\", \"severity\": \"{}\",", report.id, report.severity)
    } else {
        section("Bug-Report", &Value::Object(body))
    };
    let mut parts = Parts {
        subject: format!("Report {}", report.title.as_deref().unwrap_or(&report.id)),
        paragraphs: vec![block],
        trailers: vec![("Bug-Report".to_owned(), report.id.clone())],
    };
    parts.end(peer, report.handoff);
    parts
}

pub(crate) fn bug_resolve(resolve: &BugResolve, peer: &str) -> Parts {
    let mut body = Map::new();
    body.insert("resolves".to_owned(), json!(resolve.id));
    body.insert("status".to_owned(), json!(resolve.status));
    body.insert("note".to_owned(), json!(resolve.note.as_deref().unwrap_or("done as described")));
    if let Some(of) = &resolve.of {
        body.insert("of".to_owned(), json!(of));
    }
    let mut parts = Parts {
        subject: format!("Resolve {}", resolve.id),
        paragraphs: vec![section("Bug-Resolution", &Value::Object(body))],
        trailers: vec![("Bug-Resolves".to_owned(), resolve.id.clone())],
    };
    parts.end(peer, resolve.handoff);
    parts
}

pub(crate) fn skeptic(skeptic: &Skeptic, peer: &str) -> Parts {
    let mut text = "## Skeptic\nExcluded failure modes:\n".to_owned();
    for mode in &skeptic.excluded.0 {
        let _infallible = writeln!(text, "- {mode}");
    }
    let mut parts = Parts {
        subject: format!("Skeptic: {}", skeptic.verdict),
        paragraphs: vec![text],
        trailers: vec![("Skeptic".to_owned(), skeptic.verdict.clone())],
    };
    parts.end(peer, true);
    parts
}

fn section(name: &str, body: &Value) -> String {
    format!("## {name}\n{body}")
}

/// Makes the commit with as few processes as can be: one, or two when files are to be added.
pub(crate) fn make(planned: &Planned, peer: &str, cwd: &Path, env: &Env) -> io::Result<Done> {
    let mut commit = vec!["commit", "-q", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "-F", "-"];
    match &planned.files {
        Files::All => {
            let added = git(&["add", "-A"], None, peer, cwd, env)?;
            if !added.status.success() {
                return Ok(added);
            }
        }
        Files::Paths(paths) => {
            let mut add = vec!["add", "-A", "--"];
            add.extend(paths.iter().map(String::as_str));
            let added = git(&add, None, peer, cwd, env)?;
            if !added.status.success() {
                return Ok(added);
            }
        }
        Files::Tracked => commit.push("-a"),
        Files::None => {}
    }
    if planned.allow_empty {
        commit.push("--allow-empty");
    }
    git(&commit, Some(planned.message.as_bytes()), peer, cwd, env)
}

/// Runs git as the agent would, in its own name and without background work.
pub(crate) fn git(
    args: &[&str],
    input: Option<&[u8]>,
    peer: &str,
    cwd: &Path,
    env: &Env,
) -> io::Result<Done> {
    let mut git = command("git", cwd, env);
    for role in ["AUTHOR", "COMMITTER"] {
        for (what, value) in [("NAME", peer.to_owned()), ("EMAIL", format!("{peer}@peers.local"))] {
            let name = format!("GIT_{role}_{what}");
            if env.text(&name).is_none() {
                git.env(name, value);
            }
        }
    }
    git.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]).args(args);
    run(git, input)
}
