//! Secrets in files and in history.

use super::World;
use crate::Verdict;

/// Put together here, so that no file of this repository holds one.
fn token() -> String {
    ["gh", "p_"].concat() + "aB3dE6gH9jK1mN4pQ7sT0vW2yZaB3dE6gH9j"
}

fn pem() -> String {
    ["-----BEGIN ", "PRIVATE KEY-----"].concat()
}

#[test]
fn row_15_a_private_key_in_a_file_fails_unless_exactly_it_is_allowed() {
    let mut world = World::new();
    world.commit("key", &[("key.pem", &pem()), ("a.txt", "nothing\n")]);
    let outcome = world.check("no-secrets");
    assert_eq!((outcome.report.verdict, outcome.report.findings.len()), (Verdict::Fail, 1));
    let found = &outcome.report.findings[0];
    assert_eq!((found.path.as_str(), found.line), ("key.pem", Some(1)));
    assert!(!found.message.contains("BEGIN"), "{}", found.message);
    let number = found.message.rsplit(' ').next().unwrap().trim_end_matches(')');
    world.accept_config(&format!("checks: {{allow_secrets: [{number}]}}\n"));
    let outcome = world.check("no-secrets");
    assert_eq!((outcome.report.verdict, outcome.report.counts["allowed"]), (Verdict::Pass, 1));
    world.commit("another", &[("b.txt", &token())]);
    assert_eq!(world.check("no-secrets").report.verdict, Verdict::Fail);
}

#[test]
fn row_16_a_link_and_a_file_that_is_too_large_fail() {
    let world = World::new();
    std::os::unix::fs::symlink("/etc/passwd", world.work.join("link")).unwrap();
    world.commit("large", &[("large.txt", &"x\n".repeat(1_500_000))]);
    let kinds: Vec<_> = world.check("no-secrets").report.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, ["too-large", "link"]);
    let outcome = world.check_with("no-secrets", &["--max-bytes", "4000000"]);
    assert_eq!(outcome.report.findings.len(), 1);
    // What a link leads to within the commit is looked at there.
    let links = ["a.txt", "../repo/a.txt", "gone.txt", "sub/../a.txt", "sub", "link", "./a.txt", "../../etc"];
    world.commit("sub", &[("sub/c.txt", "c\n")]);
    for (n, target) in links.iter().enumerate() {
        std::os::unix::fs::symlink(target, world.work.join(format!("link{n}"))).unwrap();
    }
    world.commit("links", &[]);
    let report = world.check_with("no-secrets", &["--max-bytes", "4000000"]).report;
    let bad: Vec<&str> = report.findings.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(bad, ["link", "link1", "link2", "link5", "link7"]);
}

#[test]
fn row_17_what_was_removed_again_is_found_in_history() {
    let world = World::new();
    let bad = world.commit("oops", &[("a.txt", &format!("t = {}\n", token()))]);
    world.commit("fixed", &[("a.txt", "t = None\n")]);
    let report = world.check("no-secrets").report;
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.findings[0].commit.as_ref(), Some(&bad));
    assert!(report.findings[0].message.starts_with("github-token, removed since"));
    assert_eq!(world.check_with("no-secrets", &["--no-history"]).report.verdict, Verdict::Pass);
    let dashes = ["sk-", "ant-api03-aB3-dE6-gH9-jK1-mN4"].concat();
    world.commit("dashes", &[("b.txt", &dashes)]);
    assert!(world.check("no-secrets").report.findings.iter().any(|f| f.message.starts_with("anthropic-key")));
}
