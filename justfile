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

# What runs in half a minute before a commit: format, layers, the unit tests of the two lowest crates, and whether everything compiles.
quick:
    cargo fmt --all --check
    scripts/check_layers.py
    cargo check --workspace --all-targets --all-features --quiet
    cargo test -p node-types -p node-core --lib --quiet

# Format, lints, docs, layers, licences: what CI checks before it runs tests.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
    scripts/check_layers.py
    cargo deny --offline check licenses bans sources

# Run Ethereum's block tests: files or folders in BlockchainTests format.
blocktest +PATHS:
    cargo run --release -p node-tests --bin blocktest -- {{PATHS}}

# Run geth's tracer vectors: a folder with a folder for each tracer.
tracertest FOLDER:
    cargo run --release -p node-tests --bin tracertest -- --expected-failures .ci/expected-traces.txt {{FOLDER}}

# Generate a chain on the development genesis: `just generate --blocks 2000 --output chain.rlp`.
generate *ARGS:
    cargo run --release -p node-tests --bin generate -- {{ARGS}}

# Run the Criterion benchmarks, all or those whose name contains FILTER.
bench FILTER="":
    cargo bench -p node-benches -- {{FILTER}}

# Measure the server: `just measure --list` shows the scenarios. Needs wrk.
measure *ARGS:
    scripts/bench.py {{ARGS}}

# Compare the node with a model over random steps: `just model --steps 100000 --seed 1 --store`.
model *ARGS:
    cargo run --release -p node-tests --bin model -- {{ARGS}}

# Test the server against its OpenAPI document: `just fuzz-openapi --short`.
fuzz-openapi *ARGS:
    tests/schemathesis/run.py {{ARGS}}

# Use a development chain through generated clients, JSON-RPC libraries, cast, and clients that verify proofs: `just clients viem`.
clients *ARGS:
    scripts/clients.py {{ARGS}}

# Update docs/openapi.json and its examples.
openapi:
    UPDATE_OPENAPI=1 cargo test -p node-tests openapi::the_examples
    UPDATE_OPENAPI=1 cargo test -p node-tests openapi::the_committed

# Compare all responses with those of anvil, and how viem, ethers and Hardhat get along with both. Needs anvil and npm.
anvil *ARGS:
    scripts/anvil.py {{ARGS}}

# Run tools of contract developers: prool, alloy, ape, Hardhat's sample project, a page with ethers, alto: `just tools ape`.
tools *ARGS:
    scripts/tools.py {{ARGS}}

# Test the HTML pages in headless Chromium: `just pages --screenshots shots`.
pages *ARGS:
    scripts/pages.py {{ARGS}}

# Kill imports, servers and commands at random moments, and check that nothing is lost: `just kills --rounds 200 dev import`.
kills *ARGS:
    scripts/kills.py {{ARGS}}

# Fuzz decoders and interfaces: `just fuzz --seconds 60 transaction block`.
fuzz *ARGS:
    cargo build --release --all-features -p node-server
    cargo run --release --all-features -p node-tests --bin fuzz -- {{ARGS}}

# Put a development chain under a mixed load: `just mixed-load --minutes 60`.
mixed-load *ARGS:
    scripts/mixed_load.py {{ARGS}}

# Build the last commit twice, in different folders, and compare the programs.
reproducible *ARGS:
    scripts/reproducible.sh {{ARGS}}

# Run the examples of docs/proxies.md, with a rolling restart: `just proxies nginx`.
proxies *ARGS:
    scripts/proxies.py {{ARGS}}

# Play what happens to servers in production, and print what could be seen: `just operations disk clients`.
operations *ARGS:
    scripts/operations.py {{ARGS}}

# Check the files in deploy/, make a Debian package, and run the services of the compose file: `just deploy package --output .`.
deploy *ARGS:
    scripts/deploy.py {{ARGS}}

# Update the table of methods in docs/json-rpc.md.
rpc:
    UPDATE_DOCS=1 cargo test --workspace --lib documented

# Replay recorded JSON-RPC exchanges: `just exchanges http://127.0.0.1:8545 FOLDER`.
exchanges URL FOLDER:
    cargo run --release -p node-tests --bin exchanges -- {{URL}} {{FOLDER}}

# Count source lines per crate, without tests: `just lines --rev HEAD~10`.
lines *ARGS:
    scripts/source_lines.py {{ARGS}}
