#!/usr/bin/env bash
# Predicted against measured latency of plans on this machine, and which plan is the fastest when run.
# For each network: the operators are profiled on every device and the links probed; then each placer's plan is run, its measured
# segments are taken back into the times (profile --refine), planned again and run again. Prints one line per case and, at the end, the
# median error before and after. Usage: bench/run_compare.sh MOIRAI [RUNS] [NETWORK...]
set -euo pipefail
moirai=$(realpath "$1")
runs=${2:-30}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- inception-tiny gpt3-tiny gpt3-mini
placers="single m-etf moirai"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Two unequal devices: the first two cores, or the only one twice; the second device with another provider.
cores=$(nproc)
cat >cluster.json <<END
{"format": "moirai-cluster", "version": 1, "name": "here", "devices": [
 {"name": "A", "type": "cpu", "memory": "4GB", "threads": 1, "cores": "0"},
 {"name": "B", "type": "cpu", "memory": "4GB", "threads": 1, "cores": "$((cores > 1 ? 1 : 0))", "ep": "xnnpack"}],
 "links": [{"from": "A", "to": "B", "bandwidth": "8Gbps", "latency": "100us", "both": true}]}
END
"$moirai" probe --cluster cluster.json --seconds 3 -o probed.json --quiet >/dev/null && mv probed.json cluster.json

field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
case_line() { # network placer step
    local predicted measured
    predicted=$(field result.json planned_ns) measured=$(field result.json median_ns)
    awk -v n="$1" -v p="$2" -v s="$3" -v a="$predicted" -v b="$measured" -v v="$(field result.json verified)" 'BEGIN {
        printf "%-16s %-8s %-8s %10.3f ms %10.3f ms %+7.1f %%  %s\n", n, p, s, a / 1e6, b / 1e6, 100 * (a - b) / b, v == "True" ? "verified" : "WRONG" }'
    awk -v a="$predicted" -v b="$measured" 'BEGIN { e = 100 * (a - b) / b; print e < 0 ? -e : e }' >>"errors.$3"
}

printf '%-16s %-8s %-8s %13s %13s %9s\n' network placer times predicted measured error
for network in "$@"; do
    "$moirai" zoo "$network" --onnx m.onnx --force --quiet >/dev/null
    "$moirai" profile m.onnx --cluster cluster.json -o profiled.json --force --quiet >/dev/null
    for placer in $placers; do
        cp profiled.json times.json
        for step in profiled refined; do
            "$moirai" plan times.json --rules none --cluster cluster.json --placer "$placer" --time-limit 5 -o plan.json --force --quiet >/dev/null
            "$moirai" run plan.json m.onnx --cluster cluster.json --runs "$runs" --verify --json --quiet >result.json
            case_line "$network" "$placer" "$step"
            "$moirai" profile times.json --refine plan.measured.json -o refined.json --force --quiet >/dev/null
            mv refined.json times.json
        done
    done
done
for step in profiled refined; do
    sort -g "errors.$step" | awk -v s="$step" '{ e[NR] = $1 } END { printf "median error, %s times: %.1f %% of %d cases\n", s, e[int((NR + 1) / 2)], NR }'
done
