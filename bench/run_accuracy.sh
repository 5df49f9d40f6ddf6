#!/usr/bin/env bash
# Predicted against measured end-to-end latency, and plans of several placers measured against each other, on unequal
# devices of this machine. A case is a network of the zoo (as ONNX, random weights) on a set of devices:
#   two    cores 0 and 1, one thread each: execution providers cpu and xnnpack
#   three  these, and cpu with two threads on both cores
#   four   these, and dnnl on core 1
# For every case: probe, profile, run the network whole on each device. Then ROUNDS times for every placer: refine the
# profile with these runs and with those of the placer's own plans so far, plan, run. Predictions are compared in the last round. In the end each placer's
# fastest plan is run again, in PASSES passes that take turns, so that no placer has the calmer machine; medians over the
# passes count. Placers with one and the same plan share its measurement.
# Usage: bench/run_accuracy.sh MOIRAI [NETWORK:DEVICES...]. Never fails on a timing.
set -euo pipefail
moirai=$(realpath "$1")
shift
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=(gpt3-tiny:two t5-tiny:two inception-tiny:two gpt3-mini:two gpt3-mini:three inception-tiny:four)
placers=(single m-etf moirai)
rounds=${ROUNDS:-3} runs=${RUNS:-40} passes=${PASSES:-5} limit=${LIMIT:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
last=$(($(nproc) > 1 ? 1 : 0))

devices() { # name
    python3 - "$1" "$last" <<'X'
import itertools, json, sys
count, last = {"two": 2, "three": 3, "four": 4}[sys.argv[1]], sys.argv[2]
device = [{"name": "cpu", "ep": "cpu", "threads": 1, "cores": "0"}, {"name": "xnnpack", "ep": "xnnpack", "threads": 1, "cores": last},
          {"name": "both", "ep": "cpu", "threads": 2, "cores": "0-" + last}, {"name": "dnnl", "ep": "dnnl", "threads": 1, "cores": last}][:count]
print(json.dumps({"format": "moirai-cluster", "version": 1, "name": sys.argv[1],
                  "devices": [{**d, "type": "cpu", "memory": "1GB"} for d in device],
                  "links": [{"from": a["name"], "to": b["name"], "bandwidth": "10Gbps", "both": True}
                            for a, b in itertools.combinations(device, 2)]}))
X
}
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$@"; }
run() { # plan timeline
    rm -f "$2"
    "$moirai" run "$1" "$net.onnx" -c cluster.json --warmup 5 --runs "$runs" --timeline "$2" -q >/dev/null
}
refine() { # placer: the whole runs, then all of its own so far
    local args=() f
    for f in runs/0-*.json runs/[1-9]*-"$1".json; do [ ! -f "$f" ] || args+=(--refine "$f"); done
    "$moirai" profile profile.json "${args[@]}" -c cluster.json --cluster-out links.json -f -o graph.json -q >/dev/null
}
plan() { # placer plan, and more
    local placer=$1 out=$2
    shift 2
    "$moirai" plan graph.json -c links.json --rules none -p "$placer" --time-limit "$limit" "$@" -q -f -o "$out" >/dev/null || [ $? = 5 ]
}

printf '%-16s %-6s %-8s %12s %12s %8s %12s %8s\n' network devices placer 'predicted ms' 'measured ms' off 'profiled ms' off
for case in "${cases[@]}"; do
    net=${case%:*} set=${case#*:}
    rm -rf runs best && mkdir runs best
    [ -f "$net.onnx" ] || "$moirai" zoo "$net" --onnx "$net.onnx" >/dev/null
    if [ ! -f "$set.json" ]; then
        devices "$set" >devices.json
        "$moirai" probe -c devices.json --seconds 4 -o "$set.json" -q >/dev/null
    fi
    cp "$set.json" cluster.json
    "$moirai" profile "$net.onnx" -c cluster.json --cache cache -f -o profile.json -q >/dev/null 2>&1
    cp profile.json graph.json && cp cluster.json links.json
    for placer in "${placers[@]}"; do # what the profile alone says; not told to --refine
        plan "$placer" first.json && run first.json first-run.json
        eval "first_${placer//-/_}='$(json first.json 'd["makespan_ns"] / 1e6') $(json first-run.json 'd["median_ns"] / 1e6')'"
    done
    for device in $(json cluster.json '" ".join(x["name"] for x in d["devices"])'); do
        plan single whole.json --pin "*=$device" && run whole.json "runs/0-whole-$device.json"
    done
    for ((round = 1; round <= rounds; round++)); do
        for placer in "${placers[@]}"; do refine "$placer" && plan "$placer" "$placer.json"; done
        for placer in "${placers[@]}"; do
            run "$placer.json" "runs/$round-$placer.json"
            read -r predicted measured <<<"$(json "$placer.json" 'd["makespan_ns"] / 1e6') $(json "runs/$round-$placer.json" 'd["median_ns"] / 1e6')"
            [ -z "${VERBOSE-}" ] || printf '  round %d %-8s predicted %9.3f measured %9.3f, %s transfers\n' "$round" "$placer" "$predicted" "$measured" "$(json "$placer.json" 'len(d["transfers"])')"
            if [ ! -f "best/$placer" ] || python3 -c 'import sys; sys.exit(float(sys.argv[1]) >= float(open(sys.argv[2]).read()))' "$measured" "best/$placer"; then
                echo "$measured" >"best/$placer" && cp "$placer.json" "best/$placer.json"
            fi
            eval "last_${placer//-/_}='$predicted $measured'"
        done
    done
    for placer in "${placers[@]}"; do
        last_name=last_${placer//-/_} first_name=first_${placer//-/_}
        python3 - "$net" "$set" "$placer" ${!last_name} ${!first_name} <<'X'
import sys
net, devices, placer, *numbers = sys.argv[1:]
p, m, p0, m0 = map(float, numbers)
print(f"{net:16} {devices:6} {placer:8} {p:12.3f} {m:12.3f} {100 * (p / m - 1):+7.1f}% {p0:12.3f} {100 * (p0 / m0 - 1):+7.1f}%", flush=True)
open("cases", "a").write(f"{p} {m} {p0} {m0}\n")
X
    done
    for ((pass = 0; pass < passes; pass++)); do # in turns, and each time another one first
        for ((i = 0; i < ${#placers[@]}; i++)); do
            placer=${placers[(i + pass) % ${#placers[@]}]}
            run "best/$placer.json" turn.json
            echo "$placer $(json turn.json 'd["median_ns"] / 1e6')" >>best/turns
        done
    done
    python3 - "$net" "$set" "${placers[@]}" <<'X' | tee -a races
import json, statistics, sys
net, devices, *placers = sys.argv[1:]
turns = [line.split() for line in open("best/turns")]
plan = {p: json.load(open(f"best/{p}.json")) for p in placers}
def key(plan): # without transfers the order is ONNX Runtime's
    return [(o["name"], o["device"]) for o in sorted(plan["ops"], key=lambda o: o["name"])] if not plan["transfers"] else plan["ops"]
same = {p: next(q for q in placers if key(plan[q]) == key(plan[p])) for p in placers}
median = {q: statistics.median(float(t) for p, t in turns if same[p] == q) for q in same.values()}
text = [f"{p} {median[same[p]]:.3f} ms" + (f" (the plan of {same[p]})" if same[p] != p else "") for p in placers]
ratio = {p: median[same["moirai"]] / median[same[p]] for p in placers}
print(f"{net} on {devices}: {', '.join(text)}; moirai takes {ratio['single']:.3f} of single, {ratio['m-etf']:.3f} of m-etf", flush=True)
X
done
python3 - <<'X'
import statistics
cases = [[float(x) for x in line.split()] for line in open("cases")]
off = statistics.median(abs(p / m - 1) for p, m, _, _ in cases)
before = statistics.median(abs(p / m - 1) for _, _, p, m in cases)
print(f"predicted against measured, median over {len(cases)} cases: {100 * before:.1f} % off from the profile alone, "
      f"{100 * off:.1f} % after --refine")
X
