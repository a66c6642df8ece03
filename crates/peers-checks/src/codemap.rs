//! `CODEMAP.yaml`: what a project's public surface is said to be, beside what it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use peers_code::{CodeMap, Entry, Kind, Listed, MAX_BYTES, Outlines, is_source};
use peers_git::GitError;
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
    let file: File = yaml::from_str(MAP, text).map_err(|error| term::line(&error.to_string(), 300))?;
    let mut seen = BTreeSet::new();
    match file.entries.iter().find(|said| !seen.insert(said.id.as_str())) {
        Some(twice) => Err(format!("`{}` stands there twice", term::line(&twice.id, 100))),
        None => Ok(file.entries),
    }
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
        Ok(None) => return Ok(Err("is not there".to_owned())),
        Err(GitError::TooLarge { .. }) => return Ok(Err(format!("is larger than {most} bytes"))),
        Err(error) => return Err(CouldNot::git("read a file", &error)),
    };
    Ok(String::from_utf8(blob.bytes).map_err(|_| "is not UTF-8".to_owned()))
}

/// The public surface at a commit.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read.
pub(crate) fn real(cx: &CheckCx, commit: &CommitId) -> Result<CodeMap, CouldNot> {
    let roots = &cx.settings().layout;
    let files = cx.facts()?.list_tree(commit).map_err(|e| CouldNot::git("list the files", &e))?.into_iter();
    let files: Vec<Listed> = files
        .filter(|file| REGULAR.contains(&file.mode) && is_source(&file.path, roots))
        .map(|file| Listed { path: file.path, content: file.id })
        .collect();
    let facts = cx.facts()?;
    let mut texts = HashMap::new();
    for file in &files {
        let bytes = facts.read_object(&file.content, MAX_BYTES).map_err(|error| crate::cx::chain(&error));
        texts.insert(file.content.as_str(), bytes);
    }
    let read =
        |file: &Listed| texts.get(file.content.as_str()).cloned().unwrap_or_else(|| Err("not read".into()));
    Ok(peers_code::codemap(&files, &mut Outlines::default(), &read).0)
}

/// A map that is true, with the summaries of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// The file.
    pub text: String,
    /// Entries.
    pub entries: usize,
    /// Entries without a summary.
    pub blank: usize,
    /// Entries whose signature is another than the one that the summary was written for.
    pub stale: Vec<String>,
    /// Files that cannot be read, with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// Makes the map of the commit anew. Summaries stay with their ids; one whose signature changed is told.
///
/// # Errors
/// [`CouldNot`] for a commit that cannot be read, or a map of before that is none.
pub fn refresh(cx: &CheckCx, before: Option<&str>) -> Result<Refreshed, CouldNot> {
    let hint = || Some(format!("mend {MAP}, or take it away: then it is made anew, without summaries"));
    let before = before
        .map(parse)
        .transpose()
        .map_err(|why| CouldNot { what: format!("{MAP}: {why}"), hint: hint() })?;
    let before: BTreeMap<String, Said> =
        before.unwrap_or_default().into_iter().map(|said| (said.id.clone(), said)).collect();
    let map = real(cx, cx.head())?;
    let mut out = Refreshed {
        text: String::new(),
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
