#!/usr/bin/env bash
# Predicted against measured end-to-end latency, and the plans of several placers measured against each other, on unequal
# devices of this machine. For every network: probe, profile, run it whole on each device and refine with these runs;
# then for every placer: plan, run, and ROUNDS times: refine with what was measured, plan anew, run. Predictions are compared in the last round; placers by the fastest of the plans
# that each made in all rounds, measured. Networks are of the zoo, as ONNX with random weights.
# Usage: bench/run_accuracy.sh MOIRAI [NETWORK...]. Prints one line per case; never fails on a timing.
set -euo pipefail
moirai=$(realpath "$1")
shift
networks=("$@")
[ ${#networks[@]} -gt 0 ] || networks=(gpt3-mini t5-tiny inception-tiny)
placers=(single m-etf moirai)
rounds=${ROUNDS:-3} runs=${RUNS:-40} limit=${LIMIT:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cores=$(nproc)
last=$((cores > 1 ? 1 : 0))
cat >devices.json <<X
{"format": "moirai-cluster", "version": 1, "name": "here", "devices": [
 {"name": "cpu", "memory": "1GB", "ep": "cpu", "threads": 1, "cores": "0"},
 {"name": "xnnpack", "memory": "1GB", "ep": "xnnpack", "threads": 1, "cores": "$last"}],
 "links": [{"from": "cpu", "to": "xnnpack", "bandwidth": "10Gbps", "both": true}]}
X
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$@"; }
"$moirai" probe -c devices.json --seconds 4 -o cluster.json >/dev/null
printf '%-16s %-8s %6s %12s %12s %8s %12s %8s %10s\n' network placer round 'predicted ms' 'measured ms' off 'profiled ms' off 'best ms'
for net in "${networks[@]}"; do
    "$moirai" zoo "$net" --onnx "$net.onnx" >/dev/null
    "$moirai" profile "$net.onnx" -c cluster.json --cache cache -o "$net.json" >/dev/null 2>&1
    cp "$net.json" whole.json
    for device in cpu xnnpack; do
        "$moirai" plan "$net.json" -c cluster.json --rules none -p single --pin "*=$device" -f -o plan.json >/dev/null 2>&1
        rm -f run.json
        "$moirai" run plan.json "$net.onnx" -c cluster.json --warmup 5 --runs "$runs" --timeline run.json >/dev/null 2>&1
        "$moirai" profile whole.json --refine run.json -f -o whole.json >/dev/null
    done
    for placer in "${placers[@]}"; do
        cp "$net.json" graph.json
        cp cluster.json links.json
        best=
        for ((round = 0; round <= rounds; round++)); do
            args=(-p "$placer")
            [ "$round" != 1 ] || cp whole.json graph.json # what the profile alone says is known now
            [ "$placer" = moirai ] && args+=(--time-limit "$limit")
            "$moirai" plan graph.json -c links.json --rules none "${args[@]}" --json -f -o plan.json >plan.out 2>/dev/null
            rm -f run.json
            "$moirai" run plan.json "$net.onnx" -c links.json --warmup 5 --runs "$runs" --timeline run.json >/dev/null 2>&1
            predicted=$(json plan.json 'd["makespan_ns"] / 1e6') measured=$(json run.json 'd["median_ns"] / 1e6')
            [ "$round" -gt 0 ] || first="$predicted $measured"
            best=$(python3 -c 'import sys; print(min(map(float, sys.argv[1:])))' "$measured" $best)
            "$moirai" profile graph.json --refine run.json -c links.json --cluster-out next.json -f -o graph.json >/dev/null
            mv next.json links.json
        done
        python3 - "$net" "$placer" "$rounds" "$predicted" "$measured" $first "$best" <<'X'
import sys
net, placer, rounds, p, m, p0, m0, best = sys.argv[1:]
p, m, p0, m0, best = map(float, (p, m, p0, m0, best))
print(f"{net:16} {placer:8} {rounds:>6} {p:12.3f} {m:12.3f} {100 * (p / m - 1):+7.1f}% {p0:12.3f} {100 * (p0 / m0 - 1):+7.1f}% {best:10.3f}", flush=True)
open("cases", "a").write(f"{net} {placer} {p} {m} {p0} {m0} {best}\n")
X
    done
done
python3 - <<'X'
import statistics
cases = [line.split() for line in open("cases")]
off = [abs(float(p) / float(m) - 1) for _, _, p, m, *_ in cases]
before = [abs(float(p) / float(m) - 1) for _, _, _, _, p, m, _ in cases]
print(f"predicted against measured, median over {len(cases)} cases: {100 * statistics.median(before):.1f} % off from the profile alone, "
      f"{100 * statistics.median(off):.1f} % after --refine")
for net in dict.fromkeys(c[0] for c in cases):
    measured = {c[1]: float(c[6]) for c in cases if c[0] == net}
    print(f"{net}: measured latency of moirai's plan: {measured['moirai'] / measured['single']:.3f} of single's, "
          f"{measured['moirai'] / measured['m-etf']:.3f} of m-etf's")
X
