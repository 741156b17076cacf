"""A pod's whole life as in life.py, through podqos with its features off and with all of them on, which take turns.

"silent" is "off" without the journal of events, which may cost 3 % of the whole life, the runtime's own part included.

On cgroup v2, where all features have something to write, in a guest whose clock is its instructions.
"""

import json
import operator
import statistics
import sys

import life

BOUND, EVENTS_BOUND = 1.25, 1.03
SETTINGS = {
    "qosReserved": {"memory": "100%"}, "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9,
    "cpuBurst": {"guaranteed": "50%", "burstable": "50%"}, "cpuIdle": {"bestEffort": True},
    "ioWeight": {"guaranteed": 500, "burstable": 200, "bestEffort": 50},
    "eviction": {"besteffort": {"memoryPressure": "60%/30s"}, "burstable": {"memoryPressure": "60%/30s"}},
}
VALUES = {"memory.low": str(64 << 20), "cpu.max.burst": "25000"}


class Node(life.Node):
    """Podqos with each configuration, beside two hooks that do nothing."""

    ways = ("empty", "silent", "off", "on")

    def __init__(self, empty):
        super().__init__(None, empty)
        self.configs = {"silent": self.configure("silent", events={"size": "0"}), "off": self.configure("off"),
                        "on": self.configure("on", **SETTINGS)}

    def prefix(self, way):
        config = self.configs.get(way)
        return [str(life.BIN / "podqos-runtime"), "--config", str(config)] if config else [self.runc]

    def hooks(self, way):
        argv = [str(life.BIN / "podqos-hook"), "--config", str(self.configs.get(way))]
        return {stage: [{"path": str(self.empty), "args": [str(self.empty)]} if way == "empty" else
                        {"path": argv[0], "args": [*argv, stage]}] for stage in ("createRuntime", "poststop")}

    def check(self):
        """The features are on where they should be, and nowhere else."""
        for way in self.configs:
            path = f"{self.root}-{way}/kubepods/burstable/pod{self.uid_of(self.staying[way])}"
            held = {file: self.machine.file(path, file.split(".", 1)[0], file) for file in VALUES}
            if (held == VALUES) != (way == "on"):
                raise RuntimeError(f"{path} has {held}")


def measure(table, _):
    with life.empty_hook() as empty:
        found = life.run_in_guest(__file__, empty)
    for beside, each in found.items():
        spent = each["spent"]
        table.compare(f"{beside}, instructions of its life with events; without",
                      *(statistics.median(spent[way]) for way in ("off", "silent")), "million", EVENTS_BOUND)
        added = {way: statistics.median(map(operator.sub, spent[way], spent["empty"])) for way in ("off", "on")}
        table.compare(f"{beside}, instructions with all features on; off", added["on"], added["off"], "million", BOUND)
        calls = each["calls"]
        table.compare(f"{beside}, system calls with all features on; off", calls["on"], calls["off"], "", BOUND)


def main():
    """In the guest."""
    with Node(*sys.argv[1:]) as node:
        found = {}
        for beside in ("a node's only pod", "a pod beside another"):
            life.lives(node, 1)  # files that have not been read are not what is measured
            spent = life.lives(node, life.GUEST_ROUNDS)
            found[beside] = {"spent": {way: [each.cpu for each in spent[way]] for way in spent},
                             "calls": {way: life.system_calls(node, way) for way in ("off", "on")}}
            if not node.staying:
                for way in node.configs:
                    node.stay(way)
                node.check()
        print(json.dumps(found))


if __name__ == "__main__":
    main()
