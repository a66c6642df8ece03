#!/usr/bin/env python3
"""A scripted model on 127.0.0.1: real agent command lines run against it without an account.

It speaks the three wire APIs that the agents of this test use, streamed (SSE) or not:

    POST /p/<peer>/.../messages            Anthropic Messages        (claude)
    POST /p/<peer>/.../responses           OpenAI Responses          (codex)
    POST /p/<peer>/.../chat/completions    OpenAI Chat Completions   (opencode)

and answers the side calls that they make.  A scenario file holds the turns of each peer, and a turn
the tool calls that the client is made to perform, one after the other, and a final text:

    {"peers": {"<peer>": {"turns": [
        {"name": "fix", "on": {"prompt": ["needs: unresolved"], "without": ["# Skeptic turn"]},
         "calls": ["sh command for the client's own shell tool", {"tool": "Edit", "input": {...}}],
         "say": "text beside each call", "text": "the last words", "once": true,
         "faults": [{"kind": "rate_limit", "at": 1, "retry_after": 1}]}]}}}

A new conversation gets the first turn whose `on` holds: all of `prompt` stand in what the user said,
none of `without`.  So the answer follows from what was asked, in whatever order peers are asked.
A turn with `once` is given to one conversation alone.  Faults are listed in faults.py.  A WebSocket is
always refused, with the status in `websocket` of the peer, or 404.

    server.py --scenario FILE [--port N] [--log FILE.jsonl]

The first line on stdout is the port.  SIGTERM or SIGINT stops it (exit 0).  CONNECT, which is how a
client would go elsewhere when this server is its proxy, is refused and logged as `egress`.
Python 3.9 or newer, standard library only.
"""
import argparse
import gzip
import hashlib
import json
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True
import faults  # noqa: E402  (both lie next to this file)
from wire import Reply, error_body  # noqa: E402

APIS = (("/messages", "anthropic"), ("/responses", "responses"), ("/chat/completions", "chat"))
SHELL_TOOLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "local_shell")
SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "conversation_id",
                   "thread-id", "x-session-affinity", "x-opencode-session", "x-session-id")
SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "proxy-authorization", "cookie")
TOOL_ID = re.compile(r"fk(\d{4})s(\d\d)")     # turn serial and step, inside the ids of tool calls
NO_TURN = {"name": "idle", "calls": [], "text": "Nothing in this scenario fits what was asked."}


class Scenario:
    """The turns of each peer, and which conversation is in which of them."""

    def __init__(self, doc):
        self.peers = {name: peer["turns"] for name, peer in doc["peers"].items()}
        self.websocket = {name: peer.get("websocket", 404) for name, peer in doc["peers"].items()}
        for turn in (turn for turns in self.peers.values() for turn in turns):
            for fault in turn.get("faults", []):
                faults.check(fault)
        self.lock = threading.Lock()
        self.opened = []                              # turns in the order in which they began
        self.by_conversation = {}                     # (peer, session) -> index in `opened`

    def locate(self, peer, req):
        """The turn a request belongs to, and its step (calls that were answered so far).

        The ids of tool calls carry turn and step, so a request that brings results back names its
        own turn.  One that brings none belongs to the turn its session is in, until the final text
        of that went out; the next request of the session then begins the next turn.
        """
        with self.lock:
            for serial, step in reversed(req.result_ids):
                if serial < len(self.opened):
                    turn = self.opened[serial]
                    if turn["peer"] == peer and not turn["done"]:
                        return turn, step + 1
            serial = self.by_conversation.get((peer, req.session))
            if serial is not None and not self.opened[serial]["done"]:
                return self.opened[serial], 0
            turn = {"serial": len(self.opened), "peer": peer, "done": False, "served": {},
                    "script": self.choose(peer, "\n".join(req.prompts))}
            self.by_conversation[(peer, req.session)] = turn["serial"]
            self.opened.append(turn)
            return turn, 0

    def choose(self, peer, asked):
        for turn in self.peers[peer]:
            on = turn.get("on", {})
            if turn.get("once") and any(turn is earlier["script"] for earlier in self.opened):
                continue
            if (all(text in asked for text in on.get("prompt", []))
                    and not any(text in asked for text in on.get("without", []))):
                return turn
        return NO_TURN

    def fault(self, turn, step):
        """The fault that is due at this step of the turn, if any."""
        for index, fault in enumerate(turn["script"].get("faults", [])):
            with self.lock:
                served = turn["served"].get(index, 0)
                if fault.get("at", 0) == step and served < fault.get("times", served + 1):
                    turn["served"][index] = served + 1
                    return fault
        return None


def text_of(content):
    """Flattens the content of a message (a string, or a list of blocks) to text."""
    if isinstance(content, list):
        return "\n".join(text_of(b.get("text", b.get("content", ""))) for b in content
                         if isinstance(b, dict))
    return content if isinstance(content, str) else json.dumps(content) if content else ""


class Request:
    """What the APIs have in common, read from the body of one request."""

    def __init__(self, api, body, headers):
        self.api, self.body = api, body
        self.model, self.stream = str(body.get("model", "")), bool(body.get("stream", False))
        self.tools = {}                               # name -> schema of the parameters
        for tool in body.get("tools") or []:
            tool = tool.get("function", tool)
            self.tools[tool.get("name", tool.get("type", "?"))] = (
                tool.get("input_schema") or tool.get("parameters") or {})
        self.prompts, self.results, self.result_ids = [], [], []
        items = body.get("input" if api == "responses" else "messages") or []
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        for item in items:
            content = item.get("content")
            if str(item.get("type")).endswith("_call_output"):
                self.add_result(item.get("call_id"), item.get("output"))
            elif item.get("role") == "tool":
                self.add_result(item.get("tool_call_id"), content)
            elif item.get("role") == "user":
                results = [b for b in content if b.get("type") == "tool_result"] \
                    if isinstance(content, list) else []
                for block in results:
                    self.add_result(block.get("tool_use_id"), block.get("content"))
                if not results:
                    self.prompts.append(text_of(content))
        first = self.prompts[0] if self.prompts else ""
        self.session = next((headers[h] for h in SESSION_HEADERS if headers.get(h)), None) or str(
            (body.get("metadata") or {}).get("user_id") or body.get("prompt_cache_key")
            or "sha:" + hashlib.sha256(first.encode()).hexdigest()[:16])

    def add_result(self, call_id, output):
        found = TOOL_ID.search(call_id or "")
        if found:
            self.result_ids.append((int(found.group(1)), int(found.group(2))))
        self.results.append(text_of(output))

    def shell_call(self, command):
        """Name and arguments that make this client run a command; (None, {}) if it cannot."""
        name = next((t for t in SHELL_TOOLS if t in self.tools), None)
        if name is None:
            return None, {}
        props = self.tools[name].get("properties", {})
        as_list = name == "local_shell" or props.get("command", {}).get("type") == "array"
        args = ({"cmd": command} if "cmd" in props else
                {"command": ["bash", "-lc", command] if as_list else command})
        if "description" in props:
            args["description"] = "Run a scripted command"
        return name, args


class Handler(BaseHTTPRequestHandler):
    protocol_version, server_version, sys_version = "HTTP/1.1", "fake-model", ""

    def log_message(self, *args):
        pass

    def note(self, **fields):
        headers = {k.lower(): "<hidden>" if k.lower() in SECRET_HEADERS else v
                   for k, v in self.headers.items()}
        self.server.write_log({"ts": round(time.time(), 3), "method": self.command,
                               "path": self.path, "headers": headers, **fields})

    def send_json(self, status, obj, headers=None):
        self.send_body(status, json.dumps(obj).encode(), headers)

    def send_body(self, status, data, headers=None):
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(data),
                            "request-id": "req_fake", **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_CONNECT(self):        # HTTPS_PROXY points here: whatever wants to go outside shows up
        self.note(kind="egress", status=403)
        self.send_json(403, {"error": "fake-model: no outside network"})
        self.close_connection = True

    def do_GET(self):
        path = self.path.split("?")[0].rstrip("/")
        if re.match(r"https?://", path):              # a plain request by way of the proxy
            self.note(kind="egress", status=403)
            return self.send_json(403, {"error": "fake-model: no outside network"})
        status, obj = 404, {"error": {"type": "not_found_error", "message": "no " + path}}
        if path.endswith("/models"):
            status, obj = 200, {"object": "list", "has_more": False, "data": [
                {"id": "fake-model", "object": "model", "type": "model", "created": 1,
                 "display_name": "fake-model", "created_at": "2025-01-01T00:00:00Z"}]}
        elif self.headers.get("upgrade") == "websocket":
            to = re.match(r"/p/([^/]+)/", path)
            status = self.server.scenario.websocket.get(to.group(1) if to else None, 404)
        elif path == "":
            status, obj = 200, {"ok": True}
        self.note(kind="side", status=status)
        return self.send_json(status, obj)

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_GET

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        path = self.path.split("?")[0].rstrip("/")
        if re.match(r"https?://", path):
            self.note(kind="egress", status=403)
            return self.send_json(403, {"error": "fake-model: no outside network"})
        if path.endswith("/count_tokens"):
            self.note(kind="side", status=200)
            return self.send_json(200, {"input_tokens": max(1, len(raw) // 4)})
        to = re.match(r"/p/([^/]+)/", path)
        peer = to.group(1) if to else None
        api = next((api for end, api in APIS if path.endswith(end)), None)
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if api is None or body is None or peer not in self.server.scenario.peers:
            self.note(kind="side", status=404, body=raw[:2000].decode("utf-8", "replace"))
            return self.send_json(404, error_body(api, "fake-model: no " + path))
        req = Request(api, body, {k.lower(): v for k, v in self.headers.items()})
        try:
            self.model_call(peer, req)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            self.note(kind="client_gone", session=req.session)
        return None

    def model_call(self, peer, req):
        """Answers one model request from the scenario."""
        log = {"peer": peer, "api": req.api, "model": req.model, "session": req.session,
               "tools": sorted(req.tools), "prompt": req.prompts[-1] if req.prompts else "",
               "results": [r[:2000] for r in req.results[-3:]]}
        if req.shell_call("")[0] is None:             # no shell tool: a title, a probe, a summary
            self.note(kind="side", status=200, **log)
            return self.send_reply(req, Reply(req, "ok", []))
        turn, step = self.server.scenario.locate(peer, req)
        script, calls = turn["script"], []
        fault = self.server.scenario.fault(turn, step)
        log.update(turn=script["name"], serial=turn["serial"], step=step)
        if fault is not None:
            self.note(kind="fault", fault=fault["kind"], **log)
            if not (req.stream and fault["kind"] in faults.STREAM):
                return self.serve_fault(req, fault)
        else:
            self.note(kind="reply", **log)
        if step < len(script["calls"]):
            text, call = script.get("say", ""), script["calls"][step]
            name, args = ((call["tool"], call["input"]) if isinstance(call, dict)
                          else req.shell_call(call))
            calls.append(("fk%04ds%02d" % (turn["serial"], step), name, args))
        else:
            text = script.get("text", "Done.")
        if self.send_reply(req, Reply(req, text, calls), fault) and not calls:
            turn["done"] = True
        return None

    def serve_fault(self, req, fault):
        """Answers with a fault in place of a reply."""
        kind = fault["kind"]
        if kind in ("hang", "stall"):
            self.server.ended.wait()
        if kind in ("hang", "stall", "cut"):
            return self.hard_close()
        if kind in ("broken_body", "broken_event"):
            return self.send_body(200, b'{"this is": not JSON')
        status, headers, body = faults.refusal(req.api, fault)
        return self.send_json(status, body, headers)

    def hard_close(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass                                      # the client was faster

    def send_reply(self, req, reply, fault=None):
        """Sends a reply, spoilt half-way if the fault says so; true if all of it went out."""
        kind = fault["kind"] if fault else None
        if not req.stream:
            self.send_json(200, reply.full())
            return True
        self.send_response(200)
        for name, value in (("content-type", "text/event-stream"), ("cache-control", "no-cache"),
                            ("transfer-encoding", "chunked"), ("request-id", "req_fake")):
            self.send_header(name, value)
        self.end_headers()
        events = reply.events()
        for number, (name, data) in enumerate(events):
            if number == (1 if kind == "stall" else max(1, len(events) // 2)):
                if kind == "stall":
                    self.server.ended.wait()
                if kind in ("stall", "cut"):
                    self.hard_close()
                    return False
                if kind == "broken_event":
                    self.send_event(name, "{not json")
            self.send_event(name, data if isinstance(data, str) else json.dumps(data))
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        return True

    def send_event(self, name, text):
        event = (("event: %s\n" % name if name else "") + "data: %s\n\n" % text).encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 64

    def __init__(self, port, doc, log_path):
        self.scenario, self.log_lock = Scenario(doc), threading.Lock()
        self.ended = threading.Event()                # wakes what hangs on purpose
        self.log = open(log_path, "a", encoding="utf-8") if log_path else None
        super().__init__(("127.0.0.1", port), Handler)

    def stop(self):
        self.ended.set()
        self.shutdown()

    def write_log(self, entry):
        if self.log:
            with self.log_lock:
                self.log.write(json.dumps(entry) + "\n")
                self.log.flush()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    args.add_argument("--scenario", required=True)
    args.add_argument("--port", type=int, default=0, help="0 (default): any free port")
    args.add_argument("--log", help="append one JSON line for each request to this file")
    args = args.parse_args()
    with open(args.scenario, encoding="utf-8") as file:
        server = Server(args.port, json.load(file), args.log)

    def stop(*_):
        threading.Thread(target=server.stop).start()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(server.server_address[1], flush=True)
    server.serve_forever(poll_interval=0.1)
    server.server_close()


if __name__ == "__main__":
    main()
