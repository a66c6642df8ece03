//! The newest handoffs and what others say of them.

use super::*;

use super::hostile::EVIL;

fn review(pass: bool, sha: char, notes: &str) -> AcceptedReview {
    AcceptedReview { goal: goal("docs-read"), pass, sha: commit(sha), notes: notes.into() }
}

fn world() -> World {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.commits = vec![commit('1'), commit('2')]);
    world.tick(2, "codex", |tick| {
        tick.commits = vec![commit('3')];
        tick.reviews = vec![review(false, '3', EVIL)];
    });
    world.tick(3, "codex", |tick| {
        fail(tick, TickOutcome::NoHandoff);
        tick.reviews = vec![review(true, '4', "now it is fine")];
    });
    world.tick(4, "claude", |tick| {
        tick.commits.clear();
        tick.reviews = vec![review(true, '5', "of the work of codex")];
    });
    world.tick(5, "codex", |tick| {
        fail(tick, TickOutcome::NoHandoff);
        tick.reviews = vec![review(false, '6', "of what came later")];
    });
    world
}

fn newest(world: &World, peer: Option<&str>, n: usize) -> Vec<Handoff> {
    let asked = HandoffsAsked { peer: peer.map(name), newest: n };
    handoffs(&mut world.disk(), &asked, None).unwrap()
}

#[test]
fn a_handoff_is_the_last_commit_of_a_turn_that_counted_by_the_record() {
    let world = world();
    let shas = |handoffs: Vec<Handoff>| handoffs.iter().map(|h| h.sha.clone()).collect::<Vec<CommitId>>();
    assert_eq!(shas(newest(&world, None, 0)), [commit('3')]);
    assert_eq!(shas(newest(&world, None, 9)), [commit('3'), commit('2')]);
    assert_eq!(shas(newest(&world, Some("claude"), 1)), [commit('2')]);
    assert_eq!(newest(&World::running(), None, 1), []);
}

#[test]
fn what_others_said_counts_until_its_author_has_the_next_turn() {
    let world = world();
    let of = |peer: &str| {
        let handoff = newest(&world, Some(peer), 1).remove(0);
        handoff.reviews.iter().map(|r| (r.peer.to_string(), r.tick.0, r.pass)).collect::<Vec<_>>()
    };
    assert_eq!(of("claude"), [("codex".to_owned(), 2, false), ("codex".to_owned(), 3, true)]);
    assert_eq!(of("codex"), [], "its author had the next turn");
}

fn git(dir: &Path, args: &[&str], input: Option<&str>) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(args)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_message_is_taken_apart_and_one_that_names_another_peer_is_said_to() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"], None);
    let message = format!(
        "Say {EVIL}\n\nWhy it is so.\n\n## Self-Review\nI looked {EVIL} at it.\n\n## Left open\nnothing\n\nPeer: codex\nPeer-Status: handoff\nSelf-Review: pass\n"
    );
    let message = message.replace('\0', "");
    git(dir.path(), &["commit", "-q", "--allow-empty", "-F", "-", "--cleanup=verbatim"], Some(&message));
    let sha = CommitId::new(git(dir.path(), &["rev-parse", "HEAD"], None)).unwrap();
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.commits = vec![sha.clone()]);
    world.tick(2, "codex", |tick| tick.reviews = vec![review(false, '3', EVIL)]);
    let repo = PeerRepo::open(dir.path()).unwrap();
    let asked = HandoffsAsked { peer: Some(name("claude")), newest: 1 };
    let found = handoffs(&mut world.disk(), &asked, Some(&repo.facts())).unwrap();
    let message = found[0].message.as_ref().unwrap();
    let titles: Vec<&str> = message.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles, ["Self-Review", "Left open"]);
    assert_eq!(message.sections[1].text, "nothing");
    assert!(message.says_handoff && message.body.contains("Why it is so."), "{message:?}");
    assert_eq!(message.claims_other.as_deref(), Some("codex"));
    let text = handoffs_text(&found, Timestamp::from_millis(world.now), Colour::Plain);
    assert!(is_harmless(&text), "{text:?}");
    for says in [
        "it says that it is by `codex`; by the record it is by claude",
        "\nLeft open\n  | nothing\n",
        "\n1 review of others, 1 against\n  codex in tick 2: fail, docs-read (33333333)\n  | E",
    ] {
        assert!(text.contains(says), "{says} in {text}");
    }
    let json = handoffs_json(&found, Timestamp::from_millis(0));
    assert!(is_harmless(&json));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "peers-ctl.review/1");
    assert_eq!(value["data"]["handoffs"][0]["sha"], sha.as_str());
    assert_eq!(value["data"]["handoffs"][0]["reviews"][0]["notes"], EVIL);
}

#[test]
fn without_a_repository_the_record_still_stands() {
    let text = handoffs_text(&newest(&world(), Some("claude"), 1), Timestamp::from_millis(0), Colour::Plain);
    assert!(text.contains("subject:   the repository does not have it\n"), "{text}");
    assert!(text.contains("2 reviews of others, 1 against"), "{text}");
}
