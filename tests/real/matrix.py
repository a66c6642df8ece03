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
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import table  # noqa: E402
from agents import AGENTS  # noqa: E402
from cases import cases_of  # noqa: E402
from facts import Facts  # noqa: E402
from run_case import Run, stop_all  # noqa: E402


def play(top, agent, case):
    """Facts, or none, and what is wrong."""
    try:
        run = Run(top, agent, case)
        run.play()
        facts = Facts(run)
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError) as error:
        return None, ["the case could not be run: %r" % error]
    return (facts, facts.complaints) if facts.ticks and facts.exit else (None, facts.complaints)


def report(agent, case, facts, complaints):
    print("%s  %s/%s" % ("FAILED" if complaints else "ok    ", agent, case.name))
    if facts is not None:
        print("        %s\n        %s" % (" | ".join(facts.row()[1:]), facts.story()))
    for complaint in complaints:
        print("        %s" % complaint)
    sys.stdout.flush()


def wanted(only):
    """Agents and cases in the order of the table; all of them without `only`."""
    for agent in AGENTS:
        for case in cases_of(agent):
            if not only or agent in only or "%s/%s" % (agent, case.name) in only:
                yield agent, case


def give_up(number, _frame):
    stop_all()
    os._exit(128 + number)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    args.add_argument("run", type=Path)
    args.add_argument("document", type=Path)
    args.add_argument("--only", action="append", default=[], metavar="AGENT[/CASE]")
    args.add_argument("--write", action="store_true", help="put what was measured into the table")
    args.add_argument("--jobs", type=int, default=3, help="runs at a time")
    args = args.parse_args()
    chosen = list(wanted(args.only))
    if not chosen:
        sys.exit("error: no such agent or case: %s" % ", ".join(args.only))
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, give_up)

    failed, rows = 0, {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        plays = {pool.submit(play, args.run, agent, case): (agent, case) for agent, case in chosen}
        for done in concurrent.futures.as_completed(plays):
            (agent, case), (facts, complaints) = plays[done], done.result()
            report(agent, case, facts, complaints)
            failed += bool(complaints)
            if facts is not None:
                rows[agent, case.title] = facts.row()
    if args.write:
        table.write(args.document, [(agent, case.title) for agent, case in wanted([])], rows)
    else:
        for difference in table.differences(args.document, rows):
            failed += 1
            print("FAILED  %s" % difference)
    print("\n%s" % ("all as documented" if not failed else "%d differences from what is documented" % failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
