#!/usr/bin/env bash
# moirai probe on a real network: two ranks in network namespaces joined by a veth pair, shaped by tc to 1 Gbit/s one way
# and 100 Mbit/s the other. Rates are set on the wire, with the headers of every frame (1448 bytes of payload in 1514);
# probe measures payload. What it finds must be within 10 % of the rate that was set, either way.
#
# Nothing outside the namespaces is touched, and they are removed at the end. Exits with 77 (skipped) where the machine does
# not let us: no root, no ip netns, no tbf, another MPI than Open MPI. Usage: netns.sh MOIRAI
set -u
moirai=$(realpath "$1")
a=moirai-a-$$ b=moirai-b-$$ left=ma$$ right=mb$$
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
for tool in ip tc unshare python3; do command -v "$tool" >/dev/null || skip "there is no '$tool'"; done
rank=${MOIRAI_RANK:-$(dirname "$moirai")/moirai-rank}
"$rank" about 2>/dev/null | grep 'Open MPI' >/dev/null || skip "moirai-rank is missing or not linked with Open MPI"
work=$(mktemp -d)
# Shown by the processes in them, too: whatever is left in a namespace ends with the test.
end() {
    for n in $a $b; do
        for pid in $(ip netns pids "$n" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
        ip netns del "$n" 2>/dev/null
    done
    rm -rf "$work"
}
trap end EXIT
{ ip netns add $a && ip netns add $b && ip link add $left netns $a type veth peer name $right netns $b; } 2>"$work/why" ||
    skip "this machine gives no network namespaces: $(tail -n 1 "$work/why")"
ip -n $a addr add 10.77.0.1/24 dev $left
ip -n $b addr add 10.77.0.2/24 dev $right
for link in "$a lo" "$b lo" "$a $left" "$b $right"; do set -- $link; ip -n "$1" link set "$2" up; done
{ ip netns exec $a tc qdisc add dev $left root tbf rate 1gbit burst 64kb latency 50ms &&
    ip netns exec $b tc qdisc add dev $right root tbf rate 100mbit burst 16kb latency 50ms; } 2>"$work/why" ||
    skip "this kernel shapes no links: $(tail -n 1 "$work/why")"

# What stands for ssh: enters the other namespace under another host name.
cat >"$work/agent" <<X
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c 'hostname node-b; exec sh -c "\$*"' sh "\$@"
X
chmod +x "$work/agent"
export OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 \
    OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
cat >"$work/inside" <<X
hostname node-a
exec timeout 30 "$moirai" probe --hosts 10.77.0.1,10.77.0.2 --seconds 3 --json --force -o "$work/cluster.json"
X
cat >"$work/judge.py" <<'X'
import json, sys
result = json.load(open(sys.argv[1]))
hosts = [r["host"] for r in result["ranks"]]
failed = hosts != ["node-a", "node-b"]
print("hosts", hosts)
for link, gbit in zip(result["links"], (1.0, 0.1)):
    measured = link["bytes_per_second"] * 8e-9
    off = measured / gbit - 1
    payload = gbit * 1448 / 1514
    print(f"{link['from']} -> {link['to']}: set {gbit} Gbit/s (payload {payload:.4f}), measured {measured:.4f}: "
          f"{100 * off:+.1f} % of what was set, {100 * (measured / payload - 1):+.1f} % of its payload; "
          f"latency {link['latency_ns'] / 1000:.1f} us")
    if abs(off) <= 0.1:
        open(f"{sys.argv[2]}/right-{link['from']}", "w")
sys.exit(2 if failed else 0)
X
# Whatever else runs on the machine slows messages down: each link has to be right in one of the tries.
for try in 1 2 3 4 5; do
    ip netns exec $a unshare --uts sh "$work/inside" >"$work/result.json" 2>"$work/log" ||
        { echo "probe failed:"; cat "$work/log" "$work/result.json"; exit 1; }
    python3 "$work/judge.py" "$work/result.json" "$work" || exit 1
    [ -e "$work/right-node-a" ] && [ -e "$work/right-node-b" ] && exit 0
done
# On a machine that is busy with other work the rate that was set can't be reached at all: that says nothing of the probe.
read -r load _ </proc/loadavg
[ "${load%.*}" -lt "$(nproc)" ] || skip "the machine is busy (load $load): no link was free enough to measure"
exit 1
