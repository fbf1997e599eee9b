# Every command a contributor needs. `just --list` shows them.

# Start the server on the built-in development genesis.
run *ARGS:
    cargo run --release -p node-server -- run {{ARGS}}

# All tests.
test:
    cargo test --workspace

# What CI checks before it runs tests.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
    scripts/check_layers.py
    cargo deny --offline check licenses bans sources

# Ethereum's block tests: files or folders of the BlockchainTests format.
blocktest +PATHS:
    cargo run --release -p node-tests --bin blocktest -- {{PATHS}}

# Criterion benchmarks, all or those whose name holds FILTER.
bench FILTER="":
    cargo bench -p node-tests -- {{FILTER}}

# Requests a second over HTTP, on a chain of your own: needs wrk.
bench-http GENESIS CHAIN:
    scripts/bench_http.sh {{GENESIS}} {{CHAIN}}
