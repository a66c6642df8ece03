//! The registry as a file: read leniently, written as a whole, copied before it loses something.

use std::collections::BTreeSet;
use std::time::Duration;

use peers_model::{Timestamp, exit, limits};
use peers_run::boot::Finding;
use peers_sys::dir::{FileError, FileStat, SafeDir};
use peers_sys::lock::{Acquired, FileLock, Sharing};
use peers_sys::{clock, term};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::model::{Entry, PROJECTS, Project, Registry, SCHEMA, State, log_path};
use crate::config::ConfigDir;

/// The file.
const FILE: &str = "projects.json";
/// Its lock.
const LOCK: &str = ".lock";
/// A writer waits so long for another one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Copies that are kept.
pub(super) const BACKUPS: usize = 5;
/// Where only states changed, a new copy is made when the newest one is older than this.
const AGE: Duration = Duration::from_hours(24);
/// Deepest nesting of the file.
const DEPTH: usize = 64;

/// Something about the registry that its reader should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// One word.
    pub code: &'static str,
    /// The project, where it is one.
    pub project: Option<String>,
    /// For people.
    pub message: String,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The registry.
    pub registry: Registry,
    /// What is not as it should be.
    pub warnings: Vec<Warning>,
}

/// How the file of the registry looks: as long as that stays so, what was read of it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(Option<FileStat>);

/// Looks at the file of the registry.
///
/// # Errors
/// A [`Finding`] when its directory cannot be looked at.
pub fn stamp(config: &ConfigDir) -> Result<Stamp, Finding> {
    config.dir().stat(FILE).map(Stamp).map_err(|error| Finding::from(&error))
}

/// Reads the registry; one that is not there is empty. Takes no lock.
///
/// # Errors
/// A [`Finding`], exit 3 with a way back, where the file as a whole cannot be read.
pub fn load(config: &ConfigDir) -> Result<Loaded, Finding> {
    read(config.dir(), FILE)
}

fn read(dir: &SafeDir, file: &str) -> Result<Loaded, Finding> {
    let corrupt = |why: String| {
        Finding::new(
            exit::INVALID,
            format!(
                "the registry is corrupt: {} {why}",
                term::inline(&dir.path().join(file).to_string_lossy())
            ),
            "`peers-ctl registry restore` goes back to the newest copy that can be read; it says first what would change",
        )
    };
    let bytes = match dir.read_opt(file, limits::CONFIG) {
        Ok(Some(bytes)) => bytes,
        Ok(None) if file == FILE && has_copy(dir) => {
            return Err(Finding::new(
                exit::INVALID,
                format!(
                    "the registry is gone: {} is missing, but copies of it exist",
                    term::inline(&dir.path().join(file).to_string_lossy())
                ),
                "`peers-ctl registry restore` goes back to the newest copy that can be read; to begin anew, move the copies away (`projects.json.1` and so on)",
            ));
        }
        Ok(None) => return Ok(Loaded { registry: Registry::empty(), warnings: Vec::new() }),
        Err(FileError::TooLarge { .. }) => return Err(corrupt("is larger than 2 MiB".to_owned())),
        Err(error) => return Err(Finding::from(&error)),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| corrupt("is not UTF-8".to_owned()))?;
    if nesting(text) > DEPTH {
        return Err(corrupt(format!("is nested deeper than {DEPTH} levels")));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| corrupt(format!("is not JSON ({error})")))?;
    parse(value).map_err(|why| corrupt(why.to_owned()))
}

/// Whether there is a copy of a registry that is not there itself.
fn has_copy(dir: &SafeDir) -> bool {
    (1..=BACKUPS).any(|number| dir.stat(backup(number)).is_ok_and(|stat| stat.is_some()))
}

/// How deep brackets are nested, those in texts not counted.
fn nesting(text: &str) -> usize {
    let (mut depth, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

fn parse(value: Value) -> Result<Loaded, &'static str> {
    let Value::Object(mut map) = value else { return Err("is not a JSON object") };
    let schema = map.remove("schema").and_then(|schema| schema.as_u64()).ok_or("does not say its format")?;
    let registry_id =
        map.remove("registry_id").and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_default();
    let revision = map.remove("revision").and_then(|n| n.as_u64()).unwrap_or_default();
    let Some(Value::Array(values)) = map.remove("projects") else { return Err("has no list `projects`") };
    if values.len() > PROJECTS {
        return Err("has more than 1,000 projects");
    }
    let mut warnings = Vec::new();
    let newer = (schema > SCHEMA).then_some(schema);
    if newer.is_some() {
        warnings.push(Warning {
            code: "newer-format",
            project: None,
            message: format!(
                "the registry has format {schema}, newer than this program: it is shown and not written"
            ),
        });
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(values.len());
    let mut names = BTreeSet::new();
    for value in values {
        let entry = entry(value, &mut warnings);
        let twice = entry.project().is_some_and(|new| !names.insert(new.name.clone()));
        match entry {
            Entry::Known(project) if twice => {
                warnings.push(Warning {
                    code: "twice",
                    project: Some(project.name.to_string()),
                    message: format!("the registry names {} twice; the first one counts", project.name),
                });
                entries.push(Entry::Odd(serde_json::to_value(&project).unwrap_or_default()));
            }
            entry => entries.push(entry),
        }
    }
    Ok(Loaded { registry: Registry { registry_id, revision, entries, newer, extra: map }, warnings })
}

/// One entry: a project, mended where that is safe, or something that is kept as it is.
fn entry(value: Value, warnings: &mut Vec<Warning>) -> Entry {
    let name = value.get("name").and_then(Value::as_str).map(|name| term::line(name, 80));
    let warn = |code, message| Warning { code, project: name.clone(), message };
    let shown = name.clone().unwrap_or_else(|| "an entry without a name".to_owned());
    let mut mended = None;
    if let Some(bad) = bad_pid(&value) {
        warnings.push(warn(
            "bad-pid",
            format!("{shown}: `{bad}` is not a process id; no process is signalled by it"),
        ));
        let tried = mended.insert(value.clone());
        if let Some(map) = tried.as_object_mut() {
            map.insert("runtime".to_owned(), Value::Null);
            if map.get("state").and_then(Value::as_str) == Some("running") {
                map.insert("state".to_owned(), State::Crashed.word().into());
            }
        }
    }
    let parsed = Project::deserialize(mended.as_ref().unwrap_or(&value)).map_err(|error| error.to_string());
    let checked = parsed.and_then(|project| match project.check() {
        Ok(()) => Ok(project),
        Err(invalid) => Err(invalid.to_string()),
    });
    match checked {
        Ok(mut project) => {
            let due = log_path(&project.name);
            if project.log_path != due {
                let was = term::line(&project.log_path, 80);
                warnings.push(warn("log-path", format!("{shown}: its log is {due}, not `{was}`")));
                project.log_path = due;
            }
            Entry::Known(Box::new(project))
        }
        Err(why) => {
            let why = term::line(&why, 200);
            warnings
                .push(warn("malformed", format!("{shown} is left out: {why}; the entry is kept as it is")));
            Entry::Odd(value)
        }
    }
}

/// What stands for a process id and is none.
fn bad_pid(value: &Value) -> Option<String> {
    let runtime = value.get("runtime")?;
    ["pid", "pgid"].into_iter().find_map(|field| {
        let pid = runtime.get(field)?;
        let ok = pid.is_null() || pid.as_u64().is_some_and(|pid| pid > 0 && i32::try_from(pid).is_ok());
        (!ok).then(|| term::line(&pid.to_string(), 40))
    })
}

/// Changes the registry: reads it under its lock, has it changed, and replaces the file. Where `change` fails,
/// or leaves everything as it was, nothing is written.
///
/// # Errors
/// A [`Finding`]: exit 4 naming who holds the lock, those of [`load`], those of `change`.
pub fn edit<T>(
    config: &ConfigDir,
    change: impl FnOnce(&mut Registry) -> Result<T, Finding>,
) -> Result<T, Finding> {
    let _lock = lock(config)?;
    let Loaded { mut registry, .. } = load(config)?;
    if let Some(newer) = registry.newer {
        return Err(Finding::new(
            exit::INVALID,
            format!("the registry has format {newer}, newer than this program"),
            "use the newer peers-ctl that wrote it, or another directory with --config-dir",
        ));
    }
    let before = registry.clone();
    let given = change(&mut registry)?;
    if registry == before {
        return Ok(given);
    }
    if registry.entries.len() > PROJECTS {
        return Err(Finding::new(
            exit::CONFLICT,
            "the registry holds 1,000 projects, and no more fit in",
            "`peers-ctl remove` takes those out that are done; a second registry is made by --config-dir",
        ));
    }
    write(config, registry, &before)?;
    Ok(given)
}

fn lock(config: &ConfigDir) -> Result<FileLock, Finding> {
    match FileLock::acquire(config.dir(), LOCK, Sharing::Exclusive, PATIENCE)
        .map_err(|e| Finding::from(&e))?
    {
        Acquired::Held(mut lock) => {
            // For whoever waits; what cannot be written is not told.
            let _untold = lock.write(format!("{}\n", std::process::id()).as_bytes());
            Ok(lock)
        }
        Acquired::Busy { content } => {
            let pid = String::from_utf8_lossy(&content).trim().parse::<u32>().ok();
            let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            Err(Finding::new(
                exit::CONFLICT,
                format!("{who} has been writing the registry for more than 5 seconds"),
                "look what it does; the lock is free when it ends",
            ))
        }
    }
}

fn write(config: &ConfigDir, mut registry: Registry, before: &Registry) -> Result<(), Finding> {
    if registry.registry_id.is_empty() {
        registry.registry_id = peers_sys::rand::hex::<8>()
            .map_err(|error| Finding::plain(exit::BUG, format!("random bytes: {error}")))?;
    }
    registry.revision = registry.revision.saturating_add(1);
    let dir = config.dir();
    if before.revision > 0 && worth_a_copy(dir, before, &registry) {
        rotate(dir).map_err(|error| Finding::from(&error))?;
    }
    let bytes = serialised(&registry)?;
    dir.publish(FILE, &bytes).map_err(|error| Finding::from(&error))
}

fn serialised(registry: &Registry) -> Result<Vec<u8>, Finding> {
    let Registry { registry_id, revision, entries, newer: _, extra } = registry;
    let mut map: Map<String, Value> = extra.clone();
    let value = |entry: &Entry| match entry {
        Entry::Known(project) => serde_json::to_value(project),
        Entry::Odd(value) => Ok(value.clone()),
    };
    let bug = |error: serde_json::Error| {
        Finding::plain(exit::BUG, format!("the registry cannot be written: {error}"))
    };
    let projects = entries.iter().map(value).collect::<Result<Vec<_>, _>>().map_err(bug)?;
    for (key, value) in [
        ("schema", json!(SCHEMA)),
        ("registry_id", json!(registry_id)),
        ("revision", json!(revision)),
        ("projects", Value::Array(projects)),
    ] {
        map.insert(key.to_owned(), value);
    }
    let mut bytes = serde_json::to_vec_pretty(&Value::Object(map)).map_err(bug)?;
    bytes.push(b'\n');
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::CONFIG {
        return Err(Finding::new(
            exit::CONFLICT,
            "the registry would become larger than 2 MiB",
            "`peers-ctl remove` takes projects out that are done; shorten notes and labels",
        ));
    }
    Ok(bytes)
}

/// Whether something could be lost that nobody can see again: which projects there are, what the operator wrote
/// of them. States are seen again by looking.
fn worth_a_copy(dir: &SafeDir, before: &Registry, after: &Registry) -> bool {
    let told = |registry: &Registry| -> Vec<Value> {
        let of = |entry: &Entry| match entry {
            Entry::Known(p) => json!([p.name, p.path, p.labels, p.notes, p.restart]),
            Entry::Odd(value) => value.clone(),
        };
        registry.entries.iter().map(of).collect()
    };
    if told(before) != told(after) {
        return true;
    }
    let newest = dir.stat(backup(1)).ok().flatten().map(|stat| stat.modified());
    newest.is_none_or(|at| clock::now().since(at) > AGE)
}

fn backup(n: usize) -> String {
    format!("{FILE}.{n}")
}

/// Makes room for a copy of the file as it is, and makes it.
fn rotate(dir: &SafeDir) -> Result<(), FileError> {
    let Some(bytes) = dir.read_opt(FILE, limits::JOURNAL_SEGMENT)? else { return Ok(()) };
    for n in (1..BACKUPS).rev() {
        if dir.stat(backup(n))?.is_some() {
            dir.rename(backup(n), backup(n + 1))?;
        }
    }
    dir.publish(backup(1), &bytes)
}

/// A copy of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    /// Its number; 1 is the newest.
    pub number: usize,
    /// When it was made.
    pub at: Timestamp,
    /// What is in it, or why it cannot be read.
    pub read: Result<Loaded, Finding>,
}

/// The copies that are there, the newest first.
///
/// # Errors
/// A [`Finding`] when the directory cannot be looked at.
pub fn backups(config: &ConfigDir) -> Result<Vec<Backup>, Finding> {
    let dir = config.dir();
    let mut found = Vec::new();
    for number in 1..=BACKUPS {
        if let Some(stat) = dir.stat(backup(number)).map_err(|error| Finding::from(&error))? {
            found.push(Backup { number, at: stat.modified(), read: read(dir, &backup(number)) });
        }
    }
    Ok(found)
}

/// Looks the registry through: what is not as it should be.
///
/// # Errors
/// As [`load`].
pub fn check(config: &ConfigDir) -> Result<Loaded, Finding> {
    let mut loaded = load(config)?;
    let mut seen: Vec<(&Project, super::model::PathId)> = Vec::new();
    for project in loaded.registry.projects() {
        if let Some(id) = project.path_id {
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == id) {
                loaded.warnings.push(Warning {
                    code: "same-directory",
                    project: Some(project.name.to_string()),
                    message: format!(
                        "{} and {} are one directory; one of the two names is enough",
                        other.name, project.name
                    ),
                });
            }
            seen.push((project, id));
        }
    }
    Ok(loaded)
}

/// Puts a copy in the place of the registry; what was there becomes the newest copy. Without a number the newest
/// copy that can be read is taken. Returns its number.
///
/// # Errors
/// A [`Finding`], exit 1 where there is no such copy.
pub fn restore(config: &ConfigDir, number: Option<usize>) -> Result<usize, Finding> {
    let _lock = lock(config)?;
    let copies = backups(config)?;
    let chosen = match number {
        Some(number) => copies.into_iter().find(|copy| copy.number == number),
        None => copies.into_iter().find(|copy| copy.read.is_ok()),
    };
    let Some(Backup { number, read, .. }) = chosen else {
        return Err(Finding::new(
            exit::NEGATIVE,
            "the registry has no such copy",
            "`peers-ctl registry check` lists the copies that there are",
        ));
    };
    let Loaded { registry, .. } = read?;
    let dir = config.dir();
    let bytes = serialised(&registry)?;
    // What cannot be read any more is kept all the same.
    rotate(dir).map_err(|error| Finding::from(&error))?;
    dir.publish(FILE, &bytes).map_err(|error| Finding::from(&error))?;
    Ok(number)
}
