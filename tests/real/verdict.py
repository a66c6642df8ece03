#!/usr/bin/env python3
"""Judges a finished run by what it left behind: verdict.py RUNDIR.  Exits 1 if anything is missing.

What peers says of itself is held against git, the requests that the model saw, and the process table.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

AGENTS = {"claude": "claude-cli/", "codex": "codex_exec/"}
SOURCE = "docutils/utils/__init__.py"
TEST = "test/test_utils/test__init__.py"

failures = []


def check(what, holds, found=""):
    print("%s  %s%s" % ("ok    " if holds else "FAILED", what, "" if holds else ": %s" % (found,)))
    if not holds:
        failures.append(what)


def lines_of_json(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def leftovers(run):
    """Processes that still carry the mark of a run in this directory's home."""
    home = ("HOME=%s/home" % run).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            if home in environ:
                found.append("%s %s" % (entry.name, (entry / "comm").read_text().strip()))
        except OSError:
            continue          # it ended, or it is not ours
    return found


def main():
    run = Path(sys.argv[1]).resolve()
    project = run / "project"

    def git(*args):
        done = subprocess.run(["git", "-C", str(project), *args], check=True, capture_output=True, text=True)
        return done.stdout.strip("\n")

    # How it ended.
    code = (run / "exit-code").read_text().strip()
    stdout = (run / "stdout.txt").read_text(encoding="utf-8").splitlines()
    check("peers run: exit code 0", code == "0", code)
    check("the last line is `Stopped: complete`", stdout[-1:] == ["Stopped: complete"], stdout[-1:])

    # Whose commits, by the journal: the agents' names in git are only what they say of themselves.
    journal = lines_of_json(project / ".peers/log/runs.jsonl")
    ticks = [r for r in journal if r.get("event") == "tick"]
    exits = [r for r in journal if r.get("event") == "exit"]
    commits = {peer: [c for t in ticks if t["peer"] == peer for c in t["commits"]] for peer in AGENTS}
    for peer, own in commits.items():
        check("the journal attributes commits to %s" % peer, bool(own), ticks)
    since = git("rev-list", "peers-baseline..HEAD").split()
    attributed = {c for own in commits.values() for c in own}
    set_up = {c for c in since if git("log", "-1", "--format=%an", c) == "peers-init"}
    check("every commit since the baseline is attributed", set(since) - set_up == attributed,
          "%s are not %s" % (set(since) - set_up, attributed))
    notes = git("notes", "--ref=refs/notes/peers-attest", "list").splitlines()
    check("every one of them has a note of attestation", attributed <= {n.split()[1] for n in notes}, notes)
    check("the exit record holds a proof of this tree",
          bool(exits) and (exits[-1].get("proof") or {}).get("tree") == git("rev-parse", "HEAD^{tree}"), exits[-1:])

    # What was done.
    changed = git("diff", "--name-only", "peers-baseline", "HEAD").split()
    check("the fix and its test are the only changes", set(changed) - {".gitignore"} == {SOURCE, TEST}, changed)
    fixed_by = git("log", "--format=%H", "peers-baseline..HEAD", "--", SOURCE).split()
    check("the fix is a commit of codex", fixed_by != [] and set(fixed_by) <= set(commits["codex"]), fixed_by)
    answers = [(t["peer"], r["pass"]) for t in ticks for r in t.get("reviews", [])]
    check("the review said no before the fix and yes after it, by somebody else than the fixer",
          [yes for _, yes in answers] == [False, True] and answers[-1][0] != "codex", answers)
    check("the work tree is clean", git("status", "--porcelain") == "", git("status", "--porcelain"))

    # What the other commands say.
    try:
        status = json.loads((run / "status.json").read_text(encoding="utf-8"))
    except ValueError as error:
        status = {}
        check("peers status --json is JSON", False, error)
    ended = (status.get("liveness") or {}).get("value") or {}
    check("peers status --json: stopped, complete, attention done",
          (ended.get("kind"), ended.get("reason"), (status.get("attention") or {}).get("level"))
          == ("stopped", "complete", "done"), ended)
    check("peers state check: sound", (run / "state-ok").exists(), (run / "state-check.txt").read_text())

    # What the model saw.
    requests = lines_of_json(run / "requests.jsonl")
    for peer, agent in AGENTS.items():
        seen = [r for r in requests if r.get("peer") == peer and r["kind"] == "reply"]
        strangers = [r["headers"].get("user-agent") for r in seen if agent not in r["headers"].get("user-agent", "")]
        check("%s itself asked the model (%d times)" % (peer, len(seen)), seen != [] and strangers == [], strangers)
        print("        as %s" % seen[0]["headers"]["user-agent"] if seen else "")
    idle = [r for r in requests if r.get("turn") == "idle"]
    check("every prompt asked for something that the scenario knows", idle == [], [r["prompt"][:200] for r in idle])
    outside = [r["path"] for r in requests if r["kind"] == "egress"]
    check("nothing wanted to leave the machine", outside == [], outside)

    # Who had the keys: with a wall, and logins that the auth proxy serves, no agent.
    records = [json.loads(path.read_text()) for path in (run / "home").glob(".local/state/peers/*/runs/*.json")]
    credentials = records[-1].get("credentials", {}) if records else {}
    led = bool(os.environ.get("PEERS_REAL_LED"))
    if led:
        check("the auth proxy has the logins of both", credentials == dict.fromkeys(AGENTS, "proxy"), credentials)
    container = "yes" if os.environ.get("PEERS_REAL_SANDBOX") == "podman" else "no"
    for peer in AGENTS:
        looks = {m for r in requests if r.get("peer") == peer for text in r.get("results", [])
                 for m in re.findall(r"keys found: (\d+), in a container: (\w+)", text)}
        check("%s looked for keys where it works%s" % (peer, ", and there are none" if led else ""),
              looks == {("0", container)} if led else {where for _, where in looks} == {container}, looks)
    keys = {(r.get("peer"), r["headers"].get("x-api-key") or r["headers"].get("authorization")) for r in requests
            if r["kind"] == "reply"}
    print("        credentials: %s; the model saw %s" % (credentials or "of nobody, without a wall", sorted(map(str, keys))))

    # What it left.
    left = leftovers(run)
    check("no process is left", left == [], left)

    print("\nhistory since the project as published:")
    print(git("log", "--reverse", "--format=  %h %<(20,trunc)%an %s"))
    print("\nticks:")
    for tick in ticks:
        print("  %d %-6s  %-10s  commits: %d  tokens: %s%s" % (
            tick["iteration"], tick["peer"], tick["outcome"], len(tick["commits"]),
            tick["exit"]["usage"]["tokens"], "  skeptic: " + tick["skeptic"] if tick.get("skeptic") else ""))
    print("\n%s" % ("all holds" if not failures else "%d checks failed" % len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
