# Short names for the usual commands. The checks themselves are in .ci/run and xtask.
.PHONY: test lint demo test-real ci

test: ## every test of the workspace
	cargo test --workspace --locked

lint: ## what can be said without running anything
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy

demo: ## the whole loop on a sample project, without account or network
	cargo run -p peers-cli -- demo

test-real: ## the released claude, codex and opencode on a real project and through every fault: needs node, npm, python3 and one download; no account
	tests/real/run.sh

ci: ## everything that a change must pass
	.ci/run
