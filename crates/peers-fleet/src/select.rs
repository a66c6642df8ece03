//! Which projects a command is about: by name, by pattern, by label, by state, or all.

use std::path::Path;

use peers_model::command::Step;
use peers_model::exit;
use peers_run::boot::Finding;
use peers_sys::term;

use crate::observe::path_id;
use crate::registry::{Project, ProjectName, Registry, State};
use crate::start::unknown;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names and patterns with `*` and `?`.
    pub names: Vec<String>,
    /// All of them.
    pub all: bool,
    /// Labels that a project must have; without a value any will do.
    pub labels: Vec<(String, Option<String>)>,
    /// States that it may be in.
    pub states: Vec<State>,
}

impl Selection {
    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.all && self.labels.is_empty() && self.states.is_empty()
    }

    /// Whether more than one project may be meant.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.all
            || !self.labels.is_empty()
            || !self.states.is_empty()
            || self.names.len() > 1
            || self.names.iter().any(|name| is_pattern(name))
    }

    /// The names of the projects that are meant, in the order of the registry. Where nothing was said, the
    /// project of the directory `here`, or outside of any repository the only one that there is.
    ///
    /// # Errors
    /// A [`Finding`]: exit 3 for a name that is unknown or a pattern beside others that fits nothing,
    /// 1 where nothing fits at all, 2 where it is not clear which one
    /// is meant.
    pub fn of(&self, registry: &Registry, here: Option<&Path>) -> Result<Vec<ProjectName>, Finding> {
        if self.is_empty() {
            return Ok(vec![implied(registry, here)?]);
        }
        for name in self.names.iter().filter(|name| !is_pattern(name)) {
            let known = ProjectName::new(name.as_str())
                .map_err(|invalid| Finding::plain(exit::USAGE, invalid.to_string()))?;
            if registry.get(&known).is_none() {
                return Err(unknown(name, registry));
            }
        }
        let any = registry.projects().next().is_some();
        for pattern in self.names.iter().filter(|name| any && is_pattern(name)) {
            if !registry.projects().any(|project| matches(pattern, project.name.as_str())) {
                // Alone it is an answer; beside others it is a mistake that would go unseen.
                let exit = if self.names.len() == 1 { exit::NEGATIVE } else { exit::INVALID };
                return Err(Finding::new(
                    exit,
                    format!("no project fits `{}`", term::line(pattern, 80)),
                    "`peers-ctl list` shows the names",
                ));
            }
        }
        let named = |project: &Project| {
            self.names.is_empty() || self.names.iter().any(|name| matches(name, project.name.as_str()))
        };
        let found: Vec<ProjectName> = registry
            .projects()
            .filter(|project| named(project) && self.fits(project))
            .map(|project| project.name.clone())
            .collect();
        if found.is_empty() {
            let what = if registry.projects().next().is_none() {
                "no project is registered"
            } else {
                "no project fits"
            };
            return Err(Finding::new(
                exit::NEGATIVE,
                what,
                "`peers-ctl list --wide` shows names, states and labels",
            ));
        }
        Ok(found)
    }

    fn fits(&self, project: &Project) -> bool {
        let labelled = self.labels.iter().all(|(key, value)| {
            let has = project.labels.get(key);
            has.is_some_and(|has| value.as_ref().is_none_or(|value| value == has))
        });
        labelled && (self.states.is_empty() || self.states.contains(&project.state))
    }
}

/// The project that goes without saying.
fn implied(registry: &Registry, here: Option<&Path>) -> Result<ProjectName, Finding> {
    if let Some(project) = here.and_then(|here| around(registry, here)) {
        return Ok(project.name.clone());
    }
    let repository = here.and_then(|here| {
        let top = here.ancestors().find(|dir| dir.join(".git").exists())?;
        Some((top, if top == here { ".".into() } else { top.to_string_lossy() }))
    });
    let mut all = registry.projects();
    match (all.next(), all.next(), repository) {
        (None, ..) => Err(Finding::new(
            exit::NEGATIVE,
            "no project is registered",
            "`peers-ctl new PATH` sets one up, `peers-ctl add PATH` registers one that is",
        )),
        // Agents are not let loose on another repository than the one that the operator is in.
        (Some(_), _, Some((top, path))) => Err(Finding::new(
            exit::USAGE,
            format!("the repository {} is not registered", term::inline(&top.to_string_lossy())),
            Step::text(
                "`peers-ctl add {}` registers it, `peers-ctl new {}` also sets it up; or name the project that you mean",
                &[&path, &path],
            ),
        )),
        (Some(only), None, None) => Ok(only.name.clone()),
        (Some(_), Some(_), None) => Err(Finding::new(
            exit::USAGE,
            "there are several projects, and this directory is none of them: name one",
            "`peers-ctl list` shows them; `--all` means all",
        )),
    }
}

/// The project in whose directory, or below it, `here` lies.
fn around<'r>(registry: &'r Registry, here: &Path) -> Option<&'r Project> {
    here.ancestors().find_map(|dir| {
        let text = dir.to_str()?;
        let by_path = registry.projects().find(|project| project.path == text);
        by_path.or_else(|| {
            let id = path_id(dir)?;
            registry.projects().find(|project| project.path_id == Some(id))
        })
    })
}

/// Whether this is a pattern and no name.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether `name` fits `pattern`: `*` stands for anything, `?` for one character.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stood, and up to where it reaches by now.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = name.get(n) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(x) if x == c || *x == '?' => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, reach)) => {
                    star = Some((at, reach + 1));
                    p = at + 1;
                    n = reach + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use peers_model::Timestamp;

    use super::*;
    use crate::registry::Entry;

    fn registry(names: &[&str]) -> Registry {
        let mut registry = Registry::empty();
        for (at, name) in names.iter().enumerate() {
            let name = ProjectName::new(*name).unwrap();
            let path = format!("/repos/{name}");
            let mut project = Project::new(name, Path::new(&path), None, Timestamp::from_millis(0));
            if at % 2 == 0 {
                project.labels.insert("team".into(), "pay".into());
                project.state = State::Running;
            }
            registry.entries.push(Entry::Known(Box::new(project)));
        }
        registry
    }

    fn chosen(selection: &Selection, registry: &Registry, here: Option<&str>) -> Result<String, u8> {
        let found = selection.of(registry, here.map(Path::new)).map_err(|finding| finding.exit)?;
        Ok(found.iter().map(ProjectName::as_str).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn projects_are_named_by_name_pattern_label_and_state() {
        let registry = registry(&["api-a", "api-b", "web", "api-c"]);
        let named = |names: &[&str]| Selection {
            names: names.iter().map(|n| (*n).into()).collect(),
            ..Selection::default()
        };
        assert_eq!(chosen(&named(&["web", "api-a"]), &registry, None), Ok("api-a web".into()));
        assert_eq!(chosen(&named(&["api-*"]), &registry, None), Ok("api-a api-b api-c".into()));
        assert_eq!(chosen(&named(&["?eb"]), &registry, None), Ok("web".into()));
        assert_eq!(chosen(&named(&["wep"]), &registry, None), Err(3));
        assert_eq!(chosen(&named(&["../x"]), &registry, None), Err(2));
        assert_eq!(chosen(&named(&["x*"]), &registry, None), Err(1));
        assert_eq!(chosen(&named(&["web", "x*"]), &registry, None), Err(3), "beside a name that fits");
        let why = named(&["web", "x*"]).of(&registry, None).unwrap_err();
        assert_eq!(why.message, "no project fits `x*`");
        let labelled = Selection { labels: vec![("team".into(), Some("pay".into()))], ..named(&["api-*"]) };
        assert_eq!(chosen(&labelled, &registry, None), Ok("api-a".into()));
        let running = Selection { states: vec![State::Running], ..Selection::default() };
        assert_eq!(chosen(&running, &registry, None), Ok("api-a web".into()));
        assert_eq!(
            chosen(&Selection { all: true, ..Selection::default() }, &registry, None).unwrap().len(),
            21
        );
    }

    #[test]
    fn nothing_said_means_the_project_of_this_directory_or_the_only_one() {
        let two = registry(&["a", "b"]);
        let none = Selection::default();
        assert_eq!(chosen(&none, &two, Some("/repos/b/src/x")), Ok("b".into()));
        assert_eq!(chosen(&none, &two, Some("/elsewhere")), Err(2));
        assert_eq!(chosen(&none, &registry(&["a"]), Some("/elsewhere")), Ok("a".into()));
        assert_eq!(chosen(&none, &registry(&[]), None), Err(1));
    }

    #[test]
    fn in_a_repository_that_is_not_registered_no_other_project_is_meant() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tmp.path().join("src")).unwrap();
        std::fs::write(tmp.path().join(".git"), "").unwrap();
        let why = |here: &Path| Selection::default().of(&registry(&["a"]), Some(here)).unwrap_err();
        let (at_top, below) = (why(tmp.path()), why(&tmp.path().join("src")));
        assert!(at_top.hint.unwrap().to_string().starts_with("`peers-ctl add .` registers it"));
        let add = format!("`peers-ctl add {}` ", tmp.path().display());
        assert!(below.hint.unwrap().to_string().starts_with(&add), "{add}");
    }

    #[test]
    fn a_pattern_takes_time_in_proportion() {
        let pattern = "*a".repeat(30);
        assert!(!matches(&pattern, &"a".repeat(20)) && matches(&pattern, &"xa".repeat(40)));
        for (pattern, name, fits) in [
            ("", "", true),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b", "ab c", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
