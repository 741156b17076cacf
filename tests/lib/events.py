"""Events, each as the moment before it and the program that makes it."""

import json

import scenario
from spawn import Program


class Event:
    """A `program` in a prepared Scenario."""

    name = ""

    def __init__(self):
        self.scenario = scenario.Scenario(self.name.lower())

    def __enter__(self):
        try:
            self.first = self.scenario.first_container()
            self.second = self.arrange()
        except BaseException:
            self.scenario.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.scenario.__exit__()

    def arrange(self):
        """The moment before the event; sets `program`, returns the second container."""
        raise NotImplementedError


class CreateRuntime(Event):
    name = "createRuntime"
    most_calls = 200  # system calls

    def arrange(self):
        second = self.scenario.second_container()
        self.program = Program([*self.scenario.hook, "createRuntime"], second.state().encode(), second.bundle)
        return second

    def check(self):
        """The event changes everything that it is about, to the values that Kubernetes' rules give."""
        before = self.scenario.values(self.second)
        scenario.run(self.program.argv, input=self.program.given, cwd=self.program.cwd)
        after = self.scenario.values(self.second)
        machine = self.scenario.machine
        share = "shares" if machine.version("cpu") == 1 else "weight"
        one, two = (256, 358) if share == "shares" else (10, 14)
        wanted = {
            "containers in the record": (1, 2),
            f"cpu {share} of the pod": (one, two),
            "memory limit of the pod": (256 * scenario.MI, 384 * scenario.MI),
            f"cpu {share} of burstable": (one, two),
        }
        found = {name: (before[name], after[name]) for name in before}
        wrong = [f"{name}: {found[name]}, not {pair}" for name, pair in wanted.items() if found[name] != pair]
        wrong += [f"{name} stayed {pair[0]}" for name, pair in found.items() if pair[0] == pair[1]]
        limits = found["memory limit of besteffort"]
        if None in limits or limits[0] - limits[1] != 64 * scenario.MI:
            wrong.append(f"memory limit of besteffort: {limits}, which is not 64Mi less")
        if wrong:
            raise RuntimeError("the measured event does not do what it should: " + "; ".join(wrong))


class Poststop(Event):
    name = "poststop"

    def arrange(self):
        second = self.scenario.second_container()
        self.scenario.create_runtime(second)
        self.scenario.leave(second)
        state = json.loads(second.state()) | {"status": "stopped", "pid": 0}
        self.program = Program([*self.scenario.hook, "poststop"], json.dumps(state).encode(), "/")
        return second


class Precreate(Event):
    name = "precreate"

    def arrange(self):
        second = self.scenario.container("sidecar")
        config = json.loads((second.bundle / "config.json").read_text(encoding="utf-8"))
        config["linux"]["cgroupsPath"] = f"/machine/libpod-{second.identifier}"
        given = json.dumps(config, separators=(",", ":")).encode()
        self.program = Program([*self.scenario.hook, "precreate"], given, second.bundle)
        return second
