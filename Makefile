# pathcast: `make demo` and `make test` do their whole set-up. What they install is said by scripts/setup.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUST := $(shell git ls-files 'crates/*' Cargo.toml Cargo.lock 2>/dev/null)
export PYTHONDONTWRITEBYTECODE ?=

help:
	@echo 'make demo       forecast and send over two lines: emulated ones with the real kernel (root), else simulated ones'
	@echo 'make test       lint, unit, property, privileged and command-line tests'
	@echo 'make evidence   the slow experiments whose numbers stand in docs/'
	@echo 'make soak       the tests 20 times, half of them on a busy machine; continues where it was'
	@echo 'make release    wheel, sdist, Debian packages and the far end in one file: made twice, compared, installed and tried'
	@echo 'make bench      speed, in ratios, against named peers'
	@echo 'make build      the Rust extension and the `pathcast` command into $(VENV)'
	@echo 'make fmt        format Rust and Python'

$(STAMP): requirements.lock scripts/setup
	@scripts/setup $(VENV)
	@touch $@

# the controllers of one's own, and what stands beside them: written where they are others than those of the last build
OWN := $(VENV)/.controllers
$(OWN): $(STAMP) always
	@printf '%s\n' "$$PATHCAST_CONTROLLERS" | tr : '\n' | while read -r header; do \
	  [ -z "$$header" ] || { echo "$$header"; cat "$$(dirname "$$header")"/*.h 2>/dev/null | cksum; }; \
	done >$@.new; if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

build: $(STAMP) $(VENV)/.built
$(VENV)/.built: $(STAMP) $(OWN) $(RUST) pyproject.toml
	@echo 'building the extension (release)'
	@$(COMPILE_TESTS) >/dev/null 2>&1 & env -u CONDA_PREFIX VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH="$(CURDIR)/$(BIN):$$PATH" \
	  $(BIN)/maturin develop --release --locked --quiet; status=$$?; wait; exit $$status
	@touch $@

# emulated links need root; whoever names a world in ARGS gets that one
demo: build
	@world=; if [ -z '$(findstring --world,$(ARGS))' ] && [ "$$(id -u)" -ne 0 ]; then \
	  echo 'make demo: not root, so in the simulator; on emulated paths with the real kernel: sudo make demo' >&2; \
	  world='--world sim'; \
	fi; exec $(BIN)/pathcast demo $$world $(ARGS)

# compiled beside the extension, as both end with crates that wait for each other; what fails there is told by the test itself
test: export COMPILE_TESTS := cargo test --quiet --workspace --locked --no-run
test: build
	@scripts/test $(BIN)

evidence: build
	@scripts/evidence $(BIN)

soak: build
	@scripts/soak $(BIN) $(ARGS)

release: build
	@scripts/release $(BIN)

bench: build
	@scripts/bench $(BIN)

fmt: $(STAMP)
	cargo fmt --all
	$(BIN)/ruff format python tests benches experiments examples
	$(BIN)/ruff check --fix python tests benches experiments examples

lock:
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --extra dev --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --no-annotate --python-version 3.11 pyproject.toml -o requirements.lock

clean:
	rm -rf target $(VENV) out

.PHONY: help always build demo test evidence soak release bench fmt lock clean
