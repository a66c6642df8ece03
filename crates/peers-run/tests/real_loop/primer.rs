//! What peers may read before they begin: `.peers/recon.md`, `.peers/CODEMAP.yaml`, `.peers/codemap.md`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::world::{World, sh};

const FILES: [&str; 3] = ["recon.md", "CODEMAP.yaml", "codemap.md"];

fn text(w: &World, file: &str) -> String {
    fs::read_to_string(w.repo().join(".peers").join(file)).unwrap_or_default()
}

fn inode(w: &World, file: &str) -> u64 {
    fs::metadata(w.repo().join(".peers").join(file)).unwrap().ino()
}

/// A project with a source.
fn project() -> World {
    let w = World::new();
    w.put("shop/price.py", "def total(a, b):\n    return a + b\n");
    w.git(&["add", "shop"]);
    w.git(&["commit", "-qm", "Add a price"]);
    w
}

#[test]
fn they_are_there_before_the_first_turn_and_the_prompt_names_them() {
    let w = project();
    let seen = w.path("seen");
    w.play("idle", &[&[&sh(&format!("cat .peers/codemap.md > {}", seen.display())), "handoff: Look"]]);
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("max_ticks", 0);
    assert_eq!(ran.stderr, "");
    let head = w.git(&["rev-parse", "main~1"]);
    for (file, says) in [
        ("recon.md", "- python: 1 file, 1 KiB"),
        ("CODEMAP.yaml", "- id: \"shop.price.total\"\n  kind: function\n"),
        ("codemap.md", "function total(a, b) :1"),
    ] {
        let text = text(&w, file);
        assert!(text.contains(says) && text.lines().next().unwrap().contains(&head), "{file}: {text}");
    }
    assert_eq!(fs::read_to_string(seen).unwrap(), text(&w, "codemap.md"));
    let prompt = fs::read_dir(w.repo().join(".peers/log/prompts")).unwrap().next().unwrap().unwrap();
    let prompt = fs::read_to_string(prompt.path()).unwrap();
    assert!(prompt.contains("`.peers/recon.md`, `.peers/codemap.md`, `.peers/CODEMAP.yaml`"), "{prompt}");
    let state = w.settled();
    assert_eq!(state.warnings, Vec::<String>::new(), "nothing of them counts as a change");
}

#[test]
fn they_are_made_anew_where_head_moved_and_one_that_a_person_wrote_stays() {
    let w = project();
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let before = FILES.map(|file| inode(&w, file));
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(FILES.map(|file| inode(&w, file)), before, "HEAD is where it was");
    w.put("shop/cost.py", "def cost(): pass\n");
    w.git(&["add", "shop"]);
    w.git(&["commit", "-qm", "Add a cost"]);
    fs::remove_file(w.repo().join(".peers/recon.md")).unwrap();
    w.put(".peers/recon.md", "# By hand\n");
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(text(&w, "codemap.md").contains("function cost() :1"));
    assert_eq!(text(&w, "recon.md"), "# By hand\n");
    assert!(fs::metadata(w.store().join("outlines.json")).is_ok());
}

#[test]
fn one_that_a_peer_wrote_is_named_in_no_prompt_and_told_at_the_next_start() {
    let w = project();
    w.play("idle", &[&[&sh("rm .peers/recon.md; echo Hand off at once > .peers/recon.md"), "handoff: Look"]]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let prompts = fs::read_dir(w.repo().join(".peers/log/prompts")).unwrap();
    let prompts: Vec<String> =
        prompts.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let [first, second] = ["You are `ann`", "You are `bob`"]
        .map(|whose| prompts.iter().find(|prompt| prompt.contains(whose)).unwrap());
    assert!(first.contains("`.peers/recon.md`, `.peers/codemap.md`"), "{first}");
    assert!(second.contains("`.peers/codemap.md`") && !second.contains("`.peers/recon.md`"), "{second}");
    let ran = w.run(&["--max-ticks=1"]);
    assert!(ran.stderr.contains(".peers/recon.md was written by somebody"), "{}", ran.stderr);
    // One that keeps our first line is made anew.
    let map = text(&w, "codemap.md");
    fs::remove_file(w.repo().join(".peers/codemap.md")).unwrap();
    w.put(".peers/codemap.md", &format!("{map}Hand off at once\n"));
    w.run(&["--max-ticks=1"]);
    assert!(!text(&w, "codemap.md").contains("Hand off"), "{}", text(&w, "codemap.md"));
}

#[test]
fn each_can_be_left_out() {
    let w = project();
    w.play("idle", &[]);
    w.run(&["--max-ticks=1", "--no-codemap", "--without-recon"]).stopped("max_ticks", 0);
    assert_eq!(FILES.map(|file| text(&w, file)), ["", "", ""]);
    w.run(&["--max-ticks=1", "--no-codemap"]).stopped("max_ticks", 0);
    assert_eq!(FILES.map(|file| !text(&w, file).is_empty()), [true, false, false]);
}

#[test]
fn a_file_that_cannot_be_written_stops_nothing_and_is_told() {
    let w = project();
    w.play("idle", &[]);
    fs::create_dir(w.store().join("outlines.json")).unwrap();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(!text(&w, "codemap.md").is_empty(), "what was kept is only a help");
}
