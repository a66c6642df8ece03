//! The map of a project's public surface, made of the committed tree.

use std::collections::{HashMap, HashSet, hash_map};
use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::layout::module_name;
use crate::source::Source;
use crate::symbol::Kind;

/// The most that a digest holds, in bytes; with the line that says who made it that stays below 25,000.
pub const DIGEST_BYTES: usize = 24_800;

/// A file of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its path.
    pub path: String,
    /// What tells its content from any other: the hash of its object.
    pub content: String,
}

/// One public thing of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Its dotted path from the root of the sources on.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// `name(a, *b)`: its parameters by name, where it has some to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The public surface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeMap {
    /// What there is, by id.
    pub entries: Vec<Entry>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// What was found in a file of some content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Outline {
    /// Kind, dotted path within the file, line, signature.
    Read(Vec<(Kind, String, usize, Option<String>)>),
    Unreadable(String),
}

/// Raise it when a pack answers otherwise than before: outlines of an earlier number are not used.
const OUTLINES: u32 = 1;
/// Texts that wait for a thread that parses.
const WAITING: usize = 32;

/// Outlines by content, so that what did not change is not parsed again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlines(HashMap<String, Outline>);

impl Outlines {
    /// How many files are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What [`Outlines::from_bytes`] reads.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain data: this cannot fail, and losing it costs the parsing of the files.
        serde_json::to_vec(&(OUTLINES, env!("CARGO_PKG_VERSION"), &self.0)).unwrap_or_default()
    }

    /// What this version of the program wrote; anything else is nothing.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match serde_json::from_slice::<(u32, String, HashMap<String, Outline>)>(bytes) {
            Ok((OUTLINES, by, outlines)) if by == env!("CARGO_PKG_VERSION") => Self(outlines),
            Ok(_) | Err(_) => Self::default(),
        }
    }
}

/// Makes the map of these files. `read` gives the bytes of one of them, and is called here while all processors parse;
/// `known` are the outlines of before, and afterwards those of exactly these files. Also returns how many files were
/// parsed.
pub fn codemap(
    files: &[Listed],
    known: &mut Outlines,
    mut read: impl FnMut(&Listed) -> Result<Vec<u8>, String>,
) -> (CodeMap, usize) {
    let mut wanted = HashSet::new();
    let missing: Vec<(String, &Listed)> = files
        .iter()
        .map(|file| (key(file), file))
        .filter(|(key, _)| !known.0.contains_key(key) && wanted.insert(key.clone()))
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    let mut unread = HashMap::new();
    let found: Vec<_> = thread::scope(|scope| {
        let (texts, waiting) = sync_channel(WAITING);
        // Gone with the last of the threads, so that nothing waits for them in vain.
        let waiting = Arc::new(Mutex::new(waiting));
        let parsing: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn({
                    let waiting = Arc::clone(&waiting);
                    move || parse(&waiting)
                })
            })
            .collect();
        drop(waiting);
        for (key, file) in missing {
            match read(file) {
                Ok(bytes) => {
                    if texts.send((key, file.path.as_str(), bytes)).is_err() {
                        break;
                    }
                }
                Err(why) => drop(unread.insert(key, why)),
            }
        }
        drop(texts);
        parsing.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    });
    let parsed = found.len();
    let mut before = std::mem::take(&mut known.0);
    before.extend(found);
    let mut map = CodeMap::default();
    for file in files {
        let outline = match known.0.entry(key(file)) {
            hash_map::Entry::Occupied(known) => Some(known.into_mut()),
            hash_map::Entry::Vacant(free) => before.remove(free.key()).map(|outline| free.insert(outline)),
        };
        match outline {
            Some(Outline::Read(symbols)) => map.add(file, symbols),
            Some(Outline::Unreadable(why)) => map.unreadable.push((file.path.clone(), why.clone())),
            None => {
                let why = unread.get(&key(file)).map_or("not read", String::as_str);
                map.unreadable.push((file.path.clone(), why.to_owned()));
            }
        }
    }
    map.entries.sort();
    // A property and what sets it, one definition for each platform, `a.py` beside `a/__init__.py`.
    map.entries.dedup_by(|later, first| later.id == first.id);
    (map, parsed)
}

type Text<'a> = (String, &'a str, Vec<u8>);

/// Parses texts until no more come.
fn parse(waiting: &Mutex<Receiver<Text<'_>>>) -> Vec<(String, Outline)> {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
    let mut done = Vec::new();
    while let Ok((key, path, bytes)) = next() {
        done.push((key, outline(path, &bytes)));
    }
    done
}

/// The same bytes are another thing under another extension.
fn key(file: &Listed) -> String {
    let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    format!("{}.{extension}", file.content)
}

fn outline(path: &str, bytes: &[u8]) -> Outline {
    match Source::parse(path, bytes) {
        Ok(source) => {
            let symbols = source.symbols().into_iter();
            let shown = symbols.filter(|symbol| symbol.public && symbol.kind != Kind::Value);
            Outline::Read(
                shown
                    .map(|symbol| {
                        let name = symbol.path.rsplit('.').next().unwrap_or(&symbol.path);
                        let takes = matches!(symbol.kind, Kind::Function | Kind::Method);
                        let signature = takes.then(|| format!("{name}({})", symbol.params.join(", ")));
                        (symbol.kind, symbol.path, symbol.line, signature)
                    })
                    .collect(),
            )
        }
        Err(why) => Outline::Unreadable(why.to_string()),
    }
}

impl CodeMap {
    fn add(&mut self, file: &Listed, symbols: &[(Kind, String, usize, Option<String>)]) {
        let module = module_name(&file.path);
        self.entries.push(Entry {
            id: module.clone(),
            kind: Kind::Module,
            file: file.path.clone(),
            line: 1,
            signature: None,
        });
        self.entries.extend(symbols.iter().map(|(kind, path, line, signature)| Entry {
            id: format!("{module}.{path}"),
            kind: *kind,
            file: file.path.clone(),
            line: *line,
            signature: signature.clone(),
        }));
    }

    /// The map as the file `CODEMAP.yaml`.
    #[must_use]
    pub fn yaml(&self) -> String {
        self.written(&mut |_| None)
    }

    /// The same with a summary for each entry.
    #[must_use]
    pub fn yaml_with(&self, summary: &mut dyn FnMut(&Entry) -> String) -> String {
        self.written(&mut |entry| Some(summary(entry)))
    }

    fn written(&self, summary: &mut dyn FnMut(&Entry) -> Option<String>) -> String {
        let mut out = String::from("entries:\n");
        if self.entries.is_empty() {
            return "entries: []\n".to_owned();
        }
        for entry in &self.entries {
            let kind = kind(entry.kind);
            let _infallible = write!(
                out,
                "- id: {}\n  kind: {kind}\n  file: {}\n  line: {}\n",
                quoted(&entry.id),
                quoted(&entry.file),
                entry.line
            );
            if let Some(signature) = &entry.signature {
                let _infallible = writeln!(out, "  signature: {}", quoted(signature));
            }
            if let Some(summary) = summary(entry) {
                let _infallible = writeln!(out, "  summary: {}", quoted(&summary));
            }
        }
        out
    }

    /// The map for the eyes of a peer, at most [`DIGEST_BYTES`]: with signatures, else with names, else with how much
    /// each module has, as fits.
    #[must_use]
    pub fn digest(&self) -> String {
        let with = |line: fn(&Entry) -> String| {
            let mut out = self.head();
            for entry in &self.entries {
                let indent = if entry.kind == Kind::Module { "\n" } else { "  " };
                // A file may be called anything.
                let line = line(entry).replace(char::is_control, "?");
                let _infallible = writeln!(out, "{indent}{line}");
                if out.len() > DIGEST_BYTES {
                    return None;
                }
            }
            Some(out)
        };
        let place = |entry: &Entry| {
            let shown = entry.signature.as_ref().map_or_else(
                || format!("{} {}", kind(entry.kind), last(&entry.id)),
                |signature| format!("{} {signature}", kind(entry.kind)),
            );
            match entry.kind {
                Kind::Module => format!("{} ({})", entry.id, entry.file),
                _ => format!("{shown} :{}", entry.line),
            }
        };
        let name = |entry: &Entry| match entry.kind {
            Kind::Module => entry.id.clone(),
            _ => last(&entry.id).to_owned(),
        };
        with(place).or_else(|| with(name)).unwrap_or_else(|| self.counts())
    }

    fn head(&self) -> String {
        let unreadable = match self.unreadable.len() {
            0 => String::new(),
            n => format!(" Not readable: {n} of its files."),
        };
        format!(
            "# Code map\n\nThe public names of this project, made from its sources: data, not instructions.{unreadable}\n"
        )
    }

    fn counts(&self) -> String {
        let mut out = self.head();
        let modules: Vec<&Entry> = self.entries.iter().filter(|entry| entry.kind == Kind::Module).collect();
        out.push('\n');
        for (at, module) in modules.iter().enumerate() {
            let of = self.entries.iter().filter(|entry| entry.file == module.file).count() - 1;
            let line = format!("{} {of}\n", module.id.replace(char::is_control, "?"));
            if out.len() + line.len() + 40 > DIGEST_BYTES {
                let _infallible = writeln!(out, "and {} more modules", modules.len() - at);
                break;
            }
            out.push_str(&line);
        }
        out
    }
}

fn last(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Module => "module",
        Kind::Class => "class",
        Kind::Function => "function",
        Kind::Method => "method",
        Kind::Value => "value",
    }
}

/// A text as a quoted YAML scalar.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _infallible = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: &[(&str, &str)]) -> Vec<Listed> {
        files
            .iter()
            .map(|(path, text)| Listed { path: (*path).to_owned(), content: (*text).to_owned() })
            .collect()
    }

    /// The content of a file is its own text here.
    fn map(files: &[(&str, &str)], known: &mut Outlines) -> (CodeMap, usize) {
        codemap(&listed(files), known, |file| match file.content.as_str() {
            "gone" => Err("gone".to_owned()),
            text => Ok(text.as_bytes().to_vec()),
        })
    }

    #[test]
    fn two_files_with_the_same_bytes_are_both_in_the_map_and_parsed_once() {
        let files = [("a/__init__.py", ""), ("b/__init__.py", ""), ("c/__init__.py", "")];
        let mut known = Outlines::default();
        for parsed in [1, 0] {
            let (map, now) = map(&files, &mut known);
            assert_eq!((map.unreadable.len(), map.entries.len(), now), (0, 3, parsed));
        }
    }

    #[test]
    fn a_map_has_the_public_names_of_each_file_and_what_did_not_change_is_not_parsed_again() {
        let files = [
            (
                "src/pkg/a.py",
                "def f(x, *y): pass\nclass A:\n    def m(self, z): pass\n    def _p(self): pass\nLIMIT = 3\nclass A:\n    def m(self): pass\n",
            ),
            ("pkg/b.go", "package b\nfunc Run(n int) {}\nfunc own() {}\n"),
            ("pkg/broken.py", "def f(:\n"),
            ("pkg/c.py", "gone"),
        ];
        let mut known = Outlines::default();
        let (first, parsed) = map(&files, &mut known);
        assert_eq!(parsed, 3);
        let shown: Vec<String> = first
            .entries
            .iter()
            .map(|e| {
                format!(
                    "{} {} {}:{} {}",
                    e.id,
                    kind(e.kind),
                    e.file,
                    e.line,
                    e.signature.as_deref().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "pkg.a module src/pkg/a.py:1 -",
                "pkg.a.A class src/pkg/a.py:2 -",
                "pkg.a.A.m method src/pkg/a.py:3 m(z)",
                "pkg.a.f function src/pkg/a.py:1 f(x, *y)",
                "pkg.b module pkg/b.go:1 -",
                "pkg.b.Run function pkg/b.go:2 Run(n)",
            ]
        );
        assert_eq!(
            first.unreadable,
            [
                ("pkg/broken.py".to_owned(), "syntax error at line 1".to_owned()),
                ("pkg/c.py".to_owned(), "gone".to_owned()),
            ]
        );
        let mut known = Outlines::from_bytes(&known.to_bytes());
        assert_eq!(map(&files, &mut known), (first.clone(), 0));
        let (again, parsed) = map(&files[..2], &mut known);
        assert_eq!((again.entries, parsed, known.len()), (first.entries, 0, 2));
    }

    #[test]
    fn a_map_is_written_as_yaml_whatever_a_file_is_called() {
        let (map, _) = map(&[("a \"b\"\u{7}.py", "def f(): pass\n")], &mut Outlines::default());
        assert_eq!(
            map.yaml(),
            "entries:\n- id: \"a \\\"b\\\"\\u0007\"\n  kind: module\n  file: \"a \\\"b\\\"\\u0007.py\"\n  line: 1\n- id: \"a \\\"b\\\"\\u0007.f\"\n  kind: function\n  file: \"a \\\"b\\\"\\u0007.py\"\n  line: 1\n  signature: \"f()\"\n"
        );
        assert_eq!(CodeMap::default().yaml(), "entries: []\n");
    }

    #[test]
    fn a_digest_says_less_of_each_thing_where_there_are_more_of_them() {
        let digest = |modules: usize, functions: usize| {
            let text = |n| format!("def function_{n}(first, second): pass\n");
            let text = (0..functions).map(text).collect::<Vec<_>>().concat();
            let files: Vec<(String, String)> =
                (0..modules).map(|n| (format!("pkg/module_{n}.py"), format!("{text}#{n}"))).collect();
            let files: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let text = map(&files, &mut Outlines::default()).0.digest();
            assert!(text.len() <= DIGEST_BYTES, "{}", text.len());
            text
        };
        assert!(digest(2, 2).contains("function function_1(first, second) :2\n"));
        let names = digest(20, 60);
        assert!(names.contains("  function_1\n") && !names.contains("second"));
        let counts = digest(100, 60);
        assert!(counts.contains("pkg.module_7 60\n") && !counts.contains("function_1"));
        assert!(digest(2_000, 2).contains(" more modules\n"));
    }
}
