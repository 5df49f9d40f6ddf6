#!/usr/bin/env bash
# `moirai run` on parts of one GPU (CUDA MPS): predicted and measured latency of the network whole on the largest part, of
# HEFT's plan and of moirai's. Networks are ONNX files (bench/export_onnx.py makes some) or names of the zoo.
# For each: profile, one whole run on every part, refine. Then two rounds of plan, run, refine; HEFT, in the first round
# only, is there to show what transfers cost. Both plans of moirai are verified against the whole model on the CPU, and
# the second is run once more with all tensors through the host. One row per network, as Markdown: "moirai" is the first
# plan, "refined" the second; "largest difference" that of both. SEARCH=EXHAUSTIVE lets cuDNN race its algorithms.
# Usage: PARTS="A:0.1 B:0.2 C:0.3 D:0.4" bench/run_gpu.sh MOIRAI MODEL...   (the largest part last). Never fails on a timing.
set -euo pipefail
moirai=$(realpath "$1")
shift
models=()
for m in "$@"; do models+=("$(realpath -q "$m" || echo "$m")"); done
parts=${PARTS:-A:0.1 B:0.2 C:0.3 D:0.4} runs=${RUNS:-50} few=${FEW:-15} limit=${LIMIT:-3} # few: on the smaller parts alone
export MOIRAI_CUDNN_SEARCH=${SEARCH:-HEURISTIC}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
if [ ! -e "${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}/control" ]; then # one service for all runs
    export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
    mkdir -p mps
    nvidia-cuda-mps-control -d
    trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi

python3 - $parts >devices.json <<'X'
import itertools, json, sys
device = [{"name": n, "type": "h200", "memory": "30GB", "threads": 1, "ep": "cuda", "share": float(s)}
          for n, s in (p.split(":") for p in sys.argv[1:])]
print(json.dumps({"format": "moirai-cluster", "version": 1, "name": "parts", "devices": device,
                  "links": [{"from": a["name"], "to": b["name"], "bandwidth": "100GB/s", "latency": "10us", "both": True}
                            for a, b in itertools.combinations(device, 2)]}))
X
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$@"; }
ms() { json "$1" "'%.3f' % (d['$2'] / 1e6)"; }
run() { # plan timeline, and more
    local plan=$1 timeline=$2
    shift 2
    "$moirai" run "$plan" "$model" -c cluster.json --warmup 5 --runs "$times" --timeline "$timeline" -q "$@"
}
plan() { # placer plan, and more
    local placer=$1 out=$2
    shift 2
    "$moirai" plan graph.json -c links.json --rules none -p "$placer" --time-limit "$limit" "$@" -q -f -o "$out" >/dev/null || [ $? = 5 ]
}
refine() {
    local args=() f
    for f in "$net".run-*.json; do args+=(--refine "$f"); done
    "$moirai" profile profile.json "${args[@]}" -c cluster.json --cluster-out links.json -f -o graph.json -q >/dev/null
}

"$moirai" probe -c devices.json --seconds 2 -f -o cluster.json -q >/dev/null
names=$(json cluster.json '" ".join(x["name"] for x in d["devices"])')
largest=${names##* }
echo "| network | operators | on $largest alone | HEFT | moirai | refined | parts, segments, transfers | fastest split | refined, through the host | off, refined | largest difference | seconds |"
echo "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|"
for model in "${models[@]}"; do
    net=$(basename "$model" .onnx) SECONDS=0
    rm -f "$net".run-*.json
    [ -f "$model" ] || { "$moirai" zoo "$net" --onnx "$net.onnx" -q -f >/dev/null && model=$work/$net.onnx; }
    "$moirai" profile "$model" -c cluster.json --cache cache --seconds 0.05 -f -o profile.json -q >/dev/null 2>"$net.profile.err" || { cat "$net.profile.err"; continue; }
    cp profile.json graph.json && cp cluster.json links.json
    for device in $names; do
        times=$few
        [ "$device" != "$largest" ] || times=$runs
        plan single whole.json --pin "*=$device" && run whole.json "$net.run-0-$device.json" >/dev/null
    done
    refine
    plan single "$net.single.json" --pin "*=$largest"
    for placer in heft moirai; do plan $placer "$net.$placer.json" --segment-us 17; done
    run "$net.heft.json" "$net.run-1-heft.json" >/dev/null
    run "$net.moirai.json" "$net.run-1-moirai.json" --verify --json >"$net.first.json" || { echo "$net: the first plan: exit code $?"; continue; }
    refine
    plan moirai "$net.again.json"
    run "$net.again.json" "$net.run-2-moirai.json" --verify --json >"$net.verified.json" || { echo "$net: the second plan: exit code $?"; continue; }
    MOIRAI_TRANSPORT=host run "$net.again.json" "$net.host.json" >/dev/null
    python3 - "$net" "$largest" "$SECONDS" <<'X'
import json, sys
net, largest, seconds = sys.argv[1:]
def load(name): return json.load(open(f"{net}.{name}.json"))
plan, verified, again, first = load("again"), load("verified"), load("run-2-moirai"), load("first")
alone, heft, before = load(f"run-0-{largest}"), load("run-1-heft"), load("run-1-moirai")
ms = lambda ns: f"{ns / 1e6:.2f}"
pair = lambda p, m: f"{ms(p['makespan_ns'])} / {ms(m['median_ns'])}"
fastest = alone["median_ns"] / min(x["median_ns"] for x in (heft, before, again))
print(f"| {net} | {len(plan['ops'])} | {ms(alone['median_ns'])} | {pair(load('heft'), heft)} | {pair(load('moirai'), before)} | {pair(plan, again)} "
      f"| {verified['used_devices']}, {verified['n_segments']}, {verified['n_transfers']} | {fastest:.2f} times | {ms(load('host')['median_ns'])} "
      f"| {100 * (plan['makespan_ns'] / again['median_ns'] - 1):+.1f} % "
      f"| {max(first['largest_difference'], verified['largest_difference']):.2g} | {seconds} |", flush=True)
X
done
