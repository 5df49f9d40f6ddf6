#!/bin/sh
# The gap table of ONNX networks on the paper's two testbeds (docs/results.md, "Irregular networks").
#
#   bench/irregular.sh [MOIRAI [FOLDER [SECONDS [NETWORK...]]]]
#
# MOIRAI: the command (default build/release/src/moirai); FOLDER: where the .onnx files are (default ../shared/data/onnx);
# SECONDS: time limit of each plan (default 30). Prints a Markdown table: operators after fusion, best single device, plan,
# bound, gap and seconds, then the mean and the worst gap. Every plan is checked by the command itself.
#
# RUNTIME (environment, default eager) is what runs the plan: launches of 40 us (eager) or 5 us (ort, the default of `moirai plan`
# for ONNX files) make different problems. The tables are of eager. THREADS (default: all): of the search. GAP (default 0.01, as of `moirai plan`): where a row may end.
set -eu
runtime=${RUNTIME:-eager}
goal=${GAP:-0.01}
moirai=${1:-build/release/src/moirai}
folder=${2:-../shared/data/onnx}
seconds=${3:-30}
[ $# -gt 3 ] && shift 3 || shift $#
[ $# -gt 0 ] || set -- $(cd "$folder" && ls -- *.onnx | sed 's/\.onnx$//')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "| network | testbed | operators | one device ms | plan ms | bound ms | gap % | seconds |"
echo "|---|---|---:|---:|---:|---:|---:|---:|"
for network in "$@"; do
    for testbed in inter-server intra-server; do
        "$moirai" plan "$folder/$network.onnx" --cluster $testbed --rules onnxruntime --flow tensor --runtime "$runtime" --segment-us 0 --placer single -q -f \
            -o "$work/single.json" > /dev/null
        "$moirai" plan "$folder/$network.onnx" --cluster $testbed --rules onnxruntime --flow tensor \
            --runtime "$runtime" --segment-us 0 --gap "$goal" --time-limit "$seconds" ${THREADS:+--threads "$THREADS"} -q -f -o "$work/plan.json" > /dev/null
        python3 - "$work" "$network" $testbed <<'END'
import json, sys
work, network, testbed = sys.argv[1:4]
plan, single = (json.load(open(f"{work}/{name}.json")) for name in ("plan", "single"))
print(f"| {network} | {testbed} | {len(plan['ops'])} | {single['makespan_ns'] / 1e6:.3f} | {plan['makespan_ns'] / 1e6:.3f} | "
      f"{plan['lower_bound_ns'] / 1e6:.3f} | {100 * plan['gap']:.2f} | {plan['generation_ns'] / 1e9:.1f} |", flush=True)
with open(f"{work}/gaps", "a") as gaps:
    gaps.write(f"{plan['gap']}\n")
END
    done
done
awk '{ sum += $1; if ($1 > worst) worst = $1; n++ }
     END { printf "\n%d plans, mean gap %.2f %%, worst %.2f %%\n", n, 100 * sum / n, 100 * worst }' "$work/gaps"
