"""One case of the fault matrix: a project with two peers, one whole run of the loop, in one directory."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "fake-model"))
import server as model  # noqa: E402
from agents import AGENTS  # noqa: E402

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

LIVE = set()                # loops that run


def stop_all():
    """Asks every loop that runs to stop, and waits for them."""
    for child in list(LIVE):
        child.terminate()
    for child in list(LIVE):
        child.wait()


class Run:
    """`play` runs it; afterwards the attributes hold what the journal does not."""

    def __init__(self, top, agent, case):
        self.agent, self.case, self.top = agent, case, top / agent / case.name
        self.home, self.project = self.top / "home", self.top / "project"
        self.requests = self.top / "requests.jsonl"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.env = {}
        self.exit_code = None       # of `peers run`
        self.too_long = False       # it did not end by itself
        self.survivors = []         # processes of the run when it was over
        self.lived_on = []          # the same when the loop had been killed
        self.took_to_stop = None    # seconds from SIGTERM to the end

    def play(self):
        doc = {"peers": {self.agent: {"turns": self.case.turns(self.agent), "websocket": self.case.websocket}}}
        scripted = model.Server(0, doc, self.requests)
        threading.Thread(target=scripted.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            self.env = self.environment("http://127.0.0.1:%d/p/%s" % (scripted.server_address[1], self.agent))
            self.set_up()
            if self.case.stop == signal.SIGKILL:
                self.loop(signal.SIGKILL)
                self.lived_on = marked(self.home)
                self.loop(None)
            else:
                self.loop(self.case.stop)
            self.survivors = marked(self.home)
        finally:
            scripted.stop()
            scripted.server_close()

    def environment(self, url):
        """What an operator would have: a little, a home, and the login of the agent."""
        own = {name: os.environ[name] for name in ("PATH", "USER", "LOGNAME", "LANG") if name in os.environ}
        login = AGENTS[self.agent].set_up(self.home, url, self.case.login)
        return {**own, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", **login}

    def set_up(self):
        (self.top / "other.yaml").write_text(SCRIPT)
        (self.project / "notes.txt").write_text("notes\n")
        author = ("-c", "user.name=Somebody", "-c", "user.email=someone@example.org")
        self.call("git", "init", "--quiet", "--initial-branch=main")
        self.call("git", "add", "--all")
        self.call("git", *author, "commit", "--quiet", "--message", "Begin")
        self.call("peers", "init")
        agent = AGENTS[self.agent]
        (self.project / ".peers/config.yaml").write_text(CONFIG % {
            "agent": self.agent, "tool": agent.tool, "argv": json.dumps(agent.argv), "idle": self.case.idle,
            "script": self.top / "other.yaml"})
        (self.project / ".peers/goals.yaml").write_text(GOALS)
        digest = self.ask("goals", "diff", "--json")["widening"]["digest"]
        self.call("peers", "goals", "accept", "--note", "the matrix", "--widen", digest)

    def loop(self, stop):
        """Runs the loop; with `stop` it gets that signal while the agent's own command runs."""
        with open(self.top / "stdout.txt", "ab") as out, open(self.top / "stderr.txt", "ab") as err:
            child = subprocess.Popen(["peers", "run", "--max-ticks", str(MAX_TICKS)], cwd=self.project, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        LIVE.add(child)
        if stop is not None:
            self.wait_for_command(child)
            child.send_signal(stop)
        asked = time.monotonic()
        self.exit_code = self.wait(child)
        if stop == signal.SIGTERM:
            self.took_to_stop = time.monotonic() - asked
        LIVE.discard(child)

    def wait_for_command(self, child):
        until = time.monotonic() + LIMIT
        while time.monotonic() < until and child.poll() is None and not (self.home / "started").exists():
            time.sleep(0.1)

    def wait(self, child):
        for ending in (child.terminate, child.kill):
            try:
                return child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.too_long = True
                ending()
        return child.wait()

    def call(self, *argv):
        with open(self.top / "transcript.txt", "a", encoding="utf-8") as transcript:
            transcript.write("$ %s\n" % " ".join(argv))
            transcript.flush()
            subprocess.run(argv, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, check=True,
                           stdout=transcript, stderr=transcript)

    def ask(self, *argv):
        """What a command of peers answers in JSON."""
        done = subprocess.run(["peers", *argv], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        return json.loads(done.stdout)

    def git(self, *args):
        done = subprocess.run(["git", *args], cwd=self.project, env=self.env, check=True, capture_output=True,
                              text=True)
        return done.stdout.splitlines()


def marked(home):
    """Processes that carry the mark of a run and have this home."""
    ours, found = b"HOME=%s" % str(home).encode(), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            if ours in environ and any(name.startswith(b"PEERS_RUN_ID=") for name in environ):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found.append("%s %s" % (entry.name, line[:80]))
        except OSError:
            continue          # it ended, or it is not ours
    return found
