//! `peers verify` as continuous integration calls it.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ended, World, goals, program};

/// A repository whose accepted files are committed, and the digest of them.
fn origin(gate: &str) -> (World, String) {
    let world = World::ready(gate);
    let digest = publish(&world);
    (world, digest)
}

fn publish(world: &World) -> String {
    world.git(&["add", "-f", ".peers/goals.yaml", ".peers/config.yaml"]);
    world.commit("Publish the gates");
    let info = world.peers(&["info", "--json"]).exits(0).json("peers.info/1");
    info["accept_digest"].as_str().unwrap().to_owned()
}

/// A clone on another machine: one commit deep, HEAD detached, no store.
fn clone(origin: &World) -> World {
    let machine = World::bare();
    let url = format!("file://{}", origin.at("").display());
    machine.git(&["clone", "-q", "--depth", "1", &url, "."]);
    machine.git(&["checkout", "-q", "--detach"]);
    machine
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_fresh_clone_is_judged_by_the_digest_alone_and_nothing_stays() {
    let (origin, digest) = origin("test -f README.md");
    let ci = clone(&origin);
    let done = ci.peers(&["verify", "--accept-digest", &digest]).exits(0);
    done.out_has("**Result:** PASS (1 of 1 hard goal green)");
    done.out_has(&format!("both (`--accept-digest`) {digest}."));
    assert_eq!(ci.read(".peers/VERIFY.md"), done.out);
    assert!(!ci.path("home/state").exists(), "a store was made");
    let cache = ci.path("home/cache/peers");
    let projects: Vec<_> = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    for project in projects {
        assert_eq!(std::fs::read_dir(&project).unwrap().count(), 0, "{}", project.display());
    }
    ci.peers(&["verify", "--pristine", "--accept-digest", &digest.to_uppercase()]).exits(0);
    assert!(!ci.path("home/state").exists());
    assert_eq!(ci.git(&["status", "--porcelain"]), "");
}

#[test]
fn without_the_digest_a_clone_is_refused_and_told_what_it_has() {
    let (origin, digest) = origin("touch ran");
    let ci = clone(&origin);
    ci.peers(&["verify"]).exits(5).err_has(&digest).err_has("`peers info` prints it");
    let other = "0".repeat(64);
    let done = ci.peers(&["verify", "--accept-digest", &other]).exits(5);
    done.err_has(&digest).err_has(&format!("not {other}"));
    done.err_has("`peers info` prints the right one");
    ci.peers(&["verify", "--accept-digest", &digest[..63]]).exits(2).err_has("64 hex digits");
    assert!(!ci.at("ran").exists() && !ci.path("home/state").exists() && !ci.at(".peers/VERIFY.md").exists());
}

#[test]
fn the_digest_covers_the_goals_and_the_configuration() {
    let (origin, digest) = origin("true");
    for (file, more) in
        [(".peers/goals.yaml", "# x\n"), (".peers/config.yaml", "verify: {commands: [{cmd: 'true'}]}\n")]
    {
        let ci = clone(&origin);
        ci.write(file, &(ci.read(file) + more));
        ci.peers(&["verify", "--accept-digest", &digest]).exits(5);
    }
}

#[test]
fn where_a_store_is_its_word_stands_whatever_digest_is_named() {
    let (world, digest) = origin("true");
    world.peers(&["verify", "--accept-digest", &digest]).exits(0);
    world.peers(&["verify", "--accept-digest", &"0".repeat(64)]).exits(5).err_has(&digest);
    world.write(".peers/goals.yaml", &goals(&[("real", "false")]));
    // The digest of the files as they are now is no secret, and no acceptance.
    let ci = World::bare();
    ci.git(&["clone", "-q", &format!("file://{}", world.at("").display()), "."]);
    ci.write(".peers/goals.yaml", &goals(&[("real", "false")]));
    let said = ci.peers(&["verify"]).exits(5).err;
    let found = said.split("have the digest ").nth(1).unwrap()[..64].to_owned();
    ci.peers(&["verify", "--accept-digest", &found]).exits(1);
    let done = world.peers(&["verify", "--accept-digest", &found]).exits(5);
    done.err_has("goals.yaml changed since it was accepted");
    assert_eq!(world.peers(&["info", "--json"]).exits(0).json("peers.info/1")["accept_digest"], Value::Null);
}

#[test]
fn a_link_in_place_of_the_control_directory_is_refused_in_a_clone() {
    let (origin, digest) = origin("true");
    let ci = clone(&origin);
    std::fs::rename(ci.at(".peers"), ci.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(ci.path("elsewhere"), ci.at(".peers")).unwrap();
    ci.peers(&["verify", "--accept-digest", &digest]).exits(5);
}

#[test]
fn a_check_that_needs_the_record_is_not_asked_without_a_store_and_every_report_says_so() {
    let world = World::ready("true");
    let review = "  - {id: review, type: hard, check: self-review}\n";
    world.write(".peers/goals.yaml", &(goals(&[("real", "true")]) + review));
    world.accept(&[]).exits(0);
    let digest = publish(&world);
    let ci = clone(&world);
    let (junit, sarif) = (ci.path("j.xml"), ci.path("s.sarif"));
    let (j, s) = (junit.to_str().unwrap(), sarif.to_str().unwrap());
    let done = ci.peers(&["verify", "--accept-digest", &digest, "--junit", j, "--sarif", s]).exits(0);
    done.out_has("**Result:** PASS (1 of 1 hard goal green)");
    done.out_has("Not asked here, where the record of the runs is not: ");
    assert!(text(&junit).contains("<testcase name=\"review\"") && text(&junit).contains("\"no-record\""));
    let sarif: Value = serde_json::from_str(&text(&sarif)).unwrap();
    assert_eq!(sarif["runs"][0]["properties"]["recordless"], serde_json::json!(["review"]));
    // Nothing but that is nothing.
    ci.peers(&["verify", "--accept-digest", &digest, "--only", "review"]).exits(1);
    // Where the record is, it is asked.
    let here = world.peers(&["verify", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!(here["hard"].as_array().unwrap().len(), 2);
}

#[test]
fn a_check_of_history_does_not_pass_where_history_is_cut_off() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", "goals:\n- {id: ledger, type: hard, check: bug-ledger}\n");
    world.accept(&[]).exits(0);
    let digest = publish(&world);
    let done = clone(&world).peers(&["verify", "--accept-digest", &digest]).exits(3);
    done.out_has("| ledger | error | this is a shallow clone");
    let whole = World::bare();
    whole.git(&["clone", "-q", &format!("file://{}", world.at("").display()), "."]);
    whole.peers(&["verify", "--accept-digest", &digest]).exits(0);
}

#[test]
fn a_tag_that_was_pushed_hides_no_open_bug_from_a_clone() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", "goals:\n- {id: ledger, type: hard, check: bug-ledger}\n");
    world.accept(&[]).exits(0);
    let digest = publish(&world);
    let report =
        "Report\n\n## Bug-Report\n{\"id\": \"BUG-1\", \"severity\": \"high\"}\n\nBug-Report: BUG-1\n";
    world.git(&["commit", "-q", "--allow-empty", "-m", report]);
    world.git(&["tag", "-f", "peers-baseline", "HEAD"]);
    let ci = World::bare();
    ci.git(&["clone", "-q", &format!("file://{}", world.at("").display()), "."]);
    assert!(ci.git(&["tag"]).contains("peers-baseline"));
    ci.peers(&["verify", "--accept-digest", &digest]).exits(1).out_has("| ledger | fail |").out_has("BUG-1");
}

#[test]
fn two_runs_give_the_same_bytes_in_every_format() {
    let world = World::ready("echo 'src/a.rs:3: wrong' >&2; false");
    world.accept_config("verify: {commands: [{name: lint, cmd: 'exit 2'}]}\n");
    let all = |n: u32, more: &[&str]| {
        let (junit, sarif) = (world.path(&format!("{n}.xml")), world.path(&format!("{n}.sarif")));
        let files = ["--junit", junit.to_str().unwrap(), "--sarif", sarif.to_str().unwrap()];
        let run = |args: &[&str]| world.peers(&[&["verify"], args, more].concat()).exits(1).out;
        let said = [run(&files), run(&["--json"]), run(&["--format", "json"]), run(&["--format", "github"])];
        assert_eq!(said[1], said[2]);
        [said.concat(), world.read(".peers/VERIFY.md"), text(&junit), text(&sarif)]
    };
    let first = all(1, &[]);
    assert_eq!(first, all(2, &[]));
    let timed = world.peers(&["verify", "--json", "--timings", "--no-write"]).exits(1);
    timed.err_has("took ").err_has("slowest: ");
    let timed = timed.json("peers.verify/2");
    assert!(timed["ts"].is_string() && timed["hard"][0]["duration_ms"].is_u64(), "{timed}");
    for told in all(3, &["--no-write"]).iter().zip(&first) {
        assert_eq!(told.0, told.1);
    }
    // The finding, and the line of the command.
    assert!(
        first[3].contains("\"uri\": \"src/a.rs\"") && first[3].contains("\"startLine\": 3"),
        "{}",
        first[3]
    );
    assert!(
        first[3].contains("\"uri\": \".peers/config.yaml\"") && first[3].contains("\"startLine\": 8"),
        "{}",
        first[3]
    );
}

#[test]
fn reports_go_into_files_also_when_a_gate_is_red_and_only_into_regular_ones() {
    let world = World::ready("touch ran; false");
    let out = world.path("out");
    std::fs::create_dir(&out).unwrap();
    let at = |name: &str| out.join(name).to_str().unwrap().to_owned();
    let done =
        world.peers(&["verify", "--junit", &at("j.xml"), "--sarif", "../out/s.sarif", "--json"]).exits(1);
    assert_eq!(done.json("peers.verify/2")["result"], "fail");
    assert!(
        text(&out.join("j.xml")).contains("<failure ") && text(&out.join("s.sarif")).contains("\"2.1.0\"")
    );
    std::fs::remove_file(world.at("ran")).unwrap();

    std::fs::write(out.join("victim"), "untouched").unwrap();
    std::os::unix::fs::symlink(&out, world.at("reports")).unwrap();
    std::os::unix::fs::symlink(world.at(".peers"), out.join("back")).unwrap();
    for (path, code, says) in [
        (at("link"), 5, "was a symbolic link; it was removed"),
        (at("."), 5, "is not a regular file"),
        (at(".."), 2, "is not a file"),
        (at("missing/j.xml"), 70, "make its directory first"),
        (world.at("reports/j.xml").to_str().unwrap().to_owned(), 5, "cannot be written"),
        (at("back/config.yaml"), 5, "through a symbolic link"),
        ("-".to_owned(), 2, "takes a file"),
        (world.at(".git/x.xml").to_str().unwrap().to_owned(), 2, "cannot hold a report"),
        (".peers/goals.yaml".to_owned(), 2, "cannot hold a report"),
        (".peers/state.json".to_owned(), 2, "cannot hold a report"),
        (".peers/accepted.json".to_owned(), 2, "cannot hold a report"),
        (".peers/schema/goals.json".to_owned(), 2, "cannot hold a report"),
        (".peers/log/x.json".to_owned(), 2, "cannot hold a report"),
        (".GIT/x".to_owned(), 2, "cannot hold a report"),
    ] {
        for flag in ["--junit", "--sarif"] {
            if path == at("link") {
                std::os::unix::fs::symlink(out.join("victim"), out.join("link")).unwrap();
            }
            let done = world.peers(&["verify", flag, &path]).exits(code);
            assert!(done.err.contains(says), "{path}: {}", done.err);
        }
    }
    for same in ["../out/x", "../out/../out/x"] {
        world.peers(&["verify", "--junit", "../out/x", "--sarif", same]).exits(2).err_has("one file");
    }
    assert_eq!(text(&out.join("victim")), "untouched");
    assert!(!world.at("ran").exists(), "gates ran before the files were looked at");
}

#[test]
fn a_run_that_refuses_leaves_no_older_report_behind() {
    let world = World::ready("true");
    let forged = |world: &World| {
        for (file, text) in
            [("../j.xml", "<testsuites/>"), ("../s.sarif", "\n{}"), (".peers/VERIFY.md", "all green")]
        {
            world.write(file, text);
        }
    };
    let left =
        |world: &World| ["../j.xml", "../s.sarif", ".peers/VERIFY.md"].map(|file| world.at(file).exists());
    let files = ["--junit", "../j.xml", "--sarif", "../s.sarif"];
    let verify = |more: &[&str]| world.peers(&[&["verify"], &files[..], more].concat());
    // The gate sees what is there before anything answers, as whoever ends this process by a signal would.
    let looks = "test ! -e .peers/VERIFY.md && test ! -e ../j.xml && test ! -e ../s.sarif";
    world.accept_goals(&[("real", looks)]);
    forged(&world);
    verify(&[]).exits(0);
    assert_eq!(left(&world), [true; 3]);

    for (more, code) in
        [(&["--accept-digest", "x"][..], 2), (&["--only", "nope"], 2), (&["--junit", "-"], 2), (&[], 5)]
    {
        forged(&world);
        let mut more = more.to_vec();
        if code == 5 {
            world.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
        }
        let args = match more.as_slice() {
            ["--junit", "-"] => {
                more.clear();
                vec!["verify", "--junit", "-", "--sarif", "../s.sarif"]
            }
            _ => [&["verify"], &files[..]].concat(),
        };
        let junit = args.contains(&"-");
        world.peers(&[args, more.clone()].concat()).exits(code);
        assert_eq!(left(&world), [junit, false, more.contains(&"--only")], "{more:?}");
    }
    forged(&world);
    verify(&["--no-write"]).exits(5);
    assert_eq!(left(&world), [false, false, true]);
}

#[test]
fn a_gate_that_takes_the_place_of_the_reports_puts_no_report_of_its_own_there() {
    let world = World::ready("true");
    world.write("../there/x", "");
    std::os::unix::fs::symlink(world.path("there"), world.path("link")).unwrap();
    world.peers(&["verify", "--junit", "../link/j.xml"]).exits(0);
    assert!(world.at("../there/j.xml").exists(), "a link of the operator's is followed");
    let forge =
        |dir: &str| format!("mv {dir} {dir}.old; mkdir {dir}; echo '<testsuites/>' > {dir}/j.xml; false");
    let link = |dir: &str| format!("mv {dir} {dir}.old; ln -s \"$PWD/{dir}.old\" {dir}; false");
    for (dir, swap) in [
        ("../out", forge("../out")),
        ("reports", forge("reports")),
        ("../logs", link("../logs")),
        ("pages", link("pages")),
    ] {
        world.write(&format!("{dir}/x"), "");
        world.accept_goals(&[("real", &swap)]);
        let done = world.peers(&["verify", "--junit", &format!("{dir}/j.xml")]).exits(70);
        done.err_has("another directory took the place of");
        assert!(!world.at(dir).join("j.xml").exists() && !world.at(&format!("{dir}.old/j.xml")).exists());
        assert!(world.read(".peers/VERIFY.md").contains("FAIL"), "the others are written all the same");
    }
}

#[test]
fn with_annotations_no_name_becomes_a_command_on_the_other_stream() {
    let world = World::ready("touch '##[stop-commands]x' '::error::y'");
    let done = world.peers(&["verify", "--format", "github"]);
    done.err_has("## [stop-commands]x").err_has(": :error: :y");
    done.err_lacks("##[").err_lacks("::");
    done.out_has("::warning title=peers verify::the gates changed the work tree");
    done.out_lacks("##[");
    world.write(".peers/goals.yaml", &goals(&[("real", "##[error]: ::error::")]));
    let refused = world.peers(&["verify", "--format", "github", "--only", "##[error]x"]);
    assert!(!refused.err.contains("##[") && refused.code != Some(0), "{}", refused.err);
}

#[test]
fn a_report_that_nobody_can_keep_is_a_failure_of_its_own() {
    let world = World::ready("true");
    for format in ["markdown", "json", "github"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let child = world
            .command(program())
            .args(["verify", "--format", format])
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Ended::waited(child).exits(70);
        assert!(world.read(".peers/VERIFY.md").contains("PASS"));
    }
    let done = world.peers(&["verify", "--junit", "/proc/self/j.xml", "--json"]).exits(70);
    assert_eq!(done.json("peers.verify/2")["result"], "pass");
    done.err_has("/proc/self/j.xml cannot be written");
}

#[test]
fn annotations_are_commands_and_the_summary_is_the_report() {
    let world = World::ready("printf '::warning::forged\\n%%0A::error::x\\n##[error]y\\n' >&2; false");
    let summary = world.path("summary.md");
    let run = |path: &Path| {
        let output = world
            .command(program())
            .args(["verify", "--format", "github"])
            .env("GITHUB_STEP_SUMMARY", path)
            .output()
            .unwrap();
        Ended::of(&output).exits(1)
    };
    std::fs::write(&summary, "before\n").unwrap();
    let done = run(&summary);
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("::error ")), "{}", done.out);
    assert_eq!(text(&summary), format!("before\n{}", world.read(".peers/VERIFY.md")));

    let nearly = "x".repeat(1024 * 1024 - 100);
    std::fs::write(&summary, &nearly).unwrap();
    run(&summary);
    let kept = text(&summary);
    assert!(
        kept.len() <= 1024 * 1024 && kept[nearly.len()..].contains("cut: a summary holds 1 MiB"),
        "{}",
        &kept[nearly.len()..]
    );

    std::fs::write(world.path("victim"), "untouched").unwrap();
    std::os::unix::fs::symlink(world.path("victim"), world.path("link.md")).unwrap();
    for path in ["link.md", "none/summary.md"] {
        let done = run(&world.path(path));
        done.err_has("warning: the summary of the job was not written");
    }
    assert_eq!(text(&world.path("victim")), "untouched");
}

#[test]
fn the_time_limit_of_verify_holds_for_gates_too_and_a_timeout_is_red() {
    let world = World::ready("true");
    let fifo = world.fifo("never");
    world.write(".peers/goals.yaml", &goals(&[("real", &format!("cat {}", fifo.display()))]));
    world.accept_config("verify: {timeout_s: 1}\n");
    world.peers(&["verify"]).exits(1).out_has("| real | timeout |");
}

#[test]
fn what_is_no_report_is_left_and_git_is_no_place_for_one() {
    let world = World::ready("true");
    world.write("notes.xml", "my notes");
    let done = world.peers(&["verify", "--junit", "notes.xml"]).exits(5);
    done.err_has("exists and is not a report; it was not changed");
    assert_eq!(world.read("notes.xml"), "my notes");
    let linked = world.path("linked");
    world.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    for path in [linked.join(".git"), world.at(".git/description")] {
        world.peers(&["verify", "--junit", path.to_str().unwrap()]).exits(2);
    }
    assert!(linked.join(".git").exists() && world.at(".git/description").exists());
}

#[test]
fn a_report_that_was_planted_behind_blanks_or_under_two_names_is_removed() {
    let world = World::ready("true");
    let green = format!("{}<testsuites tests=\"1\"/>", "\n".repeat(80));
    let wide: Vec<u8> = green.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let planted = world.at("j.xml");
    for bytes in [green.into_bytes(), [vec![0xFF, 0xFE], wide].concat()] {
        std::fs::write(&planted, bytes).unwrap();
        world.peers(&["verify", "--junit", "j.xml"]).exits(0);
        assert!(text(&planted).contains("name=\"real\""), "{}", text(&planted));
    }
    std::fs::write(world.path("other"), "kept").unwrap();
    std::fs::remove_file(&planted).unwrap();
    std::fs::hard_link(world.path("other"), &planted).unwrap();
    world.peers(&["verify", "--junit", "j.xml"]).exits(0);
    assert!(text(&planted).contains("name=\"real\""));
    assert_eq!(std::fs::read_to_string(world.path("other")).unwrap(), "kept");
}
