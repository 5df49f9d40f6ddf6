#!/usr/bin/env python3
"""Is a plan right? Decided from docs/model.md and docs/formats.md alone.

    check_plan.py PROBLEM PLAN          one plan: a line per fault; exit code 0 right, 1 wrong, 2 no such files
    check_plan.py --batch FOLDER N      0.problem, 0.plan .. of the folder; N.valid beside those that should be right.
                                        Exit code: how many verdicts differ from that (at most 100)

Shares nothing with the C code: another language, other data structures, other ways to count. It stores a plan as a list of
tasks (operators and transfers), each with the resources that it holds, and asks of every resource whether two tasks hold it at
once; memory is counted at every moment at which a tensor is born. Python's whole numbers do not overflow. Standard library only.
"""
import bisect
import collections
import json
import os
import sys

Task = collections.namedtuple("Task", "label start finish resources")
Life = collections.namedtuple("Life", "birth death size")


class Malformed(Exception):
    """The file is not what docs/formats.md says."""


def whole(value, what, least=0):
    """A whole number, as the formats ask for; JSON's true and 1.0 are none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Malformed(f"{what}: {value!r} is no whole number from {least} on")
    return value


def choice(value, what, *allowed):
    if value not in allowed:
        raise Malformed(f"{what}: {value!r} is none of {', '.join(allowed)}")
    return value


class Problem:
    def __init__(self, doc):
        if doc.get("format") != "moirai-problem" or doc.get("version") != 1:
            raise Malformed("not a moirai-problem, version 1")
        self.flow = choice(doc.get("flow"), "flow", "tensor", "edge")
        self.congestion = choice(doc.get("congestion"), "congestion", "port", "channel", "none")
        self.memory = choice(doc.get("memory"), "memory", "static", "peak")
        self.capacity = {d["name"]: whole(d["memory_bytes"], d["name"]) for d in doc["devices"]}
        self.place_of = {name: k for k, name in enumerate(self.capacity)}
        self.link = {(c["from"], c["to"]): (whole(c.get("latency_ns") or 0, "latency"), whole(c["bytes_per_second"], "rate", 1))
                     for c in doc["channels"]}
        self.ops = {o["name"]: o for o in doc["ops"]}
        if len(self.ops) != len(doc["ops"]) or len(self.capacity) != len(doc["devices"]):
            raise Malformed("two operators or two devices of one name")
        self.maker, self.size, self.table = {}, {}, {}
        for o in doc["ops"]:
            for t in o["outputs"]:
                if t["name"] in self.maker:
                    raise Malformed(f"tensor {t['name']}: two producers")
                self.maker[t["name"]] = o["name"]
                self.size[t["name"]] = whole(t["bytes"], t["name"])
                self.table[t["name"]] = t.get("transfer_ns")
        # What is read, by whom; a tensor that an operator lists twice is read once. Inputs of the network cost nothing.
        self.readers = {t: [] for t in self.maker}
        for o in doc["ops"]:
            for t in set(o["inputs"]):
                if t in self.readers:
                    self.readers[t].append(o["name"])

    def time_on(self, op, device):
        return self.ops[op]["time_ns"][self.place_of[device]]

    def transfer_time(self, tensor, source, target):
        if self.table[tensor] is not None:
            return self.table[tensor][self.place_of[source]][self.place_of[target]]
        latency, rate = self.link[source, target]
        whole_part, rest = divmod(self.size[tensor] * 10 ** 9, rate)
        return latency + whole_part + (1 if rest else 0)


class Plan:
    """The plan's decisions and times by name; what can't even be read that way is in `faults`."""

    def __init__(self, problem, doc):
        if doc.get("format") != "moirai-plan" or doc.get("version") != 1:
            raise Malformed("not a moirai-plan, version 1")
        self.p, self.doc, self.faults = problem, doc, []
        self.device, self.start, self.finish = {}, {}, {}
        for o in doc["ops"]:
            self._read_op(o)
        for name in problem.ops:
            if name not in self.device:
                self.faults.append(f"operator {name} is nowhere")
        self.sent = {}
        for t in doc.get("transfers", []):
            self._read_transfer(t)

    def _read_op(self, o):
        name, device = o["name"], o["device"]
        if name not in self.p.ops:
            self.faults.append(f"operator {name} is not one of the problem's")
        elif device not in self.p.capacity:
            self.faults.append(f"operator {name} is on {device}, which is not one of the problem's devices")
        elif name in self.device:
            self.faults.append(f"operator {name} is there twice")
        else:
            self.device[name] = device
            self.start[name], self.finish[name] = o["start_ns"], o["finish_ns"]

    def _read_transfer(self, t):
        tensor, source, target = t["tensor"], t["from"], t["to"]
        if tensor not in self.p.maker or source not in self.p.capacity or target not in self.p.capacity:
            self.faults.append(f"transfer of {tensor} from {source} to {target}: no such tensor or device")
            return
        key = (tensor, t["consumer"] if self.p.flow == "edge" else target)
        if key in self.sent:
            self.faults.append(f"transfer of {tensor} for {key[1]} is there twice")
        self.sent[key] = t


def needed_transfers(p, plan):
    """What the placement asks for: (tensor, reader or device) -> target device."""
    need = {}
    for tensor, readers in p.readers.items():
        home = plan.device[p.maker[tensor]]
        for reader in readers:
            there = plan.device[reader]
            if there != home:
                need[tensor, reader if p.flow == "edge" else there] = there
    return need


def check_operators(p, plan):
    groups = collections.defaultdict(set)
    for name, device in plan.device.items():
        asked = p.time_on(name, device)
        start, finish = plan.start[name], plan.finish[name]
        if asked is None:
            yield f"operator {name} can't run on {device}"
        elif finish - start != asked:
            yield f"operator {name} takes {finish - start} ns on {device}, not {asked}"
        if start < 0:
            yield f"operator {name} starts at {start}, before time 0"
        group = p.ops[name].get("group")
        if group is not None:
            groups[group].add(device)
    for group, devices in groups.items():
        if len(devices) > 1:
            yield f"group {group} is on {' and '.join(sorted(devices))}"


def check_transfers(p, plan):
    need = needed_transfers(p, plan)
    for tensor, whom in need.keys() - plan.sent.keys():
        yield f"transfer of {tensor} for {whom} is missing"
    for (tensor, whom), t in plan.sent.items():
        home = plan.device[p.maker[tensor]]
        if (tensor, whom) not in need:
            yield f"transfer of {tensor} for {whom} is not needed"
        elif (t["from"], t["to"]) != (home, need[tensor, whom]):
            yield f"transfer of {tensor} for {whom} goes from {t['from']} to {t['to']}, not from {home} to {need[tensor, whom]}"
        else:
            asked, taken = p.transfer_time(tensor, t["from"], t["to"]), t["finish_ns"] - t["start_ns"]
            if taken != asked:
                yield f"transfer of {tensor} for {whom} takes {taken} ns, not {asked}"
            if "bytes" in t and t["bytes"] != p.size[tensor]:
                yield f"transfer of {tensor} for {whom} has {t['bytes']} bytes, not {p.size[tensor]}"


def check_order(p, plan):
    """(4a): everything is there before it is used. All transfers that are needed exist by now."""
    for tensor, readers in p.readers.items():
        maker = p.maker[tensor]
        made = plan.finish[maker]
        for reader in readers:
            if plan.device[reader] == plan.device[maker]:
                there = made
            else:
                t = plan.sent[tensor, reader if p.flow == "edge" else plan.device[reader]]
                there = t["finish_ns"]
                if t["start_ns"] < made:
                    yield f"transfer of {tensor} starts at {t['start_ns']}, produced at {made}"
            if plan.start[reader] < there:
                yield f"operator {reader} starts at {plan.start[reader]}, its input {tensor} is there at {there}"


def tasks(p, plan):
    for name, device in plan.device.items():
        yield Task(f"operator {name}", plan.start[name], plan.finish[name], [("device", device)])
    for (tensor, whom), t in plan.sent.items():
        held = {"port": [("send port of", t["from"]), ("receive port of", t["to"])],
                "channel": [("channel", t["from"], t["to"])], "none": []}[p.congestion]
        yield Task(f"transfer of {tensor} for {whom}", t["start_ns"], t["finish_ns"], held)


def check_resources(p, plan):
    """(4e), (4g): a resource serves one task at a time. What takes no time occupies nothing."""
    held = collections.defaultdict(list)
    for task in tasks(p, plan):
        if task.finish > task.start:
            for resource in task.resources:
                held[resource].append(task)
    for resource, users in held.items():
        users.sort(key=lambda task: task.start)
        latest = users[0]
        for task in users[1:]:
            if task.start < latest.finish:
                yield f"{' '.join(resource)}: {latest.label} and {task.label} at once"
            if task.finish > latest.finish:
                latest = task


def lives(p, plan, end):
    """Device -> lives of tensors there (memory mode peak)."""
    result = collections.defaultdict(list)
    for tensor, readers in p.readers.items():
        maker = p.maker[tensor]
        home = plan.device[maker]
        birth = {home: plan.start[maker]}
        death = {home: plan.finish[maker] if readers else end}
        for reader in readers:
            there = plan.device[reader]
            death[there] = max(death.get(there, 0), plan.finish[reader])
            if there != home:
                t = plan.sent[tensor, reader if p.flow == "edge" else there]
                birth[there] = min(birth.get(there, t["start_ns"]), t["start_ns"])
                death[home] = max(death[home], t["finish_ns"])
        for device in birth:
            if death[device] > birth[device]:
                result[device].append(Life(birth[device], death[device], p.size[tensor]))
    return result


def most_alive(of):
    """The most bytes alive at once. They grow at births only, so it is enough to look there; a life ends before its last
    moment, so that what dies and what is born at one time never meet."""
    births, deaths = sorted((x.birth, x.size) for x in of), sorted((x.death, x.size) for x in of)
    died = [0]
    for _, size in deaths:
        died.append(died[-1] + size)
    times = [time for time, _ in deaths]
    most = born = 0
    for time, size in births:
        born += size
        most = max(most, born - died[bisect.bisect_right(times, time)])
    return most


def check_memory(p, plan, end):
    alive = lives(p, plan, end)
    said = {d["name"]: d for d in plan.doc.get("devices") or []}
    for device, capacity in p.capacity.items():
        own = sum(p.ops[name]["memory_bytes"] for name, there in plan.device.items() if there == device)
        shared = {w["name"]: whole(w["bytes"], w["name"]) for name, there in plan.device.items() if there == device
                  for w in p.ops[name].get("shared_weights", [])}
        own += sum(shared.values())  # once, however many readers are here
        peak = own + most_alive(alive[device])
        need = peak if p.memory == "peak" else own
        busy = sum(plan.finish[n] - plan.start[n] for n, there in plan.device.items() if there == device)
        if need > capacity:
            yield f"device {device} has {capacity} bytes and needs {need}"
        for key, value in (("busy_ns", busy), ("memory_bytes", own), ("peak_bytes", peak)):
            claim = said.get(device, {}).get(key)
            if claim is not None and claim != value:
                yield f"device {device}: the plan says {key} {claim}, it is {value}"


def check_claims(plan, end):
    doc = plan.doc
    if doc["makespan_ns"] != end:
        yield f"the plan says makespan {doc['makespan_ns']}, its operators end at {end}"
    bound = doc.get("lower_bound_ns")
    if bound is not None and bound > end:
        yield f"the plan says that none is faster than {bound}, it takes {end}"
    if bound is not None and doc.get("status") is not None and (doc["status"] == "optimal") != (bound == end):
        yield f"status {doc['status']} with makespan {end} and lower bound {bound}"
    gap = doc.get("gap")
    if bound is not None and gap is not None and end > 0 and abs(gap - (end - bound) / end) > 1e-9:
        yield f"the plan says gap {gap}, it is {(end - bound) / end}"


def check(problem_doc, plan_doc):
    """All faults of the plan, in words. Later checks need what earlier ones have made sure of."""
    try:
        p = Problem(problem_doc)
        plan = Plan(p, plan_doc)
        faults = list(plan.faults)
        for stage in (check_operators, check_transfers, check_order, check_resources):
            if faults:
                return faults
            faults += stage(p, plan)
        end = max(plan.finish.values(), default=0)
        return faults + list(check_memory(p, plan, end)) + list(check_claims(plan, end))
    except Malformed as e:
        return [f"malformed: {e}"]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:
        return [f"malformed: {type(e).__name__}: {e}"]


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def batch(folder, n):
    wrong = 0
    for i in range(n):
        at = os.path.join(folder, str(i))
        faults, expected = check(load(at + ".problem"), load(at + ".plan")), os.path.exists(at + ".valid")
        if (not faults) != expected:
            wrong += 1
            print(f"plan {i} should be {'right' if expected else 'wrong'}: {faults[:3]}")
    return min(wrong, 100)


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "--batch":
        return batch(arguments[1], int(arguments[2]))
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        problem, plan = (load(path) for path in arguments)
    except (OSError, ValueError) as e:
        print(f"check_plan: {e}", file=sys.stderr)
        return 2
    faults = check(problem, plan)
    print("\n".join(faults[:50]) if faults else f"right, makespan {plan['makespan_ns']} ns")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
