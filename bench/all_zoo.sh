#!/usr/bin/env bash
# Every network of the zoo x both testbeds x {edge, tensor} x {port, channel, none} x the given placers: place, check, and
# ask ../shared/verify_plan.py where it is there. Prints one line per plan and a count; exits 1 if any plan is wrong.
#
# usage: bench/all_zoo.sh PATH-OF-MOIRAI [PLACER ...]       default placers: single heft m-topo m-etf random
# NETWORKS="gpt3-tiny t5-tiny" restricts the networks. fp16, so that the weights of all fit both testbeds. Long.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
moirai=$(realpath "${1:?usage: bench/all_zoo.sh PATH-OF-MOIRAI [PLACER ...]}")
shift
[ $# -gt 0 ] || set -- single heft m-topo m-etf random
verify=$root/../shared/verify_plan.py
[ -f "$verify" ] || { verify=; echo "verify_plan.py: skipped"; }
networks=${NETWORKS:-$("$moirai" zoo list | awk 'NR > 1 {print $1}')}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=0 bad=0 none=0
for network in $networks; do
    for cluster in inter-server intra-server; do
        for flow in edge tensor; do
            for congestion in port channel none; do
                "$moirai" problem "$network" --dtype fp16 --cluster $cluster --flow $flow --congestion $congestion -q -f \
                    -o "$work/problem.json" >/dev/null || { bad=$((bad + 1)); continue; }
                for placer in "$@"; do
                    where="$network $cluster $flow $congestion $placer"
                    rm -f "$work/plan.json"
                    "$moirai" place "$work/problem.json" --placer "$placer" -q -o "$work/plan.json" >/dev/null 2>"$work/error"
                    code=$?
                    if [ $code = 4 ] && [ "$placer" = single ]; then
                        none=$((none + 1))
                        echo "none  $where: $(head -n 1 "$work/error")"
                    elif [ $code = 0 ] && "$moirai" check "$work/problem.json" "$work/plan.json" >/dev/null 2>"$work/error" &&
                        { [ -z "$verify" ] || python3 "$verify" "$work/problem.json" "$work/plan.json" >"$work/error"; }; then
                        good=$((good + 1))
                        echo "ok    $where"
                    else
                        bad=$((bad + 1))
                        echo "WRONG $where: $(head -n 1 "$work/error")"
                    fi
                done
            done
        done
    done
done
echo "$good plans right, $bad wrong, $none times no single device would do"
[ $bad = 0 ]
