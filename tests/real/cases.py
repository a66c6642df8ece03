"""The cases of the fault matrix: what goes wrong, and what is documented to come of it.

`EXPECTED` is what `docs/agents.md` promises; the test fails where a run does otherwise.
"""
from signal import SIGKILL, SIGTERM

RESETS_IN = 5400            # seconds until the scripted window of a subscription opens again
LONG_WAIT = 7200            # seconds of the long retry-after

COMMIT = """git add -A && git commit -q -F - <<'MESSAGE'
Add a line to the notes

Peer: %(peer)s
MESSAGE"""
HANDOFF = """git add -A && git commit -q -F - <<'MESSAGE'
Add a last line to the notes

## Self-Review
Read the file again; it holds what it should and nothing else.

Peer: %(peer)s
Peer-Status: handoff
Self-Review: pass
MESSAGE"""

# Quiet for so long, the program is ended. Long enough where it is to end by itself.
PATIENT, SHORT = 150, 40


class Case:
    """One fault: its row in the table, the turn in which it happens, and how the loop is set."""

    def __init__(self, name, title, fault=None, idle=PATIENT, login="key", calls=None, stop=None, websocket=404,
                 only=None):
        self.name, self.title, self.idle, self.login = name, title, idle, login
        self.fault, self.calls, self.stop, self.only = fault, calls, stop, only
        self.websocket = websocket

    def turns(self, peer):
        """The turns of the scripted model: the one with the fault, then good ones."""
        line = "echo 'one more line' >> notes.txt"
        calls = self.calls or [line + "; " + COMMIT, line + "; " + HANDOFF]
        good = {"name": "good", "calls": [line + "; " + HANDOFF], "text": "Handed over."}
        first = {"name": "first", "once": True, "calls": calls, "text": "Handed over."}
        if self.fault:
            first["faults"] = [self.fault]
        return [dict(turn, calls=[call % {"peer": peer} for call in turn["calls"]]) for turn in (first, good)]


FAIL = "echo out; echo err >&2; exit 3"
# A commit, then a long command in which the loop is stopped.
WORKING = ["echo 'one more line' >> notes.txt; " + COMMIT, "touch \"$HOME/started\"; sleep 600"]

CASES = [
    Case("good", "no fault"),
    Case("no-login", "not logged in", {"kind": "auth"}, login="none"),
    Case("401", "401, bad credentials", {"kind": "auth"}),
    Case("401-late", "401 after the first commit", {"kind": "auth", "at": 1}),
    Case("429-twice", "429 twice, retry-after 2 s",
         {"kind": "rate_limit", "at": 1, "times": 2, "retry_after": 2}),
    Case("429", "429 each time, retry-after 1 s", {"kind": "rate_limit", "at": 1, "retry_after": 1}),
    Case("429-long", "429 each time, retry-after 2 h", {"kind": "rate_limit", "at": 1, "retry_after": LONG_WAIT}, SHORT),
    Case("529", "529 each time, overloaded", {"kind": "overloaded"}),
    Case("quota", "no credit left", {"kind": "quota"}),
    Case("plan", "usage cap of the plan", {"kind": "plan", "resets_in": RESETS_IN}),
    Case("plan-oauth", "usage cap, logged in to a plan", {"kind": "plan", "resets_in": RESETS_IN}, login="oauth",
         only="claude"),
    Case("plan-far", "usage cap, three days long", {"kind": "plan", "resets_in": 3 * 86400}, login="oauth"),
    Case("hang", "no answer, not even headers", {"kind": "hang"}, SHORT),
    Case("stall", "the answer stops after its beginning", {"kind": "stall", "at": 1}, SHORT),
    Case("cut-once", "connection lost once", {"kind": "cut", "at": 1, "times": 1}),
    Case("cut", "connection lost each time", {"kind": "cut", "at": 1}),
    Case("empty", "200 without an answer each time", {"kind": "broken_body"}),
    Case("broken-event", "one broken event in the answer", {"kind": "broken_event", "at": 1, "times": 1}),
    Case("tool-fails", "a command of the agent fails",
         calls=[FAIL, "echo 'one more line' >> notes.txt; " + HANDOFF]),
    Case("leftover", "a process of the agent lives on",
         calls=["(setsid sleep 600 >/dev/null 2>&1 &); echo 'one more line' >> notes.txt; " + HANDOFF]),
    # codex asks for one first where no other provider is configured.
    Case("websocket", "403 for a WebSocket, HTTPS works", login="built-in", websocket=403, only="codex"),
    Case("sigterm", "SIGTERM for `peers run`", calls=WORKING, stop=SIGTERM),
    Case("sigkill", "SIGKILL for `peers run`, then run again", calls=WORKING, stop=SIGKILL),
]

# Classification and kind of the first turn, and what the loop does then:
#   next         handed over, the next peer's turn
#   again        the same peer tries again
#   waits        the peer waits, the other goes on
#   until-reset  the same, until the provider's window opens again
#   out          only the operator can help: the run ends as `peer-unavailable`
#   ended        the run ends as `interrupted`
#   recovered    the next run ends what is left of the turn and closes it
EXPECTED = {
    "good": ("success", "none", "next"),
    "no-login": ("api-error", "auth", "out"),
    "401": ("api-error", "auth", "out"),
    "401-late": ("api-error", "auth", "out"),
    "429-twice": ("success", "none", "next"),
    "429": ("rate-limited", "rate-limit", "waits"),
    "429-long": ("rate-limited", "rate-limit", "waits"),
    "529": ("rate-limited", "overload", "waits"),
    "quota": ("api-error", "quota", "out"),
    "plan": ("usage-cap", "usage-cap", "until-reset"),
    "plan-oauth": ("usage-cap", "usage-cap", "until-reset"),
    "plan-far": ("usage-cap", "usage-cap", "out"),
    "hang": ("idle-timeout", "none", "again"),
    "stall": ("idle-timeout", "none", "again"),
    "cut-once": ("success", "none", "next"),
    "cut": ("rate-limited", "overload", "waits"),
    "empty": ("rate-limited", "overload", "waits"),
    "broken-event": ("success", "none", "next"),
    "tool-fails": ("success", "none", "next"),
    "leftover": ("success", "none", "next"),
    "websocket": ("success", "none", "next"),
    "sigterm": ("interrupted", "none", "ended"),
    "sigkill": ("interrupted", "none", "recovered"),
}

# Where the programs differ.
EXCEPTIONS = {
    # It knows plans only when it is logged in to one.
    ("claude", "plan"): ("rate-limited", "rate-limit", "waits"),
    # They obey it in silence; codex tells why before.
    ("codex", "429-long"): ("idle-timeout", "rate-limit", "waits"),
    ("opencode", "429-long"): ("idle-timeout", "none", "again"),
    ("acp", "429-long"): ("idle-timeout", "none", "again"),
    # Its errors are words alone, which do not say when the window opens again.
    ("acp", "plan"): ("usage-cap", "usage-cap", "waits"),
    ("acp", "plan-far"): ("usage-cap", "usage-cap", "waits"),
    # What they say then tells nothing about the service.
    ("claude", "empty"): ("api-error", "other", "again"),
    # It asks again and again without a word, where its own output tells of each step.
    ("acp", "empty"): ("idle-timeout", "none", "again"),
    ("opencode", "broken-event"): ("api-error", "other", "again"),
    ("acp", "broken-event"): ("api-error", "other", "again"),
}


def expected(agent, case):
    return EXCEPTIONS.get((agent, case), EXPECTED[case])


def cases_of(agent):
    return [case for case in CASES if case.only in (None, agent)]
