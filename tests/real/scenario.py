#!/usr/bin/env python3
"""Prints the scenario of the test: what the scripted model makes each agent do.

    scenario.py PROJECT > scenario.json

The model holds the answer: it knows the planted defect, the test that shows it and the fix.  What is
real is everything around it: the agents with their own tools, git, the project, and peers.

Each turn is chosen by what the prompt of peers says (`on`), so both peers can play every part and
the order is not fixed here: report with a failing test, fix, verify and review, be the skeptic.
"""
import json
import sys

BUG = "BUG-1"
REVIEW = "fix-is-sound"
SOURCE = "docutils/utils/__init__.py"
TEST = "test/test_utils/test__init__.py"
RUN_TESTS = "python3 -B %s 2>&1 | tail -n 12" % TEST
RUN_TABLES = "python3 -B test/test_parsers/test_rst/test_SimpleTableParser.py 2>&1 | tail -n 12"

# Which keys an agent finds where it works; their name does not stand in this text, nor in what the agent keeps of it.
LOOK = """\
k=scripted
found=$({ for e in /proc/[0-9]*/environ; do tr '\\0' '\\n' <"$e"; done
          grep -rhaE -D skip "$k-key-of" "$HOME" /etc /run /tmp .; } 2>/dev/null | grep -ac "$k-key-of")
echo "keys found: $found, in a container: $([ -e /run/peers/door ] && echo yes || echo no)\""""

# What stands in a prompt when a part is due. The words are those of the prompts of peers.
SKEPTIC_TURN = "# Skeptic turn: all gates are green"
TESTS_RED = "- `tests-pass`: fail"
UNRESOLVED = "- %s [high]" % BUG
AWAITS_VERIFICATION = "needs: fixed; awaits another peer's Bug-Verified"
REVIEW_ASKED = "- `%s`: " % REVIEW

TEST_BEFORE = "    def test_decode_path(self):\n"
TEST_AFTER = """\
    def test_column_indices(self):
        # A combining character shares the column of the character before it.
        self.assertEqual(utils.column_indices(''), [])
        self.assertEqual(utils.column_indices('de'), [0, 1])
        self.assertEqual(utils.column_indices('dE\\u0302'), [0, 1])
        self.assertEqual(utils.column_indices('A t\\u0306ab\\u0306le\\u0306'),
                         [0, 1, 2, 4, 5, 7, 8])

""" + TEST_BEFORE

FIX_BEFORE = """\
    combining = find_combining_chars(text)
    return [i for i, char in enumerate(text) if char not in combining]
"""
FIX_AFTER = """\
    combining = set(find_combining_chars(text))
    return [i for i in range(len(text)) if i not in combining]
"""


def edit(peer, project, path, before, after):
    """The calls by which the agent changes a file with its own editing tool."""
    if peer == "claude":
        whole = "%s/%s" % (project, path)
        return [{"tool": "Read", "input": {"file_path": whole}},
                {"tool": "Edit", "input": {"file_path": whole, "old_string": before,
                                           "new_string": after}}]
    old, new = before.splitlines(), after.splitlines()
    lines = ["-" + line for line in old] + ["+" + line for line in new]
    return ["apply_patch <<'PATCH'\n*** Begin Patch\n*** Update File: %s\n@@\n%s\n*** End Patch\nPATCH"
            % (path, "\n".join(lines))]


def commit(peer, subject, *paragraphs, trailers=(), handoff=None, flags="-a"):
    """A commit in the form that the prompts of peers ask for."""
    parts = [subject, *paragraphs]
    last = [*trailers, "Peer: " + peer]
    if handoff is not None:
        parts.append("## Self-Review\n" + handoff)
        last += ["Peer-Status: handoff", "Self-Review: pass"]
    parts.append("\n".join(last))
    return "git commit -q %s -F - <<'MESSAGE'\n%s\nMESSAGE" % (flags, "\n\n".join(parts))


def section(name, **fields):
    return "## %s\n%s" % (name, json.dumps(fields))


def report(peer, project):
    return {
        "name": "report",
        "on": {"prompt": [TESTS_RED], "without": [SKEPTIC_TURN, UNRESOLVED]},
        "say": "The suite is red. Looking for the cause before anything is changed.",
        "calls": [
            "git log --oneline | head -n 5; git status --short | head",
            RUN_TABLES,
            "grep -rn column_indices docutils | head; git log -n 1 --format='%h %an: %s' -- " + SOURCE,
            *edit(peer, project, TEST, TEST_BEFORE, TEST_AFTER),
            RUN_TESTS,
            commit(
                peer, "Show that column_indices() counts combining characters",
                "Simple tables with combining characters are cut at the wrong columns. The test goes to "
                "the function itself; the fix is left to another peer.",
                section("Bug-Report", id=BUG, severity="high",
                        title="column_indices() no longer skips combining characters",
                        location=SOURCE + ":707",
                        description="column_indices('dE\\u0302') gives [0, 1, 2] in place of [0, 1], so simple "
                                    "tables with combining characters are cut at the wrong columns."),
                trailers=["Bug-Report: " + BUG, "Bug-Reproduce: " + BUG]),
            commit(
                peer, "Answer the review: the defect is still there",
                section("Review", **{"pass": False}, checked=[SOURCE + ":707 column_indices"],
                        issues=["%s:707 %s is not fixed" % (SOURCE, BUG)], notes="nothing is fixed yet"),
                trailers=["Peer-Review-Of: " + REVIEW], flags="--allow-empty",
                handoff="Ran %s: test_column_indices fails, every other test of the file passes. Only this "
                        "test was added, no product code was touched. tests-pass stays red until %s is "
                        "fixed." % (TEST, BUG)),
        ],
        "text": "Filed %s with a test that fails because of it." % BUG,
    }


def fix(peer, project):
    return {
        "name": "fix",
        "on": {"prompt": [UNRESOLVED, "needs: unresolved"], "without": [SKEPTIC_TURN]},
        "say": "Fixing the cause that the report names.",
        "calls": [
            "git log -n 2 --format='%h %an: %s'; sed -n '/^def column_indices/,/^east_asian/p' " + SOURCE,
            RUN_TESTS,
            *edit(peer, project, SOURCE, FIX_BEFORE, FIX_AFTER),
            RUN_TESTS,
            RUN_TABLES,
            commit(
                peer, "Skip combining characters in column_indices() again",
                "The comprehension looked for characters in a list of indices, so it skipped nothing. It now "
                "looks for indices, in a set.",
                section("Bug-Resolution", resolves=BUG, status="fixed",
                        note="characters were looked for in a list of indices; indices are compared now"),
                trailers=["Bug-Resolves: " + BUG],
                handoff="Read the diff: one function, no other caller than the table parser's slices. Ran %s "
                        "and the simple table tests, both pass now and failed before." % TEST),
        ],
        "text": "Fixed %s." % BUG,
    }


def verify(peer, _project):
    return {
        "name": "verify",
        "on": {"prompt": [AWAITS_VERIFICATION], "without": [SKEPTIC_TURN]},
        "say": "Checking the fix of the other peer.",
        "calls": [
            "git show --stat --format='%h %an: %s' HEAD | cat; git diff HEAD~1 -- docutils | cat",
            RUN_TESTS,
            RUN_TABLES,
            "python3 -B -c \"from docutils.utils import column_indices as c; "
            "print(c('\\u0302'), c('a\\u0302\\u0306b'), c('x' * 3))\"",
            # Nobody verifies a fix of their own.
            "if [ \"$(git log -n 1 --format=%%an -- %s)\" = %s ]; then echo own fix; exit 0; fi\n%s" % (
                SOURCE, peer, commit(
                    peer, "Verify the fix of column_indices()",
                    "The reproducing test passes, and so does a text of combining characters alone.",
                    trailers=["Bug-Verified: " + BUG], flags="--allow-empty")),
            commit(
                peer, "Review the fix of column_indices()",
                section("Review", **{"pass": True}, checked=[
                    SOURCE + ":697 column_indices against its documentation",
                    TEST + ":276 test_column_indices: empty, plain, combining"],
                    issues=[], notes="the cause is fixed, and a test holds it"),
                trailers=["Peer-Review-Of: " + REVIEW], flags="--allow-empty",
                handoff="Changed nothing. Ran %s and the simple table tests on the fix, and tried texts that "
                        "begin with a combining character or hold two in a row." % TEST),
        ],
        "text": "The fix holds.",
    }


def review(peer, _project):
    return {
        "name": "review",
        "on": {"prompt": [REVIEW_ASKED], "without": [SKEPTIC_TURN, TESTS_RED, UNRESOLVED]},
        "say": "Answering the review.",
        "calls": [
            "git log --oneline | head -n 5",
            RUN_TESTS,
            commit(
                peer, "Review the fix of column_indices()",
                section("Review", **{"pass": True}, checked=[SOURCE + ":697 column_indices"], issues=[],
                        notes="the cause is fixed, and a test holds it"),
                trailers=["Peer-Review-Of: " + REVIEW], flags="--allow-empty",
                handoff="Changed nothing. Read column_indices() and its callers, ran %s: all pass." % TEST),
        ],
        "text": "Reviewed.",
    }


def skeptic(peer, _project):
    items = [
        "a text of combining characters alone: %s gives [] (tried)" % SOURCE,
        "two combining characters in a row: both are dropped (tried)",
        "an empty cell: column_indices('') gives [] (%s)" % TEST,
        "wide characters: docutils/parsers/rst/tableparser.py pads them before the cut, the fix is not involved",
        "slices past the end: get_2D_block() in docutils/statemachine.py catches the IndexError (read)",
        "time: the lookup goes through a set, so a long line stays linear (%s)" % SOURCE,
    ]
    return {
        "name": "skeptic",
        "on": {"prompt": [SKEPTIC_TURN]},
        "say": "Looking where nobody looked.",
        "calls": [
            "git log --oneline | head -n 6; git status --short | head",
            "grep -n 'column_indices' -r docutils | head; sed -n '/def get_2D_block/,/return block/p' "
            "docutils/statemachine.py",
            "grep -n 'pad_double_width' -r docutils | head",
            "python3 -B -c \"from docutils.utils import column_indices as c; "
            "print(c('\\u0302'), c(''), len(c('e\\u0302' * 20000)))\"",
            commit(
                peer, "Look for what the gates miss",
                "## Skeptic\n" + "\n".join("- " + item for item in items),
                trailers=["Skeptic: clean"], flags="--allow-empty",
                handoff="Changed nothing. Read the callers of column_indices() and fed it odd texts by hand; "
                        "found nothing that blocks."),
        ],
        "text": "Nothing found.",
    }


def main():
    project = sys.argv[1]
    parts = [skeptic, verify, fix, report, review]
    turns = {peer: {"turns": [part(peer, project) for part in parts]} for peer in ("claude", "codex")}
    for turn in (turn for peer in turns.values() for turn in peer["turns"]):
        turn["calls"].insert(0, LOOK)
    json.dump({"peers": turns}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
