#!/usr/bin/env bash
# Measure the time of an import by the server, from its start until it listens, and its peak memory.
#
#   scripts/bench_import.sh FOLDER [RUNS]
#
# FOLDER contains dev20k.genesis.json and dev20k.rlp. Each run is a new process; the first one may have to read the chain
# from disk. The bar for the median is 3 s.
set -euo pipefail

folder=$(realpath "${1:?usage: $0 FOLDER [RUNS]}")
runs=${2:-5}
bar=3
cd "$(dirname "$0")/.."

cargo build --profile dist --all-features --quiet -p node-server
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
mkfifo "$work/stdout"

printf '%-6s %8s %8s\n' run seconds MiB
for run in $(seq "$runs"); do
    start=$EPOCHREALTIME
    "$target/dist/ethnode" run --port 0 --data-dir :memory: --log warn \
        --genesis "$folder/dev20k.genesis.json" --import "$folder/dev20k.rlp" >"$work/stdout" &
    server=$!
    # The server may end without printing a line.
    read -r line <"$work/stdout" && [[ $line == "listening on "* ]] || exit 1
    end=$EPOCHREALTIME
    peak=$(awk '/^VmHWM:/ { print $2 }' "/proc/$server/status" 2>/dev/null || true)
    kill $server
    wait $server || true
    awk -v run="$run" -v start="$start" -v end="$end" -v peak="$peak" 'BEGIN {
        printf "%-6s %8.2f %8s\n", run, end - start, peak == "" ? "-" : int(peak / 1024)
    }' | tee -a "$work/runs"
done

sort -n -k2 "$work/runs" | awk -v bar="$bar" '{ seconds[NR] = $2 } END {
    median = seconds[int((NR + 1) / 2)]
    printf "median %8.2f   bar %.0f s%s\n", median, bar, (median > bar ? "  too slow" : "")
}'
