//! The modes that ship, from `modes/` at the top of the repository.

macro_rules! mode {
    ($name:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../modes/", $name, "/", $file)))),+]
    };
}

/// The files of each mode, by their paths in it.
pub(crate) const SHIPPED: &[&[(&str, &str)]] = &[
    mode!("audit":
        "mode.yaml",
        "goals.yaml",
        "prompts/bug-hunt-round-1-deep.md",
        "prompts/bug-hunt-round-2-cross-review.md",
        "prompts/tests-3-class-review.md",
    ),
    mode!("audit-deep":
        "mode.yaml",
        "goals.yaml",
        "prompts/api-drift-review.md",
        "prompts/critical-fix-review.md",
        "prompts/defer-discipline.md",
        "prompts/docs-sync-review.md",
        "prompts/honesty-self-check.md",
        "prompts/performance-review.md",
        "prompts/spec-conformance.md",
    ),
    mode!("describe":
        "mode.yaml",
        "goals.yaml",
        "prompts/describe-skeptic-pass.md",
        "prompts/describe-tradeoff-honesty.md",
    ),
    mode!("document":
        "mode.yaml",
        "goals.yaml",
        "prompts/architecture-cross-review.md",
        "prompts/summaries-cross-review.md",
    ),
    mode!("implement":
        "mode.yaml",
        "goals.yaml",
        "prompts/architecture-coherent.md",
        "prompts/confidence-calibration.md",
        "prompts/diff-vs-claim.md",
        "prompts/honesty-audit-extra.md",
        "prompts/inter-step-coherence.md",
        "prompts/min-impl-size-per-step-review.md",
        "prompts/no-commented-code-review.md",
        "prompts/no-mock-in-impl-review.md",
        "prompts/no-stub-returns-review.md",
        "prompts/phase-alignment.md",
        "prompts/phase-architecture.md",
        "prompts/phase-implementation.md",
        "prompts/phase-recon.md",
        "prompts/test-skeptic-review.md",
        "prompts/test-to-code-ratio-review.md",
        "prompts/weasel-scan.md",
    ),
    mode!("thorough":
        "mode.yaml",
        "goals.yaml",
        "prompts/aggressive-honesty.md",
        "prompts/skeptic-pass.md",
    ),
];
