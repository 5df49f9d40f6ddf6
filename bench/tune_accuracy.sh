#!/usr/bin/env bash
# Predicted against measured after `moirai tune`, over networks of the zoo (as ONNX, random weights) and sets of devices of
# this machine, some of which share cores:
#   two     cpu on core 0, xnnpack on core 1
#   three   these, and cpu with two threads on both cores
#   shared  cpu with two threads on both cores, xnnpack on core 1
#   same    cpu and xnnpack, both on core 0
# A case is one `moirai tune`, which ends within LIMIT seconds or soon after, or before where it is sure; 24 cases take 10 to 12
# minutes. Operators are profiled before, once per network.
#   promised   the model before the kept plan was first run
#   predicted  the model taught by half of the last runs of the kept plan (and the first runs of all others)
#   judged     the other half, which alternate with these run by run; the model never saw it
#   off        predicted against judged; +- is what the machine's noise alone explains, a standard error
#   at 1st     promised against judged
#   again      the kept plan in a new start afterwards: what the machine makes of one and the same plan seconds later
#   noise      the interquartile range of runs of one plan, of all that took part in them the largest
#   passes     how often the plans were run in turns
# Usage: bench/tune_accuracy.sh MOIRAI [NETWORK:DEVICES...]. LIMIT=28 RUNS=30. Never fails on a timing.
set -euo pipefail
moirai=$(realpath "$1")
shift
cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
    for net in gpt3-tiny t5-tiny inception-tiny gpt3-mini googlenet resnet18; do
        for set in two three shared same; do cases+=("$net:$set"); done
    done
fi
limit=${LIMIT:-28} runs=${RUNS:-30}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
last=$(($(nproc) > 1 ? 1 : 0))

devices() { # name
    python3 - "$1" "$last" <<'Y'
import itertools, json, sys
last = sys.argv[2]
cpu = {"name": "cpu", "ep": "cpu", "threads": 1, "cores": "0"}
xnnpack = {"name": "xnnpack", "ep": "xnnpack", "threads": 1, "cores": last}
both = {"name": "both", "ep": "cpu", "threads": 2, "cores": "0-" + last}
device = {"two": [cpu, xnnpack], "three": [cpu, xnnpack, both], "shared": [both, xnnpack], "same": [cpu, {**xnnpack, "cores": "0"}]}[sys.argv[1]]
print(json.dumps({"format": "moirai-cluster", "version": 1, "name": sys.argv[1],
                  "devices": [{**d, "type": "cpu", "memory": "2GB"} for d in device],
                  "links": [{"from": a["name"], "to": b["name"], "bandwidth": "10Gbps", "both": True}
                            for a, b in itertools.combinations(device, 2)]}))
Y
}

uptime
printf '%-15s %-7s %-14s %9s %9s %9s %7s %6s %7s %10s %9s %6s %6s %9s\n' network devices kept promised predicted judged off '+-' 'at 1st' 'best alone' machine noise passes again
for case in "${cases[@]}"; do
    net=${case%:*} set=${case#*:}
    if [ ! -f "$net.onnx" ]; then
        "$moirai" zoo "$net" --onnx "$net.onnx" >/dev/null
        devices three >devices.json
        "$moirai" profile "$net.onnx" -c devices.json --cache times -f -o profile.json >/dev/null 2>&1
    fi
    devices "$set" >devices.json
    if ! "$moirai" tune "$net.onnx" -c devices.json --cache times --time-limit "$limit" --runs "$runs" --plan-limit 2 \
        --probe-seconds 1.5 -f -o kept.json --json >result.json 2>story.txt; then
        echo "$net on $set: failed: $(tail -n 1 story.txt)"
        continue
    fi
    "$moirai" run kept.json "$net.onnx" -c devices.json --runs "$runs" --json >again.json 2>/dev/null
    python3 - "$net" "$set" <<'Y'
import json, sys
d, again = json.load(open("result.json")), json.load(open("again.json"))["median_ns"]
ms = lambda key: f"{d[key] / 1e6:.3f}" if key in d else "-"
off = d["predicted_ns"] / d["judged_ns"] - 1
first = d["promised_ns"] / d["judged_ns"] - 1
noise = "%.1f%%" % (100 * d["unsure"]) if "unsure" in d else "-"
print(f"{sys.argv[1]:15} {sys.argv[2]:7} {d['kept']:14} {ms('promised_ns'):>9} {ms('predicted_ns'):>9} {ms('judged_ns'):>9} {100 * off:+6.1f}% "
      f"{noise:>6} {100 * first:+6.1f}% {ms('best_alone_ns'):>10} {ms('machine_ns'):>9} {100 * d['noise']:5.0f}% {d['n_passes']:6} {again / 1e6:9.3f}", flush=True)
slower = d["measured_ns"] > d.get("best_alone_ns", d["measured_ns"])
open("cases", "a").write(f"{off} {first} {int(slower)} {int(d['machine_is_faster'])} {int(d['split_pays'])} {d['predicted_ns'] / again - 1}\n")
Y
done
python3 - <<'Y'
import statistics
cases = [[float(x) for x in line.split()] for line in open("cases")]
off, first, again = ([abs(c[k]) for c in cases] for k in (0, 1, 5))
print(f"{len(cases)} cases (ms): predicted is {100 * statistics.median(off):.1f} % off in the median, {100 * max(off):.1f} % at worst; "
      f"what was promised before the first run {100 * statistics.median(first):.1f} % and {100 * max(first):.1f} %; "
      f"a new start afterwards differs from it by {100 * statistics.median(again):.1f} % and {100 * max(again):.1f} %; "
      f"kept although slower than one device: {sum(int(c[2]) for c in cases)}; splits kept: {sum(int(c[4]) for c in cases)}; "
      f"this machine without a plan was faster in {sum(int(c[3]) for c in cases)}")
Y
uptime
