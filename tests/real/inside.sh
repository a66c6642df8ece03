#!/usr/bin/env bash
# The part of the test that runs without a network: inside.sh TESTDIR RUNDIR.
# Called by run.sh with an environment of its own, in a namespace of its own where there is one.
set -euo pipefail
here=$1
run=$2
work=$run/project

python3 "$here/fake-model/server.py" --scenario "$run/scenario.json" --log "$run/requests.jsonl" >"$run/port" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  [ -s "$run/port" ] && break
  sleep 0.1
done
port=$(cat "$run/port")
find "$run/home" "$run/login" -type f -exec sed -i "s/@PORT@/$port/" {} +

# The operator's own environment. Of it the agents get their own names alone.
# shellcheck source=/dev/null
. "$run/login"
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
# claude refuses to work unattended as root unless it is told that this is a sandbox.
export IS_SANDBOX=1

cd "$work"
peers init
cp "$here/goals.yaml" .peers/goals.yaml
digest=$({ peers goals diff --json || true; } | sed -n 's/.*"digest": "\([0-9a-f]*\)".*/\1/p')
peers goals accept --note 'goals of the test' --widen "$digest"

code=0
timeout --foreground --kill-after=20 900 peers run 2>&1 >"$run/stdout.txt" | tee "$run/stderr.txt" || code=${PIPESTATUS[0]}
cat "$run/stdout.txt"
printf '%s\n' "$code" >"$run/exit-code"

peers status --json >"$run/status.json" || printf 'peers status: exit code %s\n' "$?"
peers state check >"$run/state-check.txt" 2>&1 && printf 'ok\n' >"$run/state-ok"
cat "$run/state-check.txt"
