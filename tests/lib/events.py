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
