# Every command a contributor needs. `just --list` shows them.

# A development chain: blocks are made as transactions come.
dev *ARGS:
    cargo run --release -p node-server -- dev {{ARGS}}

# Serve an imported chain.
run *ARGS:
    cargo run --release -p node-server -- run {{ARGS}}

# All tests but those that need the recorded test data.
test:
    cargo test --workspace

# All tests. The recorded test data is in ../shared, or in the folder in NODE_SHARED.
test-all:
    cargo test --workspace -- --include-ignored

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

# Write a chain on the development genesis: `just generate --blocks 2000 --output chain.rlp`.
generate *ARGS:
    cargo run --release -p node-tests --bin generate -- {{ARGS}}

# Criterion benchmarks, all or those whose name holds FILTER.
bench FILTER="":
    cargo bench -p node-tests -- {{FILTER}}

# Requests a second over HTTP, on a genesis file and a chain file or on the folder with dev20k: needs wrk and curl.
bench-http +PATHS:
    scripts/bench_http.sh {{PATHS}}

# Proofs, logs, storage and calls a second from folders, at the head and at old blocks, on two generated chains: needs wrk.
bench-archive *ARGS:
    scripts/bench_archive.py {{ARGS}}

# Time and memory of the import of dev20k, which is in FOLDER, by the server.
bench-import FOLDER:
    scripts/bench_import.sh {{FOLDER}}

# Compare the node with a model over random steps: `just model --steps 100000 --seed 1 --store`.
model *ARGS:
    cargo run --release -p node-tests --bin model -- {{ARGS}}

# Try the server against its own description: `just fuzz-openapi --short`.
fuzz-openapi *ARGS:
    scripts/fuzz_openapi.py {{ARGS}}

# Generate clients for TypeScript and Python, and call every operation through them: needs npm.
clients *ARGS:
    scripts/clients.py {{ARGS}}

# Write docs/openapi.json and the examples in it anew.
openapi:
    UPDATE_OPENAPI=1 cargo test --workspace --test openapi the_examples
    UPDATE_OPENAPI=1 cargo test --workspace --test openapi the_committed

# A living chain: transactions one after the other and many at a time, reads beside calls without end.
bench-dev *ARGS:
    scripts/bench_dev.py {{ARGS}}

# Open the pages of a server in headless Chromium: `just pages --bin target/release/node-server --screenshots shots`.
pages *ARGS:
    scripts/pages.py {{ARGS}}

# How long a backup takes and what requests feel of it: `just bench-backup genesis.json chain.rlp`. Needs wrk.
bench-backup *ARGS:
    scripts/bench_backup.py {{ARGS}}

# What the limits hold under load, and what all of the service costs: `just bench-limits cost`. Needs wrk.
bench-limits *ARGS:
    scripts/bench_limits.py {{ARGS}}

# Kill development chains at random moments under load: `just kill-dev --rounds 100`.
kill-dev *ARGS:
    scripts/kill_dev.py {{ARGS}}

# Kill imports and servers at random moments, and look whether anything is lost: `just kill-series --rounds 200`.
kill-series *ARGS:
    cargo build --release -p node-server -p node-tests
    scripts/kill_series.py {{ARGS}}

# Write the list of methods in docs/json-rpc.md anew.
rpc:
    UPDATE_DOCS=1 cargo test --workspace --lib documented

# Replay recorded exchanges of JSON-RPC: `just exchanges http://127.0.0.1:8545 FOLDER`.
exchanges URL FOLDER:
    cargo run --release -p node-tests --bin exchanges -- {{URL}} {{FOLDER}}

# The same chain on this node and on anvil, and all answers compared. Needs npm.
compare-anvil *ARGS:
    scripts/compare_anvil.py {{ARGS}}

# Requests per second of JSON-RPC, here and on anvil. Needs wrk and npm.
bench-rpc *ARGS:
    scripts/bench_rpc.py {{ARGS}}
