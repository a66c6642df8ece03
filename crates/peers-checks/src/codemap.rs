//! `CODEMAP.yaml`: what a project's public surface is said to be, beside what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use peers_code::Outlines;
use peers_code::{CodeMap, Entry, Kind, Listed, MAX_BYTES, is_source};
use peers_git::{Facts, GitError};
use peers_model::CommitId;
use peers_sys::{term, yaml};
use serde::Deserialize;

use crate::cx::{CheckCx, CouldNot};

/// Where it lies unless said otherwise.
pub const MAP: &str = "CODEMAP.yaml";
/// Bytes that it may have.
const MOST: usize = 8 * 1024 * 1024;
/// Where the text for agents lies.
pub const AGENTS: &str = "docs/AGENTS-codemap.md";
/// Git's file modes of regular files.
const REGULAR: [u32; 2] = [0o100_644, 0o100_755];

/// One thing of the map.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// Its dotted path.
    pub(crate) id: String,
    /// `module`, `class`, `function` or `method`.
    pub(crate) kind: String,
    /// The file.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: u64,
    /// Its name with its parameters.
    #[serde(default)]
    pub(crate) signature: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub(crate) summary: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    entries: Vec<Said>,
}

/// The entries of a map, or why a text is none.
fn parse(text: &str) -> Result<Vec<Said>, String> {
    let entries = match as_written(text) {
        Some(entries) => entries,
        None => {
            yaml::from_str::<File>(MAP, text).map_err(|error| term::line(&error.to_string(), 300))?.entries
        }
    };
    let mut seen = BTreeSet::new();
    match entries.iter().find(|said| !seen.insert(said.id.as_str())) {
        Some(twice) => Err(format!("`{}` stands there twice", term::line(&twice.id, 100))),
        None => Ok(entries),
    }
}

/// The entries of a map that is laid out as [`CodeMap::yaml_with`] does it, however its texts were edited: a hundred times
/// as fast as reading it as YAML. Anything else is nothing, and read as YAML.
fn as_written(text: &str) -> Option<Vec<Said>> {
    let mut lines = text.strip_prefix("entries:\n")?.strip_suffix('\n')?.split('\n').peekable();
    let mut entries = Vec::new();
    while let Some(line) = lines.next() {
        let id = quoted(line.strip_prefix("- id: ")?)?;
        let kind = lines.next()?.strip_prefix("  kind: ")?;
        let file = quoted(lines.next()?.strip_prefix("  file: ")?)?;
        let line = lines.next()?.strip_prefix("  line: ")?.parse().ok()?;
        let mut more = |key: &str| match lines.peek().and_then(|line| line.strip_prefix(key)) {
            Some(value) => {
                lines.next();
                quoted(value).map(Some)
            }
            None => Some(None),
        };
        let (signature, summary) = (more("  signature: ")?, more("  summary: ")?);
        let known = matches!(kind, "module" | "class" | "function" | "method");
        entries.push(Said { id, kind: known.then(|| kind.to_owned())?, file, line, signature, summary });
    }
    Some(entries)
}

/// A text in double quotes with the escapes that JSON has: in YAML it means the same.
fn quoted(text: &str) -> Option<String> {
    serde_json::from_str(text.starts_with('"').then_some(text)?).ok()
}

/// The map at the commit that is judged, or what stands in its place.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read.
pub(crate) fn said(cx: &CheckCx) -> Result<Result<Vec<Said>, String>, CouldNot> {
    Ok(text_at(cx, MAP, MOST)?.and_then(|text| parse(&text)))
}

/// A text file at the commit that is judged, or why there is none.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read.
pub(crate) fn text_at(cx: &CheckCx, path: &str, most: usize) -> Result<Result<String, String>, CouldNot> {
    let blob = match cx.facts()?.read_blob(cx.head(), path, most) {
        Ok(Some(blob)) if REGULAR.contains(&blob.mode) => blob,
        Ok(Some(_)) => return Ok(Err("is not a regular file".to_owned())),
        Ok(None) => return Ok(Err("is not in the commit".to_owned())),
        Err(GitError::TooLarge { .. }) => return Ok(Err(format!("is larger than {most} bytes"))),
        Err(error) => return Err(CouldNot::git("read a file", &error)),
    };
    Ok(String::from_utf8(blob.bytes).map_err(|_| "is not UTF-8".to_owned()))
}

/// The public surface at a commit. Checks measure it anew: nothing that was kept decides a verdict here.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read.
pub(crate) fn real(cx: &CheckCx, commit: &CommitId) -> Result<CodeMap, CouldNot> {
    Ok(made(cx, commit, &mut Outlines::default())?.0)
}

fn made(cx: &CheckCx, commit: &CommitId, known: &mut Outlines) -> Result<(CodeMap, usize), CouldNot> {
    map_at(&cx.facts()?, &cx.settings().layout, commit, known)
        .map_err(|e| CouldNot::git("list the files", &e))
}

/// The public surface at a commit, of the sources below `roots` if there are any, and how many files were parsed for it.
/// `known` are outlines of before, and afterwards those of this commit.
///
/// # Errors
/// [`GitError`] for a commit that cannot be read.
pub fn map_at(
    facts: &Facts<'_>,
    roots: &[String],
    commit: &CommitId,
    known: &mut Outlines,
) -> Result<(CodeMap, usize), GitError> {
    let sources = facts.list_tree(commit)?.into_iter();
    let sources: Vec<Listed> = sources
        .filter(|file| REGULAR.contains(&file.mode) && is_source(&file.path, roots))
        .map(|file| Listed { path: file.path, content: file.id })
        .collect();
    let read =
        |file: &Listed| facts.read_object(&file.content, MAX_BYTES).map_err(|error| crate::cx::chain(&error));
    Ok(peers_code::codemap(&sources, known, read))
}

/// A map that is true, with the summaries of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// The file.
    pub text: String,
    /// Files that had to be parsed.
    pub parsed: usize,
    /// Entries.
    pub entries: usize,
    /// Entries without a summary.
    pub blank: usize,
    /// Entries whose signature is another than the one that the summary was written for.
    pub stale: Vec<String>,
    /// Files that cannot be read, with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// Makes the map of the commit anew. Summaries stay with their ids; one whose signature changed is told. `known` is what
/// earlier commits are known to hold, and afterwards what this one holds.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read, or a map of before that is none.
pub fn refresh(cx: &CheckCx, before: Option<&str>, known: &mut Outlines) -> Result<Refreshed, CouldNot> {
    let hint = || Some(format!("mend {MAP}, or take it away: then it is made anew, without summaries"));
    let before = before
        .map(parse)
        .transpose()
        .map_err(|why| CouldNot { what: format!("{MAP}: {why}"), hint: hint() })?;
    let before: BTreeMap<String, Said> =
        before.unwrap_or_default().into_iter().map(|said| (said.id.clone(), said)).collect();
    let (map, parsed) = made(cx, cx.head(), known)?;
    let mut out = Refreshed {
        text: String::new(),
        parsed,
        entries: map.entries.len(),
        blank: 0,
        stale: Vec::new(),
        unreadable: map.unreadable.clone(),
    };
    out.text = map.yaml_with(&mut |entry| {
        let said = before.get(&entry.id);
        let summary = said.and_then(|said| said.summary.clone()).unwrap_or_default();
        if summary.trim().is_empty() {
            out.blank += 1;
        } else if said.is_some_and(|said| said.signature != entry.signature) {
            out.stale.push(entry.id.clone());
        }
        summary
    });
    if out.text.len() > MOST {
        return Err(CouldNot {
            what: format!("a {MAP} of {} entries is larger than {} MiB", out.entries, MOST / 1024 / 1024),
            hint: Some(
                "name the directories whose names matter as `checks.layout` by `peers goals edit --config`"
                    .to_owned(),
            ),
        });
    }
    Ok(out)
}

/// The map as a text for agents: modules in order, in each its classes with their methods, then its functions.
///
/// # Errors
/// [`CouldNot`] for a text that is no map.
pub fn agents(map: &str) -> Result<String, CouldNot> {
    let entries = parse(map).map_err(|why| CouldNot::new(format!("{MAP}: {why}")))?;
    Ok(rendered(&entries))
}

pub(crate) fn rendered(entries: &[Said]) -> String {
    let mut out = String::from(
        "# Code map\n\nMade from CODEMAP.yaml by `peers agents-doc`. Edit the summaries there, not here.\n",
    );
    let mut by_file: BTreeMap<(&str, &str), Vec<&Said>> = BTreeMap::new();
    let modules: BTreeMap<&str, &Said> = entries
        .iter()
        .filter(|said| said.kind == "module")
        .map(|module| (module.file.as_str(), module))
        .collect();
    for said in entries {
        let module = modules.get(said.file.as_str()).map_or("", |module| module.id.as_str());
        by_file.entry((module, said.file.as_str())).or_default().push(said);
    }
    for ((module, file), mut all) in by_file {
        // A file may be called anything.
        let summary = modules.get(file).map(|module| line(module)).unwrap_or_default();
        let _infallible = writeln!(out, "\n## {}\n\n`{}`{summary}\n", word(module), word(file));
        all.sort_by(|a, b| (rank(a), &a.id).cmp(&(rank(b), &b.id)));
        for said in all.iter().filter(|said| said.kind != "module") {
            let shown = said.signature.as_deref().unwrap_or_else(|| last(&said.id));
            let indent = if said.kind == "method" { "  " } else { "" };
            let _infallible = writeln!(out, "{indent}- `{}`{}", word(shown), line(said));
        }
    }
    out
}

/// Classes with their methods before functions.
fn rank(said: &Said) -> u8 {
    u8::from(said.kind == "function")
}

fn line(said: &Said) -> String {
    let summary = term::line(said.summary.as_deref().unwrap_or_default(), 400);
    if summary.is_empty() { String::new() } else { format!(" — {summary}") }
}

fn word(text: &str) -> String {
    term::line(text, 200).replace('`', "'")
}

pub(crate) fn last(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

/// What `kind` an entry of the real map has, as the file says it.
pub(crate) fn kind_of(entry: &Entry) -> &'static str {
    match entry.kind {
        Kind::Module => "module",
        Kind::Class => "class",
        Kind::Function => "function",
        Kind::Method => "method",
        Kind::Value => "value",
    }
}

/// The names of the parameters of a signature, without what they are or stand for.
pub(crate) fn params(signature: &str) -> Vec<String> {
    let inner =
        signature.split_once('(').map_or("", |(_, rest)| rest.rsplit_once(')').map_or(rest, |(all, _)| all));
    let (mut depth, mut names, mut now) = (0_usize, Vec::new(), String::new());
    for c in inner.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            names.push(std::mem::take(&mut now));
        } else {
            now.push(c);
        }
    }
    names.push(now);
    let names = names.iter().map(|name| name.split([':', '=']).next().unwrap_or_default().trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_to_read_a_map_says_what_yaml_says_or_nothing() {
        let whole = "entries:\n- id: \"a\"\n  kind: module\n  file: \"a \\\"b\\\"\\u0007.py\"\n  line: 1\n- id: \"a.f\"\n  kind: function\n  file: \"a.py\"\n  line: 2\n  signature: \"f(x)\"\n  summary: \"Says: what it is # for\"\n";
        let by_yaml = |text: &str| yaml::from_str::<File>(MAP, text).map(|file| file.entries).ok();
        assert_eq!(as_written(whole), by_yaml(whole));
        assert_eq!(as_written(whole).map(|entries| entries.len()), Some(2));
        for (was, is) in [
            ("\"a.f\"", "a.f"),
            ("\"a.f\"", "'a.f'"),
            ("line: 2", "line: 2.0"),
            ("line: 2", "line: \"2\""),
            ("line: 2", "line: true"),
            ("kind: function", "kind: \"function\""),
            ("  line: 2\n", ""),
            ("  line: 2\n", "  line: 2\n  line: 2\n"),
            ("  signature", " signature"),
            ("summary", "sumary"),
            ("entries:\n", "entries:\n\n"),
            ("entries:\n", "entries: # all\n"),
            ("# for\"\n", "# for\""),
            ("# for\"\n", "# for\" # why\n"),
            ("# for\"\n", "# for\"\r\n"),
            ("# for\"\n", "# for\n"),
            ("# for\"\n", "# \\x41\"\n"),
        ] {
            let text = whole.replace(was, is);
            assert_ne!(text, whole, "{was}");
            assert!(as_written(&text).is_none_or(|read| Some(read) == by_yaml(&text)), "{is}");
        }
    }
}
