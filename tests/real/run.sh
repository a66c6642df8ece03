#!/usr/bin/env bash
# The loop with real agents. Two parts, both unless one is named:
#
#   --loop     the released claude and codex command lines repair a defect in a project that nobody
#              here wrote, from a red test suite to `complete`
#   --matrix   claude, codex and opencode, each with every fault of cases.py, held against the table
#              in docs/agents.md. Further arguments go to matrix.py: --only AGENT[/CASE], --jobs N,
#              and --write, which puts what was measured into that table
#
# No account, no money: a scripted model on 127.0.0.1 holds the answers; everything else is real.
# The loop runs in a network namespace that has nothing but loopback.
#
# Needs bash, git, cargo, node with npm, python3 (3.9 or newer, with pip and venv), and for the
# namespace `unshare`. Downloads about 1.1 GB once: the agents from npm, the project from PyPI. All
# of it stays in $PEERS_REAL_CACHE (default ~/.cache/peers-test-real), with the last few runs.
# $PEERS_REAL_BIN names a program `peers` to take in place of a build, $PEERS_REAL_SANDBOX the sandbox (podman, bwrap,
# landlock, none) in place of the best that holds. For podman an image with both agents is built, on $PEERS_REAL_BASE
# where that names a Debian, else on the one of the Containerfile. $PEERS_REAL_LOGIN says where the logins are in the
# loop: `proxy` (without it), as keys that the auth proxy serves, or `mounted`, in the agents' own settings, which no
# proxy can serve.
set -euo pipefail

readonly claude_version=2.1.328
readonly codex_version=0.169.0
readonly opencode_version=1.18.33
readonly image=localhost/peers-real:dev
readonly project_name=docutils
readonly project_version=0.22.2
readonly project_sha256=9fdb771707c8784c8f2728b67cb2c691305933d68137ef95a75db5f4dfbc213d

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${PEERS_REAL_CACHE:-${HOME:?}/.cache/peers-test-real}
readonly here root cache
# The configuration of whoever runs this has no part in it: no hooks, no signing.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# What cannot be installed from here ends the test as skipped.
need() {
  local name missing=()
  for name in git cargo node npm python3; do
    command -v "$name" >/dev/null || missing+=("$name")
  done
  if [ "${PEERS_REAL_SANDBOX:-}" = podman ] && ! podman info >/dev/null 2>&1; then missing+=('a podman that works'); fi
  if ! python3 -c 'import sys, venv, pip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    missing+=('python3 >= 3.9 with venv and pip')
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    printf 'skipped: not found: %s\n' "$(printf '%s, ' "${missing[@]}" | sed 's/, $//')" >&2
    printf 'hint: install them and run it again; no other test needs node or npm\n' >&2
    exit 77
  fi
}

# agent NAME PACKAGE VERSION: installs it unless that version is there.
agent() {
  local name=$1 package=$2 version=$3 dir=$cache/cli/$1
  local bin=$dir/node_modules/.bin/$name
  if [[ $("$bin" --version 2>/dev/null) != *"$version"* ]]; then
    say "installing $package@$version"
    npm install --prefix "$dir" --no-audit --no-fund --loglevel=error "$package@$version"
  fi
  local found
  found=$("$bin" --version)
  [[ $found == *"$version"* ]] || fail "$bin says that it is $found, not $version"
  say "$name: $found"
}

project() {
  local archive=$cache/$project_name-$project_version.tar.gz
  if ! [ -f "$archive" ]; then
    say "fetching $project_name $project_version from PyPI"
    printf '%s==%s --hash=sha256:%s\n' "$project_name" "$project_version" "$project_sha256" >"$cache/requirement.txt"
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --no-binary :all: \
      --require-hashes --dest "$cache" -r "$cache/requirement.txt"
  fi
  say "$project_sha256  $archive" | sha256sum --check --quiet - || fail "$archive is not what was pinned; remove it"
  mkdir "$work"
  tar -xzf "$archive" -C "$work" --strip-components=1
  printf '%s\n' '__pycache__/' 'alltests.out' 'test/functional/output/*' '!test/functional/output/README.rst' >"$work/.gitignore"

  git -C "$work" init --quiet --initial-branch=main
  as 'Release Manager' "$project_name $project_version as published"
  say "$project_name $project_version: $(git -C "$work" ls-files | wc -l | tr -d ' ') files"
  suite || fail 'the suite of the untouched project does not pass on this machine'
  say "as published: $(counts)"
  git -C "$work" apply "$here/defect.patch"
  as 'Careless Contributor' 'Shorten column_indices()'
  if suite; then fail 'the planted defect is not noticed by the suite'; fi
  say "with the planted defect: $(counts)"
}

# as AUTHOR SUBJECT: commits everything.
as() {
  git -C "$work" add --all
  git -C "$work" -c user.name="$1" -c user.email=someone@example.org commit --quiet --message "$2"
}

suite() { (cd "$work" && "$cache/python/bin/python3" -B test/alltests.py >"$run/suite.txt" 2>&1); }
counts() { grep -E '^(Ran |OK|FAILED)' "$run/suite.txt" | paste -sd ' ' -; }

# What an operator of the two agents would have: their configuration, and in it the way to the model.
home() {
  local proxy=http://127.0.0.1:@PORT@
  mkdir -p "$run/home/.claude" "$run/home/.codex"
  if [ -n "${PEERS_REAL_SANDBOX:-}" ]; then
    mkdir -p "$run/home/.config/peers"
    printf 'backend: %s\nrequire: 0\nimage: %s\n' "$PEERS_REAL_SANDBOX" "$image" >"$run/home/.config/peers/sandbox.yaml"
  fi
  if [ "${PEERS_REAL_LOGIN:-proxy}" = proxy ]; then
    printf '{"model": "claude-sonnet-4-5"}\n' >"$run/home/.claude/settings.json"
    printf 'model = "fake-model"\n' >"$run/home/.codex/config.toml"
    cat >"$run/login" <<ENV
export ANTHROPIC_BASE_URL=$proxy/p/claude ANTHROPIC_API_KEY=scripted-key-of-claude
export OPENAI_BASE_URL=$proxy/p/codex/v1 CODEX_API_KEY=scripted-key-of-codex
ENV
    return
  fi
  cat >"$run/login" <<ENV
export HTTPS_PROXY=$proxy HTTP_PROXY=$proxy NO_PROXY=127.0.0.1,localhost
export ANTHROPIC_BASE_URL=$proxy/p/claude ANTHROPIC_API_KEY=scripted-key-of-claude
export OPENAI_API_KEY=scripted-key-of-codex
ENV
  cat >"$run/home/.claude/settings.json" <<JSON
{"env": {"HTTPS_PROXY": "$proxy", "HTTP_PROXY": "$proxy", "NO_PROXY": "127.0.0.1,localhost",
         "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1"}}
JSON
  cat >"$run/home/.codex/.env" <<ENV
HTTPS_PROXY=$proxy
HTTP_PROXY=$proxy
NO_PROXY=127.0.0.1,localhost
ENV
  cat >"$run/home/.codex/config.toml" <<TOML
model = "fake-model"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
[model_providers.scripted]
name = "scripted"
base_url = "$proxy/p/codex/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
TOML
}

# A namespace with loopback alone; without one only the proxy setting shows what went outside.
isolated() {
  local bins=$run/bin name
  for name in claude codex opencode; do bins+=:$cache/cli/$name/node_modules/.bin; done
  local call=(env -i "PATH=$bins:$cache/python/bin:$PATH" "HOME=$run/home" "USER=$(id -un)"
    "LOGNAME=$(id -un)" LANG=C.UTF-8)
  if [ "${PEERS_REAL_SANDBOX:-}" = podman ] && [ "$(id -u)" != 0 ]; then
    # Podman has namespaces of its own user, and images below the home directory.
    printf '[storage]\ndriver = "%s"\nrootless_storage_path = "%s"\n' "$(podman info --format '{{.Store.GraphDriverName}}')" \
      "$(podman info --format '{{.Store.GraphRoot}}')" >"$run/storage.conf"
    say 'note: podman without root works in no network namespace of ours'
    "${call[@]}" "XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-}" "CONTAINERS_STORAGE_CONF=$run/storage.conf" "$@"
    return
  fi
  call+=(bash "$here/namespace.sh" "$@")
  if unshare -n true 2>/dev/null; then
    unshare -n "${call[@]}"
  elif unshare -rn true 2>/dev/null; then
    unshare -rn "${call[@]}"
  else
    say 'note: no network namespace can be made here; the proxy settings alone show what wants to go outside'
    "${call[@]}"
  fi
}

peers() {
  mkdir "$run/bin"
  if [ -z "${PEERS_REAL_BIN:-}" ]; then
    cargo build --quiet --locked --manifest-path "$root/Cargo.toml" -p peers-cli -p peers-ctl
  fi
  # Copies, so that a build in another terminal changes nothing here.
  local from=${PEERS_REAL_BIN:-${CARGO_TARGET_DIR:-$root/target}/debug/peers}
  cp "$from" "$(dirname "$from")/peers-ctl" "$run/bin/"
  "$run/bin/peers" --version
}

# The image of the containers, with both agents in the versions that are named above, and what the project needs.
in_image() {
  step 'image'
  CLIS='claude codex' PACKAGES='bash bubblewrap ca-certificates git procps python3' IMAGE=$image BASE=${PEERS_REAL_BASE:-} \
    PEERS=$run/bin/peers "$root/image/build" >"$run/image.txt" 2>&1 ||
    fail "the image is not built: $(tail -n 3 "$run/image.txt")"
  tail -n 1 "$run/image.txt"
  local there wanted="claude=$claude_version codex=$codex_version"
  there=$(podman image inspect --format '{{index .Labels "io.peers.clis"}}' "$image")
  [ "$there" = "$wanted" ] || fail "the image has $there, not $wanted"
}

# Two agents repair a project, until it is complete.
loop() {
  step 'project'
  [ -x "$cache/python/bin/python3" ] || python3 -m venv --without-pip "$cache/python"
  project

  step 'run'
  say 'The model is scripted and knows the answer (scenario.py); the dollars are what claude makes of its token'
  say 'counts. The agents, their tools, git, the project, its tests and peers are real.'
  home
  python3 "$here/scenario.py" "$work" >"$run/scenario.json"
  isolated bash "$here/inside.sh" "$here" "$run"

  step 'result'
  local passed=yes
  suite || passed=no
  say "tests: $(counts)"
  local led=
  if [ "${PEERS_REAL_LOGIN:-proxy}" = proxy ] && [ "${PEERS_REAL_SANDBOX:-}" != none ]; then led=1; fi
  PEERS_REAL_LED=$led PEERS_REAL_SANDBOX=${PEERS_REAL_SANDBOX:-} python3 -B "$here/verdict.py" "$run" || passed=no
  [ $passed = yes ] || fail "the run is not as it should be; everything is in $run"
}

# Each agent, each fault.
matrix() {
  step 'matrix'
  say 'The model is scripted and fails on purpose (cases.py). The agents, git and peers are real.'
  mkdir "$run/matrix"
  isolated python3 -B "$here/matrix.py" "$run/matrix" "$root/docs/agents.md" "$@" ||
    fail "not everything is as docs/agents.md says; everything is in $run/matrix"
}

main() {
  local part=${1:-}
  need
  mkdir -p "$cache/runs"
  # The newest four stay, and this one.
  find "$cache/runs" -mindepth 1 -maxdepth 1 -type d | sort -r | tail -n +5 | while read -r old; do rm -rf "$old"; done
  mkdir "$run"

  step 'agents'
  agent claude @anthropic-ai/claude-code "$claude_version"
  agent codex @openai/codex "$codex_version"
  [ "$part" = --loop ] || agent opencode opencode-ai "$opencode_version"

  step 'peers'
  peers
  if [ "${PEERS_REAL_SANDBOX:-}" = podman ]; then in_image; fi

  [ "$part" = --matrix ] || loop
  [ "$part" = --loop ] || matrix "${@:2}"
  say "passed; everything is in $run"
}

# Whatever way it ends, what was printed stays with the rest of the run.
ended() { if [ -d "$run" ]; then mv "$cache/transcript.$$" "$run/transcript.txt"; else rm -f "$cache/transcript.$$"; fi; }

case ${1:-} in
  '' | --matrix) ;;
  --loop) [ $# -eq 1 ] || fail '--loop takes no further arguments' ;;
  *) fail "$1 is not --loop or --matrix" ;;
esac

run=$cache/runs/$(date -u +%Y%m%dT%H%M%SZ)-$$
work=$run/project
readonly run work
mkdir -p "$cache"
trap ended EXIT
main "$@" 2>&1 | tee "$cache/transcript.$$"
