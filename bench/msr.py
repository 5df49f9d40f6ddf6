#!/usr/bin/env python3
"""Periods of the instances of dnn-partitioning (Tarnawski et al., NeurIPS 2020), which are not in this repository.

    bench/msr.py FOLDER [--moirai build/release/moirai] [--time-limit 20] [--threads 1] [--in-flight 32] [--kind loads] [--cpu-free] [--only bert24] [--seed 1] [--keep FOLDER]

FOLDER has their files, as `Layer-bert24_inference.json`. Each becomes a problem with congestion `device`: a transfer holds both of its
devices. Operators of one colour class stay together, accelerators have the memory that the file says, and the CPU has any.

Their own model is not quite ours: what leaves an accelerator goes to the host once, however many read it, each accelerator that reads it
fetches it once, and the CPU pays for neither; sending and fetching need not be at the same time. No plan has less in our model than in theirs. `period`, `bound` and
`gap` are of ours; `their load` is what the devices of the plan come to in theirs, to be compared with figures for it, which are largest loads as well: so --kind is
`loads`, and the period is that of the same plan in a stream. A bound of ours is none of theirs.
--cpu-free makes up for the last but one: an operator's time on the CPU is less by what it sends and fetches, which in our model it would pay for. That is their model
for an operator, or class, that is alone there, and too little where several are: `their load` counts all of it again.
--relays N adds N hosts: a tensor with several readers has a relay, an operator that takes no time, on any device or on one
of them, through which it leaves its accelerator once (and is fetched by readers there as well, which in their model is free).
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

# The best that is known for their model, in ms: one copy, and the bound of a solver in floating point (None: it was closed).
KNOWN = {
    "Layer-bert24_inference": (17.7147, None), "Layer-bert24_training": (39.7895, None),
    "Layer-gnmt_inference": (31.687, 31.188), "Layer-resnet50_inference": (33.668, 33.025),
    "Layer-resnet50_training": (77.533, 75.803), "Layer-inceptionv3_inference": (51.632, 50.989),
    "Layer-inceptionv3_training": (117.877, 116.515), "Operator-bert_l-3_inference": (21.908, None),
    "Operator-bert_l-3_training": (54.207, None), "Operator-bert_l-6_inference": (28.335, 26.936),
    "Operator-bert_l-6_training": (71.642, 64.777), "Operator-bert_l-12_inference": (130.04, 106.83),
    "Operator-bert_L-12_training": (373.42, 314.22), "Operator-resnet50_inference": (124.349, 106.42),
    "Operator-resnet50_training": (255.19, 200.86),
}  # fmt: skip
NS = 1_000_000  # per ms
ANY_MEMORY = 1 << 50


def devices_of(instance):
    return [f"gpu{k}" for k in range(int(instance["maxFPGAs"]))] + [f"cpu{k}" for k in range(int(instance["maxCPUs"]))]


def colour(node):
    """What stays together; a node without a colour is alone."""
    return f"colour{node['colorClass']}" if "colorClass" in node else f"node{node['id']}"


def sent_ms(instance):
    """What the output of a node takes: all of its edges have the same cost, or the dearest counts."""
    cost = {}
    for e in instance["edges"]:
        cost[e["sourceId"]] = max(cost.get(e["sourceId"], 0), float(e["cost"]))
    return cost


def relayed(inputs):
    """Nodes whose output more than one reads."""
    count = {}
    for reads in inputs.values():
        for i in reads:
            count[i] = count.get(i, 0) + 1
    return {i for i, n in count.items() if n > 1}


def output(name, ns, pays):
    """A tensor that costs whoever pays `ns`: a transfer between two who do not is free."""
    K = len(pays)
    return {"name": name, "bytes": 0, "transfer_ns": [[ns if a != b and (pays[a] or pays[b]) else 0 for b in range(K)] for a in range(K)]}


def cpu_ms(instance, inputs, sent):
    """Times on the CPU, less by what a class sends and fetches if it is there and all others are not."""
    own = {n["id"]: colour(n) for n in instance["nodes"]}
    leaves = {i for reader, reads in inputs.items() for i in reads if own[i] != own[reader]}
    free = dict.fromkeys(own.values(), 0.0)
    for c in {(own[i], i) for i in leaves} | {(own[reader], i) for reader, reads in inputs.items() for i in reads if own[i] != own[reader]}:
        free[c[0]] += sent[c[1]]
    times = {}
    for n in instance["nodes"]:
        times[n["id"]] = max(0.0, float(n["cpuLatency"]) - free[own[n["id"]]])
        free[own[n["id"]]] -= float(n["cpuLatency"]) - times[n["id"]]
    return times


def problem_of(name, instance, n_hosts, cpu_free=False):
    names = devices_of(instance) + [f"host{k}" for k in range(n_hosts)]
    n_gpus, n_cpus, K, sent = int(instance["maxFPGAs"]), int(instance["maxCPUs"]), len(names), sent_ms(instance)
    pays = [k < n_gpus for k in range(K)]
    inputs = {n["id"]: [] for n in instance["nodes"]}
    for e in instance["edges"]:
        if e["sourceId"] not in inputs[e["destId"]]:
            inputs[e["destId"]].append(e["sourceId"])
    relay = relayed(inputs) if n_hosts else set()
    on_cpu = cpu_ms(instance, inputs, sent) if cpu_free else {n["id"]: float(n["cpuLatency"]) for n in instance["nodes"]}
    classes = {}
    for n in instance["nodes"]:
        classes.setdefault(colour(n), []).append(n["id"])
    ops = []
    for n in instance["nodes"]:
        gpu, cpu = round(float(n["fpgaLatency"]) * NS), round(on_cpu[n["id"]] * NS)
        ns = round(sent.get(n["id"], 0) * NS)
        op = {
            "name": f"n{n['id']}", "type": "Node", "memory_bytes": int(n["size"]),
            "time_ns": [gpu if n["supportedOnFpga"] else None] * n_gpus + [cpu] * n_cpus + [None] * n_hosts,
            "inputs": [f"r{i}" if i in relay else f"t{i}" for i in inputs[n["id"]]],
            "outputs": [output(f"t{n['id']}", ns, pays)] if n["id"] in sent else [],
        }  # fmt: skip
        if len(classes[colour(n)]) > 1:
            op["group"] = colour(n)
        ops.append(op)
        if n["id"] in relay:
            ops.append({"name": f"r{n['id']}", "type": "Relay", "memory_bytes": 0, "time_ns": [0] * K, "inputs": [f"t{n['id']}"],
                        "outputs": [output(f"r{n['id']}", ns, pays)]})  # fmt: skip
    return {
        "format": "moirai-problem", "version": 1, "name": name, "flow": "tensor", "congestion": "device", "memory": "static",
        "devices": [{"name": d, "memory_bytes": int(instance["maxSizePerFPGA"]) if k < n_gpus else ANY_MEMORY}
                    for k, d in enumerate(names)],
        "channels": [{"from": a, "to": b, "bytes_per_second": 10**9} for a in names for b in names if a != b],
        "ops": ops,
    }  # fmt: skip


def their_load(instance, device):
    """The largest load in ms, where sending goes through the host; `device` by node."""
    load, sent = dict.fromkeys(devices_of(instance), 0.0), sent_ms(instance)
    for n in instance["nodes"]:
        d = device[n["id"]]
        load[d] += float(n["fpgaLatency"] if d.startswith("gpu") else n["cpuLatency"])
    readers = {}
    for e in instance["edges"]:
        readers.setdefault(e["sourceId"], set()).add(device[e["destId"]])
    for source, there in readers.items():
        ends = there | {device[source]} if there - {device[source]} else set()
        for d in ends:
            load[d] += sent[source] if d.startswith("gpu") else 0
    return max(load.values())


def processor_s():
    """Of all commands so far: on a busy machine the limit of time says little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def solve(o, name, instance, folder):
    problem, plan = folder / f"{name}.problem.json", folder / f"{name}.plan.json"
    problem.write_text(json.dumps(problem_of(name, instance, o.relays, o.cpu_free)))
    begun = processor_s()
    subprocess.run(
        [o.moirai, "place", problem, "--objective", "rate", "--in-flight", str(o.in_flight), "--gap", "0", "--copies", "1", "--kind", o.kind,
         "--time-limit", str(o.time_limit), "--threads", str(o.threads), "--seed", str(o.seed), "--force", "-o", plan],
        check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    seconds = processor_s() - begun
    found = json.loads(plan.read_text())
    copies = found.get("copies") or []
    device = {int(op["name"][1:]): op["device"] for op in found["ops"] if op["name"][0] == "n"}
    theirs = their_load(instance, device) if len(copies) < 2 else None  # a load of several copies is another question
    return found["period_ns"] / NS, found["period_bound_ns"] / NS, theirs, len(copies) or 1, seconds


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--moirai", default="build/release/moirai")
    a.add_argument("--time-limit", type=float, default=20)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--in-flight", type=int, default=32)
    a.add_argument("--only", default="")
    a.add_argument("--seed", type=int, default=1, help="of the search: whether a plan hangs on it")
    a.add_argument("--kind", default="loads", help="of plan, as for `moirai place`")
    a.add_argument("--relays", type=int, default=0, help="hosts that tensors with several readers may go through")
    a.add_argument("--cpu-free", action="store_true", help="the CPU's times are less by its transfers")
    a.add_argument("--keep", type=pathlib.Path, help="problems and plans stay here")
    o = a.parse_args()
    print("| instance | nodes | period, ms | bound | gap | copies | their load | best known | their bound | processor s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = o.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(o.folder.glob("*.json")):
            if o.only not in path.stem:
                continue
            instance = json.loads(path.read_text())
            period, bound, theirs, copies, seconds = solve(o, path.stem, instance, folder)
            best, lower = KNOWN.get(path.stem, (None, None))
            best_text, theirs_text = f"{best:.3f}" if best else "-", f"{theirs:.3f}" if theirs else "-"
            print(f"| {path.stem} | {len(instance['nodes'])} | {period:.3f} | {bound:.3f} | {100 * (period - bound) / period:.1f} % | "
                  f"{copies} | {theirs_text} | {best_text} | {f'{lower:.3f}' if lower else '=' if best else '-'} | {seconds:.1f} |",
                  flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
