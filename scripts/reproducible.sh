#!/usr/bin/env bash
# Checks that the release build is reproducible: builds the last commit twice, in different folders, and compares the programs.
#
#     scripts/reproducible.sh [--print]
#
# --print prints the command that it runs, for this folder. The same compilers of Rust and C, the same dependencies (Cargo.lock) and the
# same target folder give the same bytes. The two builds differ in the folder of the sources and in time; paths of the home folder are
# replaced as well, but it is the same in both.
set -euo pipefail
cd "$(dirname "$0")/.."
# HEAD may change during the builds.
commit=$(git rev-parse HEAD)
# The sources that one dependency generates contain the path of the target folder, so that it must be the same everywhere.
target=/tmp/node-release

# Prints the command with which a build in folder $1 depends on neither its path, nor the home folder, nor the time.
command_in() {
    local places="$1=. ${CARGO_HOME:-$HOME/.cargo}=cargo $target=target" rust="" c="" place
    for place in $places; do
        rust+=" --remap-path-prefix=$place"
        # For C code, which mentions files in assertions.
        c+=" -ffile-prefix-map=$place"
    done
    echo "RUSTFLAGS='${rust# }' CFLAGS='${c# }' CXXFLAGS='${c# }' SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit") CARGO_INCREMENTAL=0" \
        "CARGO_TARGET_DIR=$target cargo build --locked --all-features --profile dist -p node-server"
}

if [ "${1:-}" = --print ]; then
    command_in "$PWD"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work" "$target"' EXIT
for folder in "$work/first" "$work/a/second/folder"; do
    mkdir -p "$folder"
    git archive "$commit" | tar -x -C "$folder"
    rm -rf "$target"
    build=$(command_in "$folder")
    (cd "$folder" && eval "$build")
    sha256sum <"$target/dist/ethnode" | tee -a "$work/hashes"
done
[ "$(sort -u "$work/hashes" | wc -l)" = 1 ]
