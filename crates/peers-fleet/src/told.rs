//! Who was told what of which loop, so that nobody is told the same thing at each look, also where each look is a
//! process of its own.
//!
//! A notice is noted down before it is given: a controller that dies in between gives it again at a later look.
//! Nothing in the file is shown, and one that cannot be read is taken for empty: then a notice comes twice.

use std::collections::BTreeMap;
use std::time::Duration;

use peers_model::{Timestamp, exit};
use peers_run::boot::Finding;
use peers_sys::lock::{Acquired, FileLock, Sharing};
use serde::{Deserialize, Serialize};

use crate::config::ConfigDir;
use crate::registry::{self, Project};
use crate::supervise::Refused;

/// The file.
const FILE: &str = "told.json";
/// Its lock.
const LOCK: &str = ".told.lock";
/// The newest version of the file.
const VERSION: u32 = 1;
/// The largest file that is read, bytes.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Whoever else changes the file has so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// A channel that fails is tried so often.
const TRIES: u32 = 5;
/// The first wait before a channel is tried again; each further one is four times as long.
const FIRST: Duration = Duration::from_secs(5);
/// Channels that are kept of a notice.
const CHANNELS: usize = 16;
/// Characters that are kept of what a notice is about.
const WHAT: usize = 100;

/// What is known of who was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    v: u32,
    #[serde(default)]
    projects: Vec<OfProject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OfProject {
    name: String,
    /// Another project may come to have the name.
    added_at: Timestamp,
    /// By their subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    notices: BTreeMap<String, Given>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Given {
    what: String,
    #[serde(default)]
    channels: BTreeMap<String, Try>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Try {
    /// When it was tried last.
    at: Timestamp,
    /// How often in vain.
    tries: u32,
    /// It was told.
    told: bool,
}

/// A notice that may be due.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// Of whom.
    pub project: &'a Project,
    /// The subject: of each, one notice is kept.
    pub subject: &'a str,
    /// What there is to say of it; another one is another notice.
    pub what: &'a str,
    /// Say it again after so long.
    pub remind: Option<Duration>,
    /// Now.
    pub now: Timestamp,
}

impl Told {
    /// Reads it; a file that is missing, or is not ours, is empty.
    #[must_use]
    pub fn load(config: &ConfigDir) -> Self {
        let text = config.dir().read_text_opt(FILE, LARGEST).ok().flatten();
        let read: Option<Self> = text.and_then(|text| serde_json::from_str(&text).ok());
        read.filter(|told| told.v == VERSION).unwrap_or_default()
    }

    /// Of these channels those that are to be told now.
    #[must_use]
    pub fn due(&self, due: Due<'_>, channels: &[String]) -> Vec<String> {
        let given = self.of(due.project).and_then(|of| of.notices.get(due.subject));
        let given = given.filter(|given| given.what == shortened(due.what));
        let wanted = |id: &&String| match given.and_then(|given| given.channels.get(*id)) {
            None => true,
            Some(tried) => tried.is_due(due),
        };
        channels.iter().filter(wanted).cloned().collect()
    }

    /// The same, and notes down that they are being told.
    pub fn claim(&mut self, due: Due<'_>, channels: &[String]) -> Vec<String> {
        let claimed = self.due(due, channels);
        let given = self.of_mut(due.project).notices.entry(due.subject.to_owned()).or_default();
        let what = shortened(due.what);
        if given.what != what {
            *given = Given { what, channels: BTreeMap::new() };
        }
        for id in &claimed {
            // Again after it was told or given up: the tries begin anew.
            let before = given.channels.get(id).filter(|tried| !tried.told && tried.tries < TRIES);
            let tries = before.map_or(0, |tried| tried.tries).saturating_add(1);
            given.channels.insert(id.clone(), Try { at: due.now, tries, told: false });
        }
        while given.channels.len() > CHANNELS {
            let oldest = given.channels.iter().min_by_key(|(_, tried)| tried.at).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            given.channels.remove(&oldest);
        }
        claimed
    }

    /// Notes down that this channel was told.
    pub fn done(&mut self, due: Due<'_>, channel: &str) {
        let given = self.of_mut(due.project).notices.get_mut(due.subject);
        let given = given.filter(|given| given.what == shortened(due.what));
        if let Some(tried) = given.and_then(|given| given.channels.get_mut(channel)) {
            tried.told = true;
        }
    }

    /// Whether this channel has failed so often that it is left alone.
    #[must_use]
    pub fn gave_up(&self, due: Due<'_>, channel: &str) -> bool {
        let given = self.of(due.project).and_then(|of| of.notices.get(due.subject));
        given.and_then(|given| given.channels.get(channel)).is_some_and(|tried| tried.tries >= TRIES)
    }

    /// Whether anything was said of this subject.
    #[must_use]
    pub fn knows(&self, project: &Project, subject: &str) -> bool {
        self.of(project).is_some_and(|of| of.notices.contains_key(subject))
    }

    /// There is nothing to say of this subject any more: the next notice is a new one.
    pub fn forget(&mut self, project: &Project, subject: &str) {
        self.of_mut(project).notices.remove(subject);
    }

    /// The starts by a watcher that were refused since the loop died.
    #[must_use]
    pub fn refused(&self, project: &Project) -> Option<Refused> {
        self.of(project)?.refused.filter(|refused| refused.since == project.last_stopped_at)
    }

    /// Notes down that a start was refused, or, without one, that none was.
    pub fn set_refused(&mut self, project: &Project, refused: Option<Refused>) {
        self.of_mut(project).refused = refused;
    }

    fn of(&self, project: &Project) -> Option<&OfProject> {
        self.projects.iter().find(|of| of.is(project))
    }

    fn of_mut(&mut self, project: &Project) -> &mut OfProject {
        let at = self.projects.iter().position(|of| of.is(project)).unwrap_or_else(|| {
            self.projects.push(OfProject {
                name: project.name.to_string(),
                added_at: project.added_at,
                notices: BTreeMap::new(),
                refused: None,
            });
            self.projects.len().saturating_sub(1)
        });
        &mut self.projects[at]
    }
}

impl OfProject {
    fn is(&self, project: &Project) -> bool {
        self.name == project.name.as_str() && self.added_at == project.added_at
    }
}

impl Try {
    fn is_due(self, due: Due<'_>) -> bool {
        let passed = due.now.since(self.at);
        let again = due.remind.is_some_and(|remind| passed >= remind);
        // The clock was set back: nobody waits for when it was.
        let wait = FIRST.saturating_mul(4_u32.saturating_pow(self.tries.saturating_sub(1)));
        let retry = !self.told && self.tries < TRIES && (passed >= wait || self.at > due.now);
        again || retry
    }
}

fn shortened(what: &str) -> String {
    what.chars().take(WHAT).collect()
}

/// Changes what is known, under its lock.
///
/// # Errors
/// A [`Finding`] when somebody else holds the lock, or the file cannot be written; nothing is changed then.
pub fn edit<T>(config: &ConfigDir, change: impl FnOnce(&mut Told) -> T) -> Result<T, Finding> {
    let acquired = FileLock::acquire(config.dir(), LOCK, Sharing::Exclusive, PATIENCE);
    let Acquired::Held(_lock) = acquired.map_err(|error| Finding::from(&error))? else {
        return Err(Finding::plain(exit::CONFLICT, "another process has the list of who was told what"));
    };
    let mut told = Told::load(config);
    let before = told.clone();
    let given = change(&mut told);
    if told == before {
        return Ok(given);
    }
    told.v = VERSION;
    told.projects.retain(|of| !of.notices.is_empty() || of.refused.is_some());
    // Of projects that are gone nothing is kept.
    if let Ok(loaded) = registry::load(config) {
        told.projects.retain(|of| loaded.registry.projects().any(|project| of.is(project)));
    }
    let text = serde_json::to_string(&told)
        .map_err(|error| Finding::plain(exit::BUG, format!("{FILE} cannot be written: {error}")))?;
    config.dir().publish(FILE, text.as_bytes()).map_err(|error| Finding::from(&error))?;
    Ok(given)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::registry::ProjectName;
    use peers_sys::env::Env;

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(Duration::from_secs(s))
    }

    fn project(name: &str) -> Project {
        Project::new(ProjectName::new(name).unwrap(), Path::new("/p"), None, at(0))
    }

    fn due<'a>(project: &'a Project, what: &'a str, s: u64) -> Due<'a> {
        Due { project, subject: "attention", what, remind: None, now: at(s) }
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn each_channel_is_told_once_of_each_thing_and_a_new_channel_is_told_what_stands() {
        let (mut told, p) = (Told::default(), project("p"));
        assert_eq!(told.claim(due(&p, "act/budget", 0), &ids(&["a", "b"])), ids(&["a", "b"]));
        told.done(due(&p, "act/budget", 0), "a");
        told.done(due(&p, "act/budget", 0), "b");
        assert_eq!(told.due(due(&p, "act/budget", 99_999), &ids(&["a", "b", "c"])), ids(&["c"]));
        assert_eq!(told.due(due(&p, "act/stuck", 1), &ids(&["a"])), ids(&["a"]));
        assert_eq!(told.due(due(&project("q"), "act/budget", 1), &ids(&["a"])), ids(&["a"]));
        let mut anew = project("p");
        anew.added_at = at(5);
        assert_eq!(told.due(due(&anew, "act/budget", 1), &ids(&["a"])), ids(&["a"]));
        told.forget(&p, "attention");
        assert_eq!(told.due(due(&p, "act/budget", 1), &ids(&["a"])), ids(&["a"]));
    }

    #[test]
    fn a_channel_that_fails_is_tried_five_times_at_growing_distances() {
        let (mut told, p) = (Told::default(), project("p"));
        let mut tried = Vec::new();
        for s in 0..3000 {
            if !told.claim(due(&p, "x", s), &ids(&["a"])).is_empty() {
                tried.push(s);
            }
        }
        assert_eq!(tried, [0, 5, 25, 105, 425]);
        assert!(told.gave_up(due(&p, "x", 3000), "a"));
    }

    #[test]
    fn a_reminder_comes_after_its_time_whether_the_first_was_told_or_not() {
        for works in [true, false] {
            let (mut told, p) = (Told::default(), project("p"));
            let mut tried = Vec::new();
            for s in 0..2500 {
                let due = Due { remind: Some(Duration::from_secs(1000)), ..due(&p, "x", s) };
                if !told.claim(due, &ids(&["a"])).is_empty() {
                    tried.push(s);
                    if works {
                        told.done(due, "a");
                    }
                }
            }
            let often = [0, 5, 25, 105, 425, 1425, 1430, 1450, 1530, 1850];
            assert_eq!(tried, if works { vec![0, 1000, 2000] } else { often.to_vec() });
        }
    }

    #[test]
    fn a_file_of_whatever_content_is_taken_for_empty_and_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        let config =
            ConfigDir::open(Some(&tmp.path().join("c")), &Env::from_pairs::<&str, &str>([])).unwrap();
        registry::edit(&config, |registry| {
            registry.entries.push(registry::Entry::Known(Box::new(project("p"))));
            Ok(())
        })
        .unwrap();
        let file = tmp.path().join("c").join(FILE);
        let deep = "[".repeat(100_000);
        for text in
            ["", "{}", "[1]", "{\"v\":7,\"projects\":[]}", "{\"v\":1,\"projects\":[{\"name\":1}]}", &deep]
        {
            std::fs::write(&file, text).unwrap();
            assert!(Told::load(&config).projects.is_empty(), "{text:.40}");
            let p = project("p");
            let claimed = edit(&config, |told| told.claim(due(&p, "x", 0), &ids(&["a"]))).unwrap();
            assert_eq!(claimed, ids(&["a"]));
            assert!(edit(&config, |told| told.claim(due(&p, "x", 0), &ids(&["a"]))).unwrap().is_empty());
        }
        // Who is not registered is forgotten.
        edit(&config, |told| told.claim(due(&project("gone"), "x", 0), &ids(&["a"]))).unwrap();
        assert_eq!(Told::load(&config).projects.len(), 1);
        let p = project("p");
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        edit(&config, |told| told.claim(due(&p, &"y".repeat(9999), 0), &many)).unwrap();
        let kept = Told::load(&config).projects[0].notices["attention"].clone();
        assert_eq!((kept.channels.len(), kept.what.len()), (CHANNELS, WHAT));
    }
}
