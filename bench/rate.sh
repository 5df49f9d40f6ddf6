#!/bin/sh
# The best rate of networks on the paper's first testbed, with several numbers of requests in flight (docs/rate.md).
#
#   bench/rate.sh [MOIRAI [FOLDER [SECONDS [NETWORK...]]]]
#
# MOIRAI: the command (default build/release/src/moirai); FOLDER: where the .onnx files are (default ../shared/data/onnx); SECONDS: time limit of
# each plan (default 10); a NETWORK without a file there is one of the zoo, unfused. IN_FLIGHT (environment, default "4 16"): the numbers of requests; COPIES: of the network, at most; THREADS; DTYPE: of networks of the zoo. Prints a Markdown table; all plans are
# checked by the command itself. Cuts are free of the runtime's price of a segment, since that is no load of a device in this model.
set -eu
flights=${IN_FLIGHT:-4 16}
more="${COPIES:+--copies $COPIES} ${THREADS:+--threads $THREADS}"
moirai=${1:-build/release/src/moirai}
folder=${2:-../shared/data/onnx}
seconds=${3:-10}
[ $# -gt 3 ] && shift 3 || shift $#
[ $# -gt 0 ] || set -- $(cd "$folder" && ls -- *.onnx | sed 's/\.onnx$//')

echo "| network | in flight | one by one ms | period ms | bound ms | gap % | largest load ms | latency ms | copies | seconds |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for network in "$@"; do
    for n in $flights; do
        if [ -f "$folder/$network.onnx" ]; then
            "$moirai" plan "$folder/$network.onnx" --cluster inter-server --rules onnxruntime --segment-us 0 --objective rate --in-flight "$n" \
                --gap 0.001 --time-limit "$seconds" $more -q --json
        else
            "$moirai" plan "$network" ${DTYPE:+--dtype $DTYPE} --cluster inter-server --rules none --segment-us 0 --objective rate --in-flight "$n" \
                --gap 0.001 --time-limit "$seconds" $more -q --json
        fi | python3 -c '
import json, sys
r, name = json.load(sys.stdin), sys.argv[1]
ms = lambda key: "%.4f" % (r[key] / 1e6)
print("|", " | ".join([name, str(r["in_flight"]), ms("alone_ns"), ms("period_ns"), ms("period_bound_ns"), "%.2f" % (100 * r["period_gap"]),
      ms("load_ns"), ms("latency_ns"), str(len(r["copies"])), "%.1f" % (r["generation_ns"] / 1e9)]), "|", flush=True)' "$network"
    done
done
