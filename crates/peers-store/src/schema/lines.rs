//! The lines of the journal and of its mirror.

use serde_json::{Value, json};

use super::{Field, finish, object};

/// How a process ended, in one word.
pub(super) const CLASSIFICATION: &str = "success|process-fail|api-error|rate-limited|usage-cap|idle-timeout|absolute-timeout|budget-kill|interrupted";

/// What a turn meant to the loop.
pub(super) const OUTCOME: &str =
    "handoff|no-handoff|corrected|peer-failed|rate-limited|usage-capped|blocked|needs-operator|interrupted";

/// What every line has.
const ENVELOPE: &[Field] = &[
    ("v", "int", "Format version, 1."),
    ("seq", "int", "Position, from 1, without gaps."),
    ("ts", "time", "When it was written."),
    ("run_id", "run?", "The run that wrote it; null for an act of the operator while no loop ran."),
    ("prev", "sha256", "SHA-256 of the line before; empty for the first."),
];

/// The fields of each record.
const RECORDS: &[(&str, &str, &[Field])] = &[
    (
        "run-started",
        "A loop took the repository over.",
        &[
            ("pid", "int", "Its process."),
            ("version", "text", "Version of the program."),
            ("branch", "text?", "Where agents work."),
            ("head", "hash", "HEAD at the start."),
            ("operator?", "[hash]", "Commits that appeared while no loop ran."),
            ("digests", "#digests", "What was accepted."),
            ("sandbox", "text", "Backend and tier of the sandbox."),
            ("max_ticks?", "int", "Tick cap of this process."),
            ("rules", "#rules", "What folding needs, frozen."),
            ("torn?", "int", "Bytes of a torn line that were cut off and kept aside."),
        ],
    ),
    (
        "tick-started",
        "A turn begins.",
        &[
            ("tick", "int", "Its number."),
            ("peer", "text", "Who has the turn."),
            ("head_before", "hash", "HEAD before."),
            ("tree_before", "hash", "Tree of HEAD before."),
            ("content_before?", "hash", "Tree of the work tree before, `.peers/` left out."),
            ("branch", "text?", "Branch before; null when HEAD is detached."),
            ("prompt_sha256", "sha256", "SHA-256 of the prompt."),
            ("prompt_bytes", "int", "Size of the prompt."),
            ("warnings_taken", "int", "How many queued warnings the prompt took."),
            ("skeptic", "bool", "This is a skeptic turn."),
            ("inbox?", "{hash}", "Bookmarks after this prompt: sender to newest commit shown."),
            ("messages?", "[text]", "Messages shown."),
            ("asked?", "[text]", "Soft goals whose review was asked for."),
            ("outside?", "bool", "The turn ran outside of the loop and is over."),
            ("course?", "any", "Its phase, step and role, and how the gates stood."),
        ],
    ),
    (
        "peer-spawned",
        "The peer's process runs.",
        &[
            ("tick", "int", "The open tick."),
            ("pid", "int", "Its process."),
            ("start_time", "int", "Kernel clock ticks since boot."),
            ("boot_id", "text", "Which boot."),
        ],
    ),
    (
        "turn-ended",
        "The peer is done; gates run before the tick is closed.",
        &[
            ("tick", "int", "The open tick."),
            ("head", "hash", "HEAD as the peer left it."),
            ("exit", "#exit", "How its process ended."),
        ],
    ),
    (
        "correction-planned",
        "Something that the turn did will be undone.",
        &[
            ("tick", "int", "The open tick."),
            ("kind", "revert|restore-history|restore-branch|reset", "What will be done."),
            ("from", "hash", "The commit found."),
            ("to", "hash", "The commit to go back to."),
            ("branch", "text?", "The branch concerned."),
            ("reason", "text", "Why."),
        ],
    ),
    ("tick", "A turn ended.", TICK),
    (
        "gates",
        "Verdicts that arrived between ticks.",
        &[
            ("iteration", "int", "Ticks completed when they ran."),
            ("took_ms", "int", "Wall time."),
            ("verdicts", "[#judged]", "The verdicts."),
            ("green?", "int", "How many gates are green after them."),
            ("of?", "int", "How many gates there are."),
        ],
    ),
    (
        "proof",
        "The proof run.",
        &[
            ("at", "#tree", "At which head and tree."),
            ("verdicts", "[#judged]", "The verdicts."),
            ("exempt?", "[text]", "Gates that the operator exempted."),
            ("passed", "bool", "Whether all were green."),
            ("took_ms", "int", "Wall time."),
        ],
    ),
    (
        "trial",
        "Gates were tried in a clean checkout before a turn was paid for.",
        &[
            ("at", "#tree", "At which head and tree."),
            ("asked", "[text]", "The gates that were asked."),
            ("verdicts", "[#judged]", "What they answered, as far as they did."),
            ("only_here?", "[text]", "Gates that are green in the work tree and not there."),
            ("cut?", "bool", "It was cut off before all had answered."),
            ("took_ms", "int", "Wall time."),
        ],
    ),
    (
        "cooling",
        "A peer waits for its service.",
        &[
            ("peer", "text", "Who waits."),
            ("until", "time", "Until when."),
            ("streak", "int", "How many refusals in a row."),
            ("cause?", "rate-limit|usage-cap", "Why."),
            ("since?", "time", "Since when it is refused."),
        ],
    ),
    (
        "commits-seen",
        "Commits appeared between ticks.",
        &[
            ("head", "hash", "HEAD with them."),
            ("commits", "[hash]", "Oldest first."),
            ("while_gates?", "bool", "Nobody's: gates ran, a run broke off, or agents may work unwatched."),
            ("weakens?", "bool", "They weaken tests, and agents may have made them unwatched."),
        ],
    ),
    (
        "operator",
        "The operator did something.",
        &[
            (
                "op",
                "accepted|budget-reset|budget-set|resumed|ack|store-attached|undone|landed|moving|moved|contract",
                "What; the other fields depend on it.",
            ),
            ("by", "text", "Login name."),
            ("old?", "#digests", "The digests before."),
            ("new?", "#digests", "The digests now."),
            ("note?", "text?", "Why it was accepted."),
            ("rules?", "#rules", "The new rules, when a running loop took them over."),
            ("target?", "#ack", "What was acknowledged."),
            ("reason?", "text", "Why it was acknowledged."),
            ("old_path?", "text", "The path that the store knew."),
            ("run?", "run", "Which run."),
            ("from?", "hash", "The tip that was left."),
            ("to?", "hash", "The tip now."),
            ("salvage?", "text", "Where the old tip is kept."),
            ("into?", "text", "The branch that it was landed into."),
            ("commit?", "hash", "The new tip."),
            ("kind?", "land|undo", "On whose behalf a branch is moved."),
            ("branch?", "text", "The branch that is moved."),
            ("workdir?", "text?", "The work tree that has it checked out."),
            ("contract?", "init|amend|ack-block|unblock", "What became of frozen contracts."),
            ("change?", "{text}", "What changed of them, by name."),
            ("state?", "text", "Digest of the pins that hold since."),
            ("caps?", "[#cap]", "Caps that were set over those of the configuration."),
            ("until?", "time", "They hold before this instant."),
        ],
    ),
    (
        "mirror-restored",
        "The mirror differed and was rewritten.",
        &[
            ("tick?", "int", "The tick in which it was changed; absent when found at a start."),
            ("what", "text", "What differed."),
        ],
    ),
    (
        "hook-failed",
        "A hook of the operator failed; at most one for each hook in a tick, and one at the end of the run.",
        &[
            ("tick", "int", "The tick that the hook was told."),
            ("hook", "pre_turn|post_turn|pre_gate|post_gate|converge|halt", "Which."),
            ("what", "text", "Which program, and what became of it. Untrusted text in parts."),
            (
                "times?",
                "int",
                "How many of its commands failed since the last such record of it; 1 where it is absent.",
            ),
        ],
    ),
    (
        "checkpoint",
        "First record of a new segment.",
        &[("state", "any", "The whole state, in the program's own shape.")],
    ),
    (
        "exit",
        "The loop stopped.",
        &[
            ("reason", "text", "A stop reason."),
            ("detail?", "text", "For people."),
            ("ticks_in_run", "int", "Ticks of this process."),
            ("signal?", "code", "The signal, when it was interrupted."),
            ("head", "hash?", "HEAD."),
            ("proof?", "#proof", "What `complete` rests on."),
            ("in_gates?", "bool", "Gates were running."),
        ],
    ),
];

const TICK: &[Field] = &[
    ("iteration", "int", "Its number."),
    ("peer", "text", "Whose turn it was."),
    ("tool", "text", "Its tool."),
    ("role", "default|recovery|witness|debater", "Its part."),
    ("outcome", OUTCOME, "What it meant to the loop."),
    ("success", "bool", "A handoff that stood."),
    ("classification", CLASSIFICATION, "How the process ended."),
    ("soft_fail_reason?", "text", "Why it was no success."),
    ("exit", "#exit", "Facts about the process."),
    ("recovered", "bool", "Closed by a later run, after a crash."),
    ("outside?", "bool", "The turn ran outside of the loop; its commits are those that name the peer."),
    ("rescued", "bool", "The handoff counts although the process was ended by us or failed after it."),
    ("started_at", "time", "When the turn began."),
    ("gate_ms", "int", "Time of its gates."),
    ("head_before", "hash", "HEAD before."),
    ("head_after", "hash", "HEAD after everything, our own corrections included."),
    ("tree_after", "hash", "Tree of HEAD after."),
    ("content_after?", "hash", "Tree of the work tree after, `.peers/` left out."),
    ("branch", "text?", "Branch after."),
    ("commits?", "[hash]", "Made by the peer in this turn, oldest first."),
    ("foreign?", "[hash]", "Known before it."),
    ("own?", "[hash]", "Made by the loop."),
    ("corrected?", "revert|restore-history|restore-branch|reset", "What was undone."),
    ("salvage?", "text", "Where the undone work is kept."),
    ("dirty", "bool", "Uncommitted changes were left."),
    ("product_change", "bool", "Files outside of documentation changed."),
    ("tree_changed", "bool", "The tree of the head changed at all."),
    ("evidence", "bool", "It left something that counts."),
    ("blocking_report", "bool", "A blocking report, or a flag that a fix is weak, was filed."),
    ("warnings_emitted?", "[text]", "For the next prompt."),
    ("reviews?", "[#review]", "Accepted reviews."),
    ("soft_reviews_seen", "int", "Review claims seen."),
    ("soft_reviews_rejected", "int", "Review claims rejected."),
    ("scopes?", "{#move}", "By soft goal: the digest of its content before and after."),
    ("skeptic?", "clean|found|missing", "The skeptic's answer."),
    ("blocked_on?", "text", "What it says is in its way. Untrusted text."),
    (
        "bugs_closed?",
        "int",
        "Closed bugs at its end that blocked, and in which another than who closed them had a part.",
    ),
    ("bugs_reported?", "int", "Blocking bugs that were ever reported, as of its end."),
    ("prewarned", "bool", "It stands with a warning about tests."),
    ("misnamed?", "bool", "A commit of it named another peer in `Peer:`, or none where it handed over."),
    ("justification?", "text", "The reason that was given for tests alone."),
    ("verdicts?", "[#judged]", "Gates that ran again after the handoff."),
    ("git_tampered?", "[text]", "Guarded files of `.git` that were restored."),
    ("published?", "[text]", "Messages that were published."),
    ("course?", "any", "What it brought to its phase or step."),
    ("prompt_bytes", "int", "Size of the prompt."),
    ("usd_warned?", "money", "The soft money cap about which it warned."),
    ("gates?", "{text}", "State of every gate after the turn."),
    ("spent_tokens_total", "int", "All tokens so far."),
    ("spent_usd_total", "money", "All money so far."),
    ("peer_state_after", "text", "The peer's standing after the turn."),
];

const CAPS: &str = "max_iterations|max_runtime_s|max_wall_s|max_consecutive_failures|max_tokens|max_usd";

#[expect(clippy::too_many_lines, reason = "a list, entry by entry")]
fn definitions() -> Value {
    json!({
        "digests": object(&[("goals", "sha256", "goals.yaml."), ("config", "sha256", "config.yaml.")]),
        "rules": object(&[
            ("peers", "[#peer_rule]", "The peers in their order."),
            ("max_retries", "int", "Failed attempts before the turn passes on."),
            ("recovery_interval", "int", "Ticks until a degraded peer gets one recovery turn."),
            ("gates", "[#gate_rule]", "The gates."),
            ("soft", "[#soft_rule]", "The soft goals."),
            ("continue_without_peer", "bool", "Go on without a peer that needs its operator."),
            ("skeptic_rounds", "int", "Skeptic rounds that must be clean; 0 = no skeptic."),
            ("skeptic_attempts", "int", "Attempts before the loop is stuck."),
            ("unwatched?", "bool", "The driver is `hooks` or `sessions`: agents may work while no turn runs."),
            ("dry_run", "bool", "Nothing of a tick stays."),
        ]),
        "peer_rule": object(&[
            ("name", "text", "Its name."),
            ("tool", "text", "Its tool."),
            ("role", "default|recovery|witness|debater", "Its part."),
        ]),
        "gate_rule": object(&[
            ("id", "text", "Its id."),
            ("tree", "text", "Where it runs."),
            ("reads_history", "bool", "Its verdict belongs to the head, not to the tree alone."),
            ("shipped", "bool", "One of those that `peers init` ships."),
            ("digest", "text", "Of its definition."),
            ("expensive?", "bool", "It may run beside a confined peer."),
            ("group?", "text", "Under what views show it."),
            ("weight?", "int", "How much it counts; 1 without it."),
        ]),
        "soft_rule": object(&[
            ("id", "text", "Its id."),
            ("rule", "any", "When it is green."),
            ("every", "int", "Ask at most every so many ticks."),
            ("check?", "text", "Digest of the check whose findings its reviewers are shown."),
            ("needs?", "[text]", "Goals that must be green before it is asked for."),
        ]),
        "tree": object(&[("head", "hash", "The commit."), ("tree", "hash", "The tree.")]),
        "proof": object(&[
            ("tree", "hash", "The tree that was proved."),
            ("exempt", "[text]", "Gates that the operator exempted."),
        ]),
        "judged": object(&[
            ("goal", "text", "Which gate."),
            ("at", "#tree", "What the verdict is about."),
            ("place", "live|gate-tree|pristine", "Where it ran."),
            (
                "state",
                "pass|fail|timeout|error|skipped",
                "`error`: it could not be judged. `skipped`: a gate that it needs is not green.",
            ),
            ("diagnostic?", "text", "Except for `pass`. Untrusted text."),
            ("attempts", "int", "How often it was tried."),
            ("duration_ms", "int", "Of all attempts together."),
            ("leaked?", "int", "Processes that outlived it and were ended."),
            ("exit_code?", "int", "Of the last attempt."),
            ("signal?", "int", "That ended the last attempt."),
            ("cached?", "bool", "It did not run: a kept green answer was taken."),
            ("setup_failed?", "bool", "It did not run: `setup` failed in its tree."),
            ("manifests?", "sha256", "Digest of the manifests and lock files of that commit."),
        ]),
        "review": object(&[
            ("goal", "text", "Which soft goal."),
            ("pass", "bool", "The answer."),
            ("sha", "hash", "The commit that holds it."),
            ("notes?", "text", "Untrusted text."),
        ]),
        "move": object(&[("before", "text", "Digest before."), ("after", "text", "Digest after.")]),
        "cap": object(&[("cap", CAPS, "Which."), ("value", "int", "Money in millionths of a dollar.")]),
        "ack": object(&[("kind", "bug|concern|weakening|blocked", "Of what kind."), ("id", "any", "Which.")]),
        "usage": object(&[("tokens", "int?", "All, or not known."), ("usd", "money?", "Cost, or not known.")]),
        "matched": object(&[
            ("pattern", "text", "The pattern, or the name of the structured field."),
            ("key?", "text", "The key of config.yaml that has the pattern, with its index from 0."),
            ("snippet", "text", "What matched. Untrusted text."),
            ("source", "text", "Where it was seen."),
        ]),
        "exit": object(&[
            ("class", "spawn-fail|ok|nonzero|signal|idle|absolute|pattern|hopeless|budget|interrupted", "How it ended."),
            ("api", "none|transient|usage-cap|auth|quota|other", "What its service said."),
            ("code", "code?", "Exit code, when it exited by itself."),
            ("signal", "code?", "Signal, when it died of one."),
            ("duration_ms", "int", "From its start to the end of the teardown."),
            ("usage", "#usage", "What it used."),
            ("model?", "text", "The model that the tool says it used."),
            ("matched?", "#matched", "What matched."),
            ("retry_after_s?", "int", "Seconds after which the service wants to be asked again."),
            ("resets_at?", "time", "When the subscription's window opens again."),
            ("at_least?", "bool", "The usage is a lower bound."),
            ("session_signs?", "int", "Times that a session file showed it alive."),
            ("unfinished_tool?", "text", "The tool call that never came back."),
            ("remarks?", "[text]", "What is worth knowing of how it ran. Untrusted text in parts."),
            ("stdout_tail", "text", "Untrusted text."),
            ("stderr_tail", "text", "Untrusted text."),
            ("truncated", "bool", "Output was longer than what is kept."),
            ("bytes_out", "int", "Bytes on standard output."),
            ("bytes_err", "int", "Bytes on standard error."),
            ("leaked", "int", "Processes that it left behind and that were ended."),
            ("survivors?", "[int]", "Processes that could not be ended."),
            ("redactions", "int", "Secrets that were hidden in its output."),
        ]),
    })
}

pub(super) fn schema(id: &str) -> Value {
    let one = |(event, about, fields): &(&str, &str, &[Field])| {
        let mut all = object(&[ENVELOPE, fields].concat());
        if let Some(all) = all.as_object_mut() {
            all.insert("title".to_owned(), json!(event));
            all.insert("description".to_owned(), json!(about));
        }
        if let Some(properties) = all.pointer_mut("/properties").and_then(Value::as_object_mut) {
            properties.insert("event".to_owned(), json!({"const": event, "description": "Which record."}));
        }
        if let Some(required) = all.pointer_mut("/required").and_then(Value::as_array_mut) {
            required.push(json!("event"));
        }
        all
    };
    let mut out = json!({"oneOf": RECORDS.iter().map(one).collect::<Vec<_>>()});
    let about = "One line of the journal and of its mirror (.peers/log/runs.jsonl).";
    finish(&mut out, id, "A line of runs.jsonl of peers", about, definitions());
    out
}
