#!/usr/bin/env bash
# Measure requests per second over HTTP, relative to /health in the same run.
#
#   scripts/bench_http.sh FOLDER [ROUNDS] [SECONDS]
#   scripts/bench_http.sh GENESIS CHAIN [ROUNDS] [SECONDS]
#
# FOLDER contains dev20k.genesis.json and dev20k.rlp; GENESIS and CHAIN are files such as `generate` writes. Each round
# measures every request once for SECONDS, so that a machine that slows down slows all of them; the medians of the rounds
# are compared. The exit status is 1 if a share is below its bar. Needs wrk and curl.
set -euo pipefail

usage="usage: $0 FOLDER [ROUNDS] [SECONDS], or $0 GENESIS CHAIN [ROUNDS] [SECONDS]"
source=$(realpath "${1:?$usage}")
if [ -d "$source" ]; then
    genesis=$source/dev20k.genesis.json
    chain=$source/dev20k.rlp
    shift
else
    genesis=$source
    chain=$(realpath "${2:?$usage}")
    shift 2
fi
rounds=${1:-5}
seconds=${2:-3}
cd "$(dirname "$0")/.."

cargo build --profile dist --all-features --quiet -p node-server
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
work=$(mktemp -d)
"$target/dist/node-server" run --port 0 --data-dir :memory: --genesis "$genesis" --import "$chain" >"$work/stdout" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
until grep -q '^listening on ' "$work/stdout"; do
    kill -0 $server || exit 1
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/stdout")

# Both chains have the contract at this address.
contract=0x5fbdb2315678afecb367f032d93f642f64180aa3
slot=0x6c31fc15422ebad28aaf9089c306702f67540b53c7eea8b7d2941044b027100f
head=$(curl -sf "$url/blockNumber/" | sed 's/.*"BlockNumber":"\([0-9]*\)".*/\1/')

# name, minimum share of /health in percent (- for none), method, path, body
requests() {
    cat <<LIST
health - GET /health
storage 60 POST /getStorageAt/ {"Address":"$contract","Position":"$slot","BlockNumber":"latest"}
block 60 GET /getBlockByNumber/$((head / 2))/false/
feeHistory 60 POST /feeHistory/ {"BlockCount":"20","NewestBlock":"latest","RewardPercentiles":[25,50,75]}
call 40 POST /call/ {"Transaction":{"To":"$contract","Data":"$slot"},"BlockNumber":"latest"}
LIST
}

requests | while read -r name _ method path body; do
    { echo "wrk.method = '$method'"
      echo "wrk.path = '$path'"
      if [ -n "$body" ]; then
          echo "wrk.body = [[$body]]"
          echo "wrk.headers['Content-Type'] = 'application/json'"
      fi
      # A block that is asked for again and again comes from the cache of encoded blocks.
      [ "$name" != block ] || echo "request = function()
          return wrk.format('GET', '/getBlockByNumber/' .. math.random(0, $head) .. '/false/')
      end"; } >"$work/$name.lua"
    status=$(curl -s -o "$work/response" -w '%{http_code}' -X "$method" ${body:+-H 'Content-Type: application/json' -d "$body"} "$url$path")
    [ "$status" = 200 ] || { echo "$name returned $status: $(cat "$work/response")" >&2; exit 1; }
done

for _ in $(seq "$rounds"); do
    requests | while read -r name _; do
        wrk -t1 -c16 -d"${seconds}s" -s "$work/$name.lua" "$url" | awk '/Requests\/sec/ { print $2 }' >>"$work/$name.rates"
    done
done

median() { sort -n "$1" | awk '{ rate[NR] = $1 } END { print rate[int((NR + 1) / 2)] }'; }
health=$(median "$work/health.rates")
printf '%-12s %12s %10s %10s\n' request requests/s share bar
slow=0
while read -r name least _; do
    rate=$(median "$work/$name.rates")
    awk -v name="$name" -v rate="$rate" -v health="$health" -v least="$least" 'BEGIN {
        share = 100 * rate / health
        judged = least != "-"
        slow = judged && share < least + 0
        printf "%-12s %12.0f %9.0f%% %10s%s\n", name, rate, share, judged ? least "%" : least,
            slow ? "  too slow" : ""
        exit slow
    }' || slow=1
done < <(requests)
exit $slow
