//! The registry's file: what survives, what is refused, what is copied.

use std::path::Path;

use peers_model::Timestamp;
use peers_sys::env::Env;
use serde_json::{Value, json};

use super::file::BACKUPS;
use super::*;
use crate::config::ConfigDir;

struct Place {
    tmp: tempfile::TempDir,
    config: ConfigDir,
}

impl Place {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let env = Env::from_pairs([("HOME", tmp.path().as_os_str())]);
        let config = ConfigDir::open(Some(&tmp.path().join("ctl")), &env).unwrap();
        Self { tmp, config }
    }

    fn file(&self) -> std::path::PathBuf {
        self.tmp.path().join("ctl/projects.json")
    }

    fn write(&self, value: &Value) {
        self.write_text(&value.to_string());
    }

    fn write_text(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(self.file(), text).unwrap();
        std::fs::set_permissions(self.file(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn read(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.file()).unwrap()).unwrap()
    }

    fn add(&self, name: &str) {
        self.edit(|registry| registry.entries.push(Entry::Known(Box::new(project(name)))));
    }

    fn edit(&self, change: impl FnOnce(&mut Registry)) {
        edit(&self.config, |registry| {
            change(registry);
            Ok(())
        })
        .unwrap();
    }
}

fn name(text: &str) -> ProjectName {
    ProjectName::new(text).unwrap()
}

fn project(text: &str) -> Project {
    Project::new(name(text), Path::new("/repo"), None, Timestamp::from_millis(1_700_000_000_000))
}

fn entry(text: &str) -> Value {
    serde_json::to_value(project(text)).unwrap()
}

fn registry(projects: &[Value]) -> Value {
    json!({"schema": 1, "registry_id": "a", "revision": 3, "projects": projects})
}

#[test]
fn a_name_has_a_grammar() {
    for good in ["a", "A9", "api-1", "x.y_z", &"a".repeat(64)] {
        assert!(ProjectName::new(good).is_ok(), "{good}");
    }
    for bad in ["", ".", "-a", "_a", "a/b", "../x", "a b", "ä", "a\n", "a\u{1b}[m", &"a".repeat(65)] {
        assert!(ProjectName::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn one_that_is_not_there_is_empty_and_the_first_change_makes_it() {
    let place = Place::new();
    assert_eq!(load(&place.config).unwrap().registry, Registry::empty());
    place.add("one");
    let value = place.read();
    assert_eq!((&value["schema"], &value["revision"]), (&json!(1), &json!(1)));
    assert_eq!(value["registry_id"].as_str().unwrap().len(), 16);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(place.file()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_this_program_does_not_know_survives_a_rewrite() {
    let place = Place::new();
    let mut known = entry("one");
    known["colour"] = json!({"deep": [1, 2]});
    known["runtime"] =
        json!({"run_id": "0123456789abcdef", "phase": "up", "since": "2026-01-01T00:00:00Z", "gpu": 3});
    let odd = json!({"name": "../x", "path": 7, "keep": ["this", null]});
    let mut value = registry(&[known, odd.clone()]);
    value["site"] = json!("berlin");
    place.write(&value);
    let loaded = load(&place.config).unwrap();
    assert_eq!(loaded.warnings.iter().map(|w| w.code).collect::<Vec<_>>(), ["malformed"]);
    place.add("two");
    let after = place.read();
    assert_eq!(after["site"], "berlin");
    assert_eq!(after["projects"][0]["colour"], json!({"deep": [1, 2]}));
    assert_eq!(after["projects"][0]["runtime"]["gpu"], 3);
    assert_eq!(after["projects"][1], odd, "a malformed neighbour is kept as it is");
    assert_eq!(after["projects"][2]["name"], "two");
}

#[test]
fn a_pid_that_is_none_makes_nobody_running() {
    for pid in [json!(true), json!(0), json!(-5), json!("7"), json!(1.5), json!(99_999_999_999_u64)] {
        let place = Place::new();
        let mut bad = entry("one");
        bad["state"] = json!("running");
        bad["runtime"] =
            json!({"run_id": "0123456789abcdef", "phase": "up", "since": "2026-01-01T00:00:00Z", "pid": pid});
        place.write(&registry(&[bad]));
        let loaded = load(&place.config).unwrap();
        let project = loaded.registry.get(&name("one")).unwrap();
        assert_eq!((project.state, project.runtime.clone()), (State::Crashed, None), "{pid}");
        assert_eq!(loaded.warnings[0].code, "bad-pid");
    }
}

#[test]
fn a_log_elsewhere_is_put_back_to_its_place() {
    let place = Place::new();
    for path in ["../../etc/passwd", "/tmp/x", "logs/other.log"] {
        let mut bad = entry("one");
        bad["log_path"] = json!(path);
        place.write(&registry(&[bad]));
        let loaded = load(&place.config).unwrap();
        assert_eq!(loaded.registry.get(&name("one")).unwrap().log_path, "logs/one.log");
        assert_eq!(loaded.warnings[0].code, "log-path");
    }
}

#[test]
fn a_file_that_is_no_registry_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for text in
        ["", "{", "[]", "7", r#"{"schema":1}"#, r#"{"schema":1,"projects":{}}"#, r#"{"projects":[]}"#, &deep]
    {
        place.write_text(text);
        let error = load(&place.config).unwrap_err();
        assert_eq!(error.exit, 3, "{text:.20}: {error:?}");
        assert!(
            error.message.contains("corrupt") && error.hint.unwrap().to_string().contains("registry restore")
        );
        assert!(edit(&place.config, |_| Ok(())).is_err());
        assert_eq!(std::fs::read_to_string(place.file()).unwrap(), text);
    }
    std::fs::write(place.file(), [0xff, 0xfe]).unwrap();
    assert_eq!(load(&place.config).unwrap_err().exit, 3);
}

#[test]
fn a_newer_format_is_shown_and_not_written() {
    let place = Place::new();
    let mut value = registry(&[entry("one")]);
    value["schema"] = json!(9);
    place.write(&value);
    assert!(load(&place.config).unwrap().registry.get(&name("one")).is_some());
    let error = edit(&place.config, |registry| {
        registry.entries.clear();
        Ok(())
    })
    .unwrap_err();
    assert!(error.message.contains("format 9"), "{}", error.message);
    assert_eq!(place.read(), value);
}

#[test]
fn a_change_that_fails_or_changes_nothing_writes_nothing() {
    let place = Place::new();
    place.add("one");
    let before = std::fs::read(place.file()).unwrap();
    let failed = edit(&place.config, |registry| -> Result<(), _> {
        registry.entries.clear();
        Err(peers_run::boot::Finding::plain(1, "no"))
    });
    assert!(failed.is_err());
    edit(&place.config, |_| Ok(())).unwrap();
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
}

#[test]
fn concurrent_writers_lose_nothing() {
    let place = Place::new();
    let path = place.tmp.path().join("ctl");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let path = path.clone();
            std::thread::spawn(move || {
                let env = Env::from_pairs([("HOME", "/nowhere")]);
                let config = ConfigDir::open(Some(&path), &env).unwrap();
                for n in 0..10 {
                    edit(&config, |registry| {
                        registry.entries.push(Entry::Known(Box::new(project(&format!("p{writer}-{n}")))));
                        Ok(())
                    })
                    .unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let registry = load(&place.config).unwrap().registry;
    assert_eq!((registry.projects().count(), registry.revision), (80, 80));
}

#[test]
fn copies_are_made_where_something_could_be_lost_and_one_can_be_restored() {
    let place = Place::new();
    place.add("one");
    place.add("two");
    for state in [State::Running, State::Stopped, State::Running] {
        place.edit(|registry| registry.get_mut(&name("one")).unwrap().state = state);
    }
    assert_eq!(backups(&place.config).unwrap().len(), 1, "states are seen again by looking");
    place.edit(|registry| registry.entries.clear());
    assert_eq!(backups(&place.config).unwrap().len(), 2);
    assert_eq!(restore(&place.config, None).unwrap(), 1);
    assert_eq!(load(&place.config).unwrap().registry.projects().count(), 2);
    place.write_text("{");
    assert_eq!(restore(&place.config, None).unwrap(), 1, "what was there is a copy now, and no good one");
    assert_eq!(load(&place.config).unwrap().registry.projects().count(), 0);
    for n in 0..9 {
        place.add(&format!("more{n}"));
    }
    assert_eq!(backups(&place.config).unwrap().len(), BACKUPS);
    assert_eq!(restore(&place.config, Some(9)).unwrap_err().exit, 1);
}

#[test]
fn the_directory_must_not_be_a_link_nor_the_file() {
    let tmp = tempfile::tempdir().unwrap();
    let env = Env::from_pairs([("HOME", tmp.path().as_os_str())]);
    std::fs::create_dir(tmp.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", tmp.path().join("link")).unwrap();
    assert_eq!(ConfigDir::open(Some(&tmp.path().join("link")), &env).unwrap_err().exit, 5);
    std::fs::write(tmp.path().join("file"), "").unwrap();
    assert_eq!(ConfigDir::open(Some(&tmp.path().join("file")), &env).unwrap_err().exit, 5);
    let place = Place::new();
    std::os::unix::fs::symlink("/etc/passwd", place.file()).unwrap();
    assert_eq!(load(&place.config).unwrap_err().exit, 5);
}

#[test]
fn what_a_project_may_hold_is_bounded() {
    let ok = project("one");
    assert!(ok.check().is_ok());
    let with = |change: fn(&mut Project)| {
        let mut project = project("one");
        change(&mut project);
        project.check()
    };
    assert!(with(|p| p.path = "relative".into()).is_err());
    assert!(with(|p| p.path = format!("/{}", "x".repeat(4096))).is_err());
    assert!(with(|p| p.notes = "x".repeat(4097)).is_err());
    assert!(with(|p| p.labels = (0..33).map(|n| (format!("k{n}"), String::new())).collect()).is_err());
    for (key, value) in
        [("", "v"), ("A", "v"), ("-a", "v"), ("a b", "v"), ("a", "x\ny"), ("a", &"x".repeat(129))]
    {
        assert!(label(key, value).is_err(), "{key:?} {value:?}");
    }
    assert!(label("team/a.b_c-d", "pay & roll").is_ok());
}

#[test]
fn a_registry_that_is_gone_beside_its_copies_is_no_empty_one() {
    let world = Place::new();
    world.add("one");
    world.add("two");
    assert!(world.config.dir().stat("projects.json.1").unwrap().is_some());
    world.config.dir().remove_file("projects.json").unwrap();
    let error = load(&world.config).unwrap_err();
    assert_eq!(error.exit, 3);
    assert!(error.hint.unwrap().to_string().contains("registry restore"));
    // Nothing new is begun over it.
    assert_eq!(edit(&world.config, |_| Ok(())).unwrap_err().exit, 3);
    restore(&world.config, None).unwrap();
    assert_eq!(load(&world.config).unwrap().registry.projects().count(), 1);
}
