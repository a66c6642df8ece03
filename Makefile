# Short names for the usual commands. The checks themselves are in .ci/run and xtask.
.PHONY: test lint demo docs-shots test-real image test-podman ci

test: ## every test of the workspace
	cargo test --workspace --locked

lint: ## what can be said without running anything
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy

demo: ## the whole loop on a sample project, without account or network
	cargo run -p peers-cli -- demo

docs-shots: ## the pictures of docs/cockpit.md, drawn anew from the program
	cargo xtask docs-shots

test-real: ## the released claude, codex and opencode on a real project and through every fault: needs node, npm, python3 and one download; no account
	tests/real/run.sh

image: ## the image of the backend podman: needs podman, and a network for packages and command lines (image/build)
	image/build

test-podman: ## agents and gates in containers, as root and as a user: root on a Debian, with its package archive
	tests/podman/run

ci: ## everything that a change must pass
	.ci/run
