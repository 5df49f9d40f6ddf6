#!/usr/bin/env bash
# Are the answers of two builds the same, byte for byte? For changes that must not change behaviour.
#
#   bench/same_plans.sh record MOIRAI DIR    plans, bounds and certificates of a fixed set of problems x placers x seeds
#   bench/same_plans.sh compare DIR DIR      says which differ; exit code 1 if any does
#
# Times of generation are the only thing left out. No time limits: effort alone decides, so that the answers repeat.
# Problems of ../shared/data are added where they are there. A few minutes on two cores.
set -uo pipefail
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }

networks=(gpt3-tiny inception-tiny t5-tiny gpt3-mini)
testbeds=(inter-server intra-server '3x v100 16GB, 2x p100 16GB, 10Gbps 20us')
seeds=(1 7)

# What a file says, less the times that it took.
settled() { sed -E 's/"(generation_ns|time_ns|seconds)": ?[0-9.e+-]+/"\1": 0/g' "$1"; }

# one NAME COMMAND...: the output file of the command becomes DIR/NAME; a refusal is an answer, too.
one() {
    local name=$1 work
    shift
    work=$(mktemp)
    if "$@" --force -o "$work.out" >"$work" 2>&1; then settled "$work.out" >"$dir/$name"; else cat "$work" >"$dir/$name"; fi
    rm -f "$work" "$work.out"
}

# all NAME FILE PLACER...: every placer and seed on one problem, and its bounds.
all() {
    local name=$1 file=$2 placer seed
    shift 2
    for placer in "$@"; do
        for seed in "${seeds[@]}"; do
            if [ "$placer" = moirai ]; then
                one "$name.$placer.$seed.json" "$moirai" place "$file" --placer moirai --seed "$seed" --effort 0.05 \
                    --certificate "$dir/$name.$seed.certificate.json" -q
            else
                one "$name.$placer.$seed.json" "$moirai" place "$file" --placer "$placer" --seed "$seed" --effort 0.05 -q
            fi
        done
    done
    for bound in critical-path load transfers blocks prices-1; do
        "$moirai" bound "$file" --only "$bound" --json 2>&1 | sed -E 's/"(seconds|time_ns)": ?[0-9.e+-]+/"\1": 0/g' >"$dir/$name.bound.$bound"
    done
}

record() {
    moirai=$(realpath "$1") dir=$2
    mkdir -p "$dir/problems"
    local network testbed flow name i=0
    for network in "${networks[@]}"; do
        i=0
        for testbed in "${testbeds[@]}"; do
            i=$((i + 1))
            for flow in edge tensor; do
                name=$network-$i-$flow
                "$moirai" problem "$network" --cluster "$testbed" --flow "$flow" -q --force -o "$dir/problems/$name.json" ||
                    continue
                all "$name" "$dir/problems/$name.json" single heft m-topo m-etf random moirai
            done
        done
    done
    local shared
    shared=$(dirname "$0")/../../shared/data/problems
    if [ -d "$shared" ]; then
        all example-1 "$shared/example-1.problem.json" heft m-etf exact milp moirai
        all googlenet "$shared/googlenet.problem.json" single heft m-etf moirai
        all gpt330m-inter-edge "$shared/gpt330m-inter-edge.problem.json" heft m-etf
    fi
    echo "recorded $(find "$dir" -type f | wc -l) files"
}

compare() {
    local bad=0 n=0 file
    for file in $(cd "$1" && find . -type f | sort); do
        n=$((n + 1))
        cmp -s "$1/$file" "$2/$file" || { bad=$((bad + 1)); echo "differs: $file"; }
    done
    echo "$n files, $bad differ"
    [ "$bad" = 0 ]
}

[ $# = 3 ] || usage
case $1 in
record) record "$2" "$3" ;;
compare) compare "$2" "$3" ;;
*) usage ;;
esac
