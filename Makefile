# `make demo` installs everything and fixes bugs in the sample repositories; `make test` runs all that CI runs.
.PHONY: demo test setup build tools lint models bench-engine bench-lsp bench-repair

CARGO_FLAGS := --release --locked
MODEL := qwen2.5-coder-1.5b
# The models that the tests load.
TEST_MODELS := smollm2-135m qwen2.5-coder-0.5b $(MODEL)
TADPOLE = cargo run --quiet $(CARGO_FLAGS) --package server --

demo: build tools
	$(TADPOLE) models pull $(MODEL)
	cargo run --quiet $(CARGO_FLAGS) --package tests --bin demo

test: lint models
	cargo test $(CARGO_FLAGS) --workspace --exclude tests
	# One at a time: each has an engine of its own, which takes every core.
	RUST_TEST_THREADS=1 cargo test $(CARGO_FLAGS) --package tests

setup:
	.ci/setup

build: setup
	cargo build $(CARGO_FLAGS) --package server

tools: setup
	.ci/tools

lint: setup
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings

models: build tools
	for model in $(TEST_MODELS); do $(TADPOLE) models pull $$model || exit 1; done

bench-engine: models
	cargo bench --locked --package server --bench engine

bench-lsp bench-repair: models
	cargo run $(CARGO_FLAGS) --package tests --bin $@
