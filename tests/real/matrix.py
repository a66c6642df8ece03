#!/usr/bin/env python3
"""The fault matrix: each real agent in each case, in a whole run of the loop.

    matrix.py RUNDIR DOCUMENT [--only AGENT[/CASE]]... [--write] [--jobs N]

For each case a project with two peers: the agent, whose model is scripted and fails as the case says
(cases.py), and a healthy script (`peers fake-peer`). What the journal, the log of the scripted model and
the process table say afterwards is held against what is documented, and against the table in DOCUMENT;
`--write` puts the table there. Times and numbers of requests are shown and not compared.

Called by run.sh in a namespace of its own, with `peers`, the agents and git in PATH. Exits 1 where
anything is not as documented.
"""
import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent / "fake-model"))
import server as model  # noqa: E402
import table  # noqa: E402
from agents import AGENTS  # noqa: E402
from cases import RESETS_IN, cases_of, expected  # noqa: E402

OTHER = "other"             # the healthy peer
MAX_TICKS = 3               # the turn with the fault, what the loop does then, and one more
LIMIT = 600                 # seconds for one run of the loop

CONFIG = """\
peers:
  - {name: %(agent)s, tool: %(tool)s, argv: %(argv)s}
  - {name: other, tool: scripted, argv: [peers, fake-peer, --script, %(script)s]}
health: {idle_timeout_s: %(idle)d, absolute_max_runtime_s: 480}
goals: {stuck_halt_after: 0}
skeptic: {enabled: false}
"""
# It stays red, so that the loop goes on to the last tick.
GOALS = """\
goals:
  - {id: finished, type: hard, description: Nobody makes this file, cmd: test -e finished, pass_when: exit_code == 0}
"""
SCRIPT = """\
count: ticks
after: repeat
turns:
- - write: {path: other.txt, append: "a line\\n"}
  - handoff
"""


LIVE = set()                # loops that run; those that are left when this ends are asked to stop


class Run:
    """One run of the loop: one agent, one case, one directory."""

    def __init__(self, top, agent, case):
        self.agent, self.case, self.top = agent, case, top / agent / case.name
        self.home, self.project = self.top / "home", self.top / "project"
        self.log = self.top / "requests.jsonl"
        self.survivors, self.exit_code, self.took_to_stop = [], None, None
        self.home.mkdir(parents=True)
        self.project.mkdir()

    def environment(self, url):
        base = {name: os.environ[name] for name in ("PATH", "USER", "LOGNAME", "LANG") if name in os.environ}
        own = AGENTS[self.agent].set_up(self.home, url, self.case.login)
        return {**base, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", **own}

    def call(self, *argv, stdout=None):
        with open(self.top / "transcript.txt", "a", encoding="utf-8") as transcript:
            transcript.write("$ %s\n" % " ".join(argv))
            transcript.flush()
            subprocess.run(argv, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, check=True,
                           stdout=stdout or transcript, stderr=transcript)

    def set_up(self):
        (self.top / "other.yaml").write_text(SCRIPT)
        (self.project / "notes.txt").write_text("notes\n")
        author = ("-c", "user.name=Somebody", "-c", "user.email=someone@example.org")
        self.call("git", "init", "--quiet", "--initial-branch=main")
        self.call("git", "add", "--all")
        self.call("git", *author, "commit", "--quiet", "--message", "Begin")
        self.call("peers", "init")
        (self.project / ".peers/config.yaml").write_text(CONFIG % {
            "agent": self.agent, "tool": AGENTS[self.agent].tool, "argv": json.dumps(AGENTS[self.agent].argv),
            "idle": self.case.idle, "script": self.top / "other.yaml"})
        (self.project / ".peers/goals.yaml").write_text(GOALS)
        shown = subprocess.run(["peers", "goals", "diff", "--json"], cwd=self.project, env=self.env,
                               stdin=subprocess.DEVNULL, capture_output=True, check=False)
        digest = json.loads(shown.stdout)["widening"]["digest"]
        self.call("peers", "goals", "accept", "--note", "the matrix", "--widen", digest)

    def loop(self, again=False):
        with open(self.top / "stdout.txt", "ab") as out, open(self.top / "stderr.txt", "ab") as err:
            child = subprocess.Popen(["peers", "run", "--max-ticks", str(MAX_TICKS)], cwd=self.project, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            LIVE.add(child)
            asked = self.stop_in_turn(child) if self.case.stop and not again else None
            try:
                self.exit_code = child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                child.kill()
                self.exit_code = child.wait()
            LIVE.discard(child)
            if self.case.stop == signal.SIGTERM:
                self.took_to_stop = time.monotonic() - asked
            self.survivors = marked(self.home)

    def stop_in_turn(self, child):
        """Waits until the agent's own command runs, then asks the loop to stop."""
        for _ in range(LIMIT * 10):
            if (self.home / "started").exists() or child.poll() is not None:
                break
            time.sleep(0.1)
        child.send_signal(self.case.stop)
        return time.monotonic()

    def play(self):
        doc = {"peers": {self.agent: {"turns": self.case.turns(self.agent), "websocket": self.case.websocket}}}
        scripted = model.Server(0, doc, self.log)
        threading.Thread(target=scripted.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            self.env = self.environment("http://127.0.0.1:%d/p/%s" % (scripted.server_address[1], self.agent))
            self.set_up()
            self.loop()
            if self.case.stop == signal.SIGKILL:
                self.loop(again=True)
        finally:
            scripted.stop()
            scripted.server_close()
        return self

    def git(self, *args):
        done = subprocess.run(["git", *args], cwd=self.project, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout.split()


def marked(home):
    """Processes that still carry the mark of a run and this home."""
    home, found = b"HOME=%s" % str(home).encode(), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            if home in environ and any(name.startswith(b"PEERS_RUN_ID=") for name in environ):
                found.append("%s %s" % (entry.name, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80]))
        except OSError:
            continue          # it ended, or it is not ours
    return found


def lines_of_json(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] if path.exists() else []


def seconds(time_text):
    return datetime.fromisoformat(time_text.replace("Z", "+00:00")).timestamp()


class Facts:
    """What a run left behind, read from its journal, git and the log of the scripted model."""

    def __init__(self, run):
        self.run, self.complaints = run, []
        self.journal = lines_of_json(run.project / ".peers/log/runs.jsonl")
        self.ticks = [r for r in self.journal if r["event"] == "tick"]
        self.exit = next((r for r in reversed(self.journal) if r["event"] == "exit"), {})
        self.requests = lines_of_json(run.log)
        if not self.ticks or not self.exit:
            self.complaints.append("no tick or no end in the journal; exit code %s" % run.exit_code)
            return
        self.first = self.ticks[0]
        self.child = self.first["exit"]
        self.classification = self.first["classification"]
        self.api = self.child["api"]
        self.kind = (self.child.get("matched") or {}).get("pattern", "none")
        self.took = self.child["duration_ms"] / 1000
        served = [r for r in self.requests if r.get("turn") == "first"]
        self.asked = len(served)
        self.reaction, self.words = self.react()
        self.hold()

    def ended(self):
        """How the process ended, in the words of the table."""
        code, by = self.child.get("code"), self.child.get("signal")
        return {"ok": "exit 0", "nonzero": "exit %s" % code, "signal": "signal %s" % by, "idle": "ended by us, silent",
                "absolute": "ended by us, too long", "interrupted": "ended by us", "spawn-fail": "did not start",
                "pattern": "ended by us, a pattern"}.get(self.child["class"], self.child["class"])

    def react(self):
        """What the loop did next: a word for the comparison, and a sentence."""
        reason = self.exit.get("reason")
        if self.first.get("recovered"):
            return "recovered", "the next run ends what is left of it and goes on"
        if len(self.ticks) == 1:
            word = "out" if str(reason).startswith("peer-unavailable") else "ended" if reason == "interrupted" else "?"
            return word, "the run ends: `%s`, exit %s" % (reason, self.run.exit_code)
        second = self.ticks[1]["peer"]
        waits = [r for r in self.journal if r["event"] == "cooling" and r["peer"] == self.run.agent]
        if waits:
            until, now = seconds(waits[0]["until"]), seconds(waits[0]["ts"])
            reset = seconds(self.first["started_at"]) + RESETS_IN
            then = "the other goes on" if second == OTHER else "then it tries again"
            if self.run.case.name.startswith("plan") and -120 < until - reset < self.took + 120:
                return "until-reset", "it waits until the reset, %s" % then
            return "waits", "it waits %s, %s" % (table.wait(until - now), then)
        if second == self.run.agent:
            return "again", "it tries again at once"
        return "next", "the other's turn" if self.first["success"] else "given up, the other's turn"

    def hold(self):
        """What has to be true in every case, and what is documented for this one."""
        want = expected(self.run.agent, self.run.case.name)
        found = (self.classification, self.kind, self.reaction)
        self.check("classification, kind and reaction are %s" % (want,), found == want, found)
        self.check("no process is left", self.run.survivors == [], self.run.survivors)
        # The agent's own commits of the turn, by git, against the journal.
        made = [r for r in self.run.git("log", "--format=%H%x00%an", "peers-baseline..HEAD")]
        own = {line.split("\0")[0] for line in made if line.split("\0")[1] == self.run.agent}
        known = {c for t in self.ticks if t["peer"] == self.run.agent for c in t.get("commits", [])}
        self.check("each of the agent's commits is kept and attributed", own == known, (own, known))
        late = [r for r in self.requests if r["ts"] > seconds(self.exit["ts"]) + 1]
        self.check("no request after the end", late == [], late[:1])

    def check(self, what, holds, found):
        if not holds:
            self.complaints.append("%s: %s" % (what, found))

    def row(self):
        kept = len(self.first.get("commits", []))
        kind = "" if self.kind == "none" else " (%s)" % self.kind
        return [self.run.case.title, self.ended(), "`%s`%s" % (self.classification, kind), self.words,
                str(kept), str(self.asked), table.duration(self.took)]


def play(top, agent, case):
    run = Run(top, agent, case)
    try:
        facts = Facts(run.play())
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError) as error:
        return agent, case, None, ["the case could not be run: %r" % error]
    return agent, case, facts, facts.complaints


def report(agent, case, facts, complaints):
    print("%s  %s/%s" % ("FAILED" if complaints else "ok    ", agent, case.name))
    if facts is not None and facts.ticks:
        turns = " ".join("%s:%s:%s" % (t["peer"], t["outcome"], t["classification"]) for t in facts.ticks)
        print("        %s" % " | ".join(facts.row()[1:]))
        print("        %s -> %s (exit %s)%s" % (turns, facts.exit.get("reason"), facts.run.exit_code, "" if
              facts.run.took_to_stop is None else ", %.1f s after the signal" % facts.run.took_to_stop))
    for complaint in complaints:
        print("        %s" % complaint)
    sys.stdout.flush()


def wanted(only):
    for agent in AGENTS:
        for case in cases_of(agent):
            if not only or agent in only or "%s/%s" % (agent, case.name) in only:
                yield agent, case


def give_up(number, _frame):
    for child in list(LIVE):
        child.terminate()
    for child in list(LIVE):
        child.wait()
    os._exit(128 + number)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    args.add_argument("run", type=Path)
    args.add_argument("document", type=Path)
    args.add_argument("--only", action="append", default=[], metavar="AGENT[/CASE]")
    args.add_argument("--write", action="store_true")
    args.add_argument("--jobs", type=int, default=3)
    args = args.parse_args()
    chosen = list(wanted(args.only))
    if not chosen:
        sys.exit("error: no such agent or case: %s" % ", ".join(args.only))
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, give_up)
    failed, rows = 0, {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(play, args.run, *one) for one in chosen]):
            agent, case, facts, complaints = future.result()
            report(agent, case, facts, complaints)
            failed += bool(complaints)
            if facts is not None and facts.ticks:
                rows[agent, case.title] = facts.row()
    order = [(agent, case.title) for agent in AGENTS for case in cases_of(agent)]
    if args.write:
        table.write(args.document, order, rows)
    else:
        for difference in table.differences(args.document, rows):
            failed += 1
            print("FAILED  %s" % difference)
    print("\n%s" % ("all as documented" if not failed else "%d differences from what is documented" % failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
