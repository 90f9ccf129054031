# Every target does its own set-up: a fresh machine needs Rust, make and a C compiler, and for all
# of `make test` Python with PyPI.

CARGO ?= cargo
POSTGRES := tests/with-postgres
# What the database is given for measurements; fsync stays on.
BENCH_POSTGRES := -c shared_buffers=1GB -c max_wal_size=4GB -c wal_compression=lz4
# Tests wait for something half of the time; each has connections to one server.
TEST_THREADS := $${RUST_TEST_THREADS:-$$(n=$$(( $$(getconf _NPROCESSORS_ONLN) * 2 )); echo $$(( n < 16 ? n : 16 )))}

# The host, as the tests build it.
TARGET = $$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
PROGRAM = "$(TARGET)/debug/railhead-under-test"

.PHONY: help demo test lint fuzz advisories bench pgo openapi wasm-target

help:
	@echo "make demo     build everything, start on SQLite under ./data, pay somebody, keep serving"
	@echo "make test     every check and test, on SQLite and PostgreSQL"
	@echo "make lint     format, clippy, dependencies"
	@echo "make fuzz     made-up input for whatever reads what strangers write, a minute for each reader, and 20,000 cases of each property (ONLY=bodies for one reader)"
	@echo "make advisories  known vulnerabilities of dependencies; needs cargo-deny and a network"
	@echo "make bench    print the performance tables (ONLY=\"postgres 'whole life'\" or QUICK=1 for parts; PAYOUTS=10000000 of 'many payouts'; OF=path of another railhead, for those parts that run a host)"
	@echo "make pgo      build a faster host by profile-guided optimisation, and say where it is; the better part of an hour"
	@echo "make openapi  write host/openapi.json anew"

demo: wasm-target
	$(CARGO) run --locked --release -p railhead --bin railhead -- demo

test: wasm-target lint
	@written=$$(mktemp -d) && trap 'rm -rf "$$written"' EXIT && set -x && \
	KEEP_WRITTEN=$$written RUST_BACKTRACE=0 \
		RUST_TEST_THREADS=$(TEST_THREADS) $(POSTGRES) $(CARGO) test --locked --workspace && \
	tests/iso20022/run "$$written"
	tests/nacha/run
	tests/schemathesis/run $(PROGRAM) --phases examples,coverage --seed 1

lint: wasm-target
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then \
		$(CARGO) deny --offline check licenses bans sources; \
	else \
		echo "cargo-deny is not installed: only tests/house looks at the dependencies"; \
	fi

# An input that fails is kept in tests/fuzz/corpus; faults at random and properties print their seed.
fuzz: wasm-target
	@[ -n "$(ONLY)" ] || { \
		seed=$${PROPTEST_RNG_SEED:-$$$$}; echo "properties: PROPTEST_RNG_SEED=$$seed"; \
		PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$${PROPTEST_CASES:-20000} RUST_BACKTRACE=0 \
			$(CARGO) test --locked --workspace --exclude railhead-tests --lib; }
	FUZZ_SECONDS=$${FUZZ_SECONDS:-60} RUST_BACKTRACE=0 \
		$(CARGO) test --locked -p railhead-tests --test fuzz -- --nocapture $(ONLY)
	RANDOM_FAULTS_SEED=$${RANDOM_FAULTS_SEED:-$$$$} RUST_BACKTRACE=0 \
		$(POSTGRES) $(CARGO) test --locked -p railhead-tests --test api -- --nocapture at_random random_faults
	$(CARGO) build --locked -p railhead-tests --bin railhead-under-test
	tests/schemathesis/run $(PROGRAM) --max-time $${FUZZ_SECONDS:-60}

advisories:
	@command -v cargo-deny >/dev/null || \
		{ echo "Please install cargo-deny: cargo install --locked cargo-deny" >&2; exit 1; }
	$(CARGO) deny check advisories

bench: wasm-target
	$(CARGO) build --locked --release -p railhead-tests --bins
	$(if $(OF),BENCH_OF="$(OF)") \
		TEST_POSTGRES_IN=disk TEST_POSTGRES_OPTIONS="$(BENCH_POSTGRES)" $(POSTGRES) \
		$(TARGET)/release/railhead-bench \
		$(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

pgo: wasm-target
	tests/bench/pgo "$(TARGET)"

openapi: wasm-target
	$(CARGO) run --locked -p railhead --bin railhead -- openapi > host/openapi.json.new
	mv host/openapi.json.new host/openapi.json

# The components are compiled for the sandbox. rustup knows where to get the target from.
wasm-target:
	@sysroot=$$(rustc --print sysroot) && \
	if [ ! -d "$$sysroot/lib/rustlib/wasm32-wasip2" ]; then \
		if command -v rustup >/dev/null; then \
			echo "Adding the target wasm32-wasip2"; rustup target add wasm32-wasip2; \
		else \
			echo "Rust's target wasm32-wasip2 is missing and there is no rustup to add it." >&2; \
			echo "Please install it (https://rustup.rs, then: rustup target add wasm32-wasip2)." >&2; \
			exit 1; \
		fi; \
	fi
