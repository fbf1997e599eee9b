# Every command a contributor needs. `just --list` shows them.

# Run a development chain: transactions are mined as they arrive.
dev *ARGS:
    cargo run --release -p node-server -- dev {{ARGS}}

# Serve an imported chain.
run *ARGS:
    cargo run --release -p node-server -- run {{ARGS}}

# Run all tests but those that need the recorded test data.
test:
    cargo test --workspace

# Run all tests. The recorded test data is in ../shared, or in the folder in NODE_SHARED.
test-all:
    cargo test --workspace -- --include-ignored

# Format, lints, docs, layers, licences: what CI checks before it runs tests, except advisories.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
    scripts/check_layers.py
    scripts/embedding.py
    cargo deny --offline check licenses bans sources

# Run Ethereum's block tests: files or folders in BlockchainTests format.
blocktest +PATHS:
    cargo run --release -p node-tests --bin blocktest -- {{PATHS}}

# Generate a chain on the development genesis: `just generate --blocks 2000 --output chain.rlp`.
generate *ARGS:
    cargo run --release -p node-tests --bin generate -- {{ARGS}}

# Run the Criterion benchmarks, all or those whose name contains FILTER.
bench FILTER="":
    cargo bench -p node-tests -- {{FILTER}}

# Measure light reads over HTTP/1.1, pipelined, and over HTTP/2. Needs wrk.
bench-http *OPTIONS:
    scripts/bench_http.py {{OPTIONS}}

# Measure proofs, logs, storage reads and calls from folders, at the head and at old blocks. Needs wrk.
bench-archive *ARGS:
    scripts/bench_archive.py {{ARGS}}

# Measure what a block costs as a folder grows: imports of two lengths, proofs at random heights. Needs wrk.
bench-growth *ARGS:
    scripts/bench_growth.py {{ARGS}}

# Compare two builds of the server, requests per second side by side. Needs wrk.
bench-versions BEFORE AFTER *ARGS:
    scripts/bench_versions.py {{BEFORE}} {{AFTER}} {{ARGS}}

# Measure time and memory of an import of dev20k, which is in FOLDER, by the server.
bench-import FOLDER:
    scripts/bench_import.sh {{FOLDER}}

# Compare the node with a model over random steps: `just model --steps 100000 --seed 1 --store`.
model *ARGS:
    cargo run --release -p node-tests --bin model -- {{ARGS}}

# Test the server against its OpenAPI document: `just fuzz-openapi --short`.
fuzz-openapi *ARGS:
    scripts/fuzz_openapi.py {{ARGS}}

# Generate clients for TypeScript and Python, and call every operation through them. Needs npm.
clients *ARGS:
    scripts/clients.py {{ARGS}}

# Update docs/openapi.json and its examples.
openapi:
    UPDATE_OPENAPI=1 cargo test --workspace --test openapi the_examples
    UPDATE_OPENAPI=1 cargo test --workspace --test openapi the_committed

# Compare how common tools get along with a development chain and with anvil: `just compatibility --write`. Needs npm.
compatibility *ARGS:
    scripts/compatibility.py {{ARGS}}

# Measure a development chain: sequential and concurrent transactions, reads during endless calls.
bench-dev *ARGS:
    scripts/bench_dev.py {{ARGS}}

# Test the HTML pages in headless Chromium: `just pages --bin target/release/ethnode --screenshots shots`.
pages *ARGS:
    scripts/pages.py {{ARGS}}

# Measure backups and their effect on requests: `just bench-backup genesis.json chain.rlp`. Needs wrk.
bench-backup *ARGS:
    scripts/bench_backup.py {{ARGS}}

# Check the limits under load and measure the cost of features: `just bench-limits cost`. Needs wrk.
bench-limits *ARGS:
    scripts/bench_limits.py {{ARGS}}

# Kill development chains under load at random moments: `just kill-dev --rounds 100`.
kill-dev *ARGS:
    scripts/kill_dev.py {{ARGS}}

# Kill imports and servers at random moments, and check that nothing is lost: `just kill-series --rounds 200`.
kill-series *ARGS:
    cargo build --release -p node-server -p node-tests
    scripts/kill_series.py {{ARGS}}

# Fuzz decoders and interfaces: `just fuzz --seconds 60 transaction block`.
fuzz *ARGS:
    cargo build --release --all-features -p node-server
    cargo run --release --all-features -p node-tests --bin fuzz -- {{ARGS}}

# Put a development chain under a mixed load: `just mixed-load --minutes 60`.
mixed-load *ARGS:
    scripts/mixed_load.py {{ARGS}}

# Build the last commit twice, in different folders, and compare the programs.
reproducible *ARGS:
    scripts/reproducible.py {{ARGS}}

# Run the nginx example of docs/proxies.md, with a rolling restart: `just proxies --bin target/release/ethnode`.
proxies *ARGS:
    scripts/proxies.py {{ARGS}}

# Play what happens to servers in production, and print what could be seen: `just operations disk nginx`.
operations *ARGS:
    scripts/operations.py {{ARGS}}

# Start deploy/compose.yaml with Docker or Podman, and look at it from outside.
compose *ARGS:
    scripts/compose.py {{ARGS}}

# Make a Debian package: `just debian-package --output .`.
debian-package *ARGS:
    scripts/debian_package.py {{ARGS}}

# Update the table of methods in docs/json-rpc.md.
rpc:
    UPDATE_DOCS=1 cargo test --workspace --lib documented

# Replay recorded JSON-RPC exchanges: `just exchanges http://127.0.0.1:8545 FOLDER`.
exchanges URL FOLDER:
    cargo run --release -p node-tests --bin exchanges -- {{URL}} {{FOLDER}}

# Compare all JSON-RPC responses with those of anvil on the same chain. Needs npm.
compare-anvil *ARGS:
    scripts/compare_anvil.py {{ARGS}}

# Measure JSON-RPC requests per second, here and on anvil. Needs wrk and npm.
bench-rpc *ARGS:
    scripts/bench_rpc.py {{ARGS}}

# Count source lines per crate, without tests: `just lines --rev HEAD~10`.
lines *ARGS:
    scripts/source_lines.py {{ARGS}}
