"""What one case of the fault matrix left behind, and whether it is as documented."""
import json
from datetime import datetime

import table
from cases import RESETS_IN, expected
from run_case import OTHER

ENDED = {"idle": "ended by us, silent", "absolute": "ended by us, too long", "pattern": "ended by us, a pattern",
         "hopeless": "ended by us, hopeless", "interrupted": "ended by us", "spawn-fail": "did not start"}


def lines_of_json(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] if path.exists() else []


def seconds(time):
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


class Facts:
    """Read from the journal, git, `peers status`, the log of the scripted model and the process table."""

    def __init__(self, run):
        self.run, self.complaints = run, []
        journal = lines_of_json(run.project / ".peers/log/runs.jsonl")
        self.ticks = [r for r in journal if r["event"] == "tick"]
        self.waits = [r for r in journal if r["event"] == "cooling" and r["peer"] == run.agent]
        self.exit = next((r for r in reversed(journal) if r["event"] == "exit"), None)
        self.requests = lines_of_json(run.requests)
        if not self.ticks or self.exit is None:
            self.complaints.append("no tick or no end in the journal; exit code %s" % run.exit_code)
            return
        self.first = self.ticks[0]
        self.kind = (self.first["exit"].get("matched") or {}).get("pattern", "none")
        self.reaction, self.words = self.react()
        self.hold()

    def react(self):
        """What the loop did next: a word of cases.py, and a sentence."""
        reason = str(self.exit["reason"])
        if self.first.get("recovered"):
            return "recovered", "the next run ends what is left of it and goes on"
        if len(self.ticks) == 1:
            word = "out" if reason.startswith("peer-unavailable:") else "ended" if reason == "interrupted" else "?"
            return word, "the run ends: `%s`, exit %s" % (reason, self.run.exit_code)
        other_next = self.ticks[1]["peer"] == OTHER
        if self.waits:
            then = "the other goes on" if other_next else "then it tries again"
            word, how = self.wait(self.waits[0])
            return word if other_next else "?", "it waits %s, %s" % (how, then)
        if not other_next:
            return "again", "it tries again at once"
        return ("next", "the other's turn") if self.first["success"] else ("?", "given up, the other's turn")

    def wait(self, cooling):
        until = seconds(cooling["until"])
        reset = seconds(self.first["started_at"]) + RESETS_IN
        # The window opens so long after the last refused request; prose has no seconds.
        took = self.first["exit"]["duration_ms"] / 1000
        if self.run.case.name.startswith("plan") and -90 < until - reset < took + 90:
            return "until-reset", "until the reset"
        return "waits", table.wait(until - seconds(cooling["ts"]))

    def hold(self):
        """What has to be true in every case, and what is documented for this one."""
        run, end = self.run, self.exit
        found = (self.first["classification"], self.kind, self.reaction)
        self.check("classification, kind and reaction", found, expected(run.agent, run.case.name))
        self.check("the loop ends by itself", run.too_long, False)
        self.check("processes that are left", run.survivors, [])
        if run.lived_on == [] and self.first.get("recovered"):
            self.complaints.append("nothing lived on when the loop was killed, so nothing was shown")
        late = [r["path"] for r in self.requests if r["ts"] > seconds(end["ts"]) + 1]
        self.check("requests after the end", late, [])
        made = [line.split("\t") for line in run.git("log", "--format=%H%x09%an", "peers-baseline..HEAD")]
        own = sorted(commit for commit, author in made if author == run.agent)
        attributed = sorted(c for t in self.ticks if t["peer"] == run.agent for c in t.get("commits", []))
        self.check("commits of the agent, by git and by the journal", own, attributed)
        ended = run.ask("status", "--json")["liveness"]["value"]
        told = (ended.get("kind"), ended.get("reason"), ended.get("exit_code"))
        self.check("what `peers status` says of the end", told, ("stopped", end["reason"], run.exit_code))

    def check(self, what, found, want):
        if found != want:
            self.complaints.append("%s: %s, not %s" % (what, found, want))

    def row(self):
        """The cells of the table."""
        child = self.first["exit"]
        how = {"ok": "exit 0", "nonzero": "exit %s" % child.get("code"), "signal": "signal %s" % child.get("signal")}
        kind = "" if self.kind == "none" else " (%s)" % self.kind
        return [self.run.case.title, {**how, **ENDED}.get(child["class"], child["class"]),
                "`%s`%s" % (self.first["classification"], kind), self.words,
                str(len(self.first.get("commits", []))),
                str(len([r for r in self.requests if r.get("turn") == "first"])),
                table.duration(child["duration_ms"] / 1000)]

    def story(self):
        """The whole run in one line."""
        turns = ["%s %s (%s)" % (t["peer"], t["outcome"], t["classification"]) for t in self.ticks]
        after = "" if self.run.took_to_stop is None else ", %.1f s after the signal" % self.run.took_to_stop
        return "%s -> %s, exit %s%s" % (", ".join(turns), self.exit["reason"], self.run.exit_code, after)
