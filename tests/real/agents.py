"""The real agents of the fault matrix: how an operator would start each, and point it at the model."""
import json
from dataclasses import dataclass
from typing import Callable

def claude(_home, url, login):
    keys = {"key": {"ANTHROPIC_API_KEY": "scripted-key"},
            "oauth": {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}}.get(login, {})
    # As root it works unattended only where it is told that this is a sandbox.
    return {"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1", **keys}


CODEX = """\
model = "fake-model"
%s
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
"""
CODEX_PROVIDER = """\
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


def codex(home, url, login):
    place = home / ".codex"
    place.mkdir()
    if login == "built-in":
        text, key = CODEX % ('openai_base_url = "%s/v1"' % url), "CODEX_API_KEY"
    else:
        text, key = CODEX % 'model_provider = "scripted"' + CODEX_PROVIDER % url, "OPENAI_API_KEY"
    (place / "config.toml").write_text(text)
    return {} if login == "none" else {key: "scripted-key"}


def opencode(home, url, login):
    place = home / ".config/opencode"
    place.mkdir(parents=True)
    model = {"name": "fake-model", "limit": {"context": 200000, "output": 8192},
             "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}
    options = {"baseURL": url + "/v1", **({} if login == "none" else {"apiKey": "scripted-key"})}
    (place / "opencode.json").write_text(json.dumps({
        "autoupdate": False, "share": "disabled", "model": "scripted/fake-model", "small_model": "scripted/fake-model",
        "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
                                  "options": options, "models": {"fake-model": model}}}}, indent=1))
    return {"OPENCODE_DISABLE_%s" % what: "1"
            for what in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")}


@dataclass
class Agent:
    """A peer: its adapter in `tool`, its command line, and what it finds of its operator.

    `set_up(home, url, login)` writes the agent's configuration below `home`; the answer is what
    belongs into the environment. `login` is `key` or `none`, for claude also `oauth`, for codex
    `built-in` (its own provider in place of a configured one).
    """
    tool: str
    argv: list
    set_up: Callable


AGENTS = {
    "claude": Agent("claude", ["claude", "-p", "--dangerously-skip-permissions", "--output-format", "stream-json",
                               "--verbose"], claude),
    "codex": Agent("codex", ["codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"], codex),
    "opencode": Agent("opencode", ["opencode", "run", "--format", "json", "--auto"], opencode),
    # The same program by the protocol, behind the bridge.
    "acp": Agent("acp", ["opencode", "acp"], opencode),
}
