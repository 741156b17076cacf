"""Pods that come and go, in a guest with systemd: counts and times for tests/bench/guest, as JSON on standard output.

    pods.py ROUNDS

One node a cgroup driver, with a pod that stays. In each round a pod of one container is made and released on either
node, and once more by the D-Bus calls alone, which busctl makes as podqos made them.
"""

import json
import os
import sys
import tempfile
import time

import bus
import node as nodes
import syscalls
from syscalls import Program

SPEC = {"podqos.io/pod": json.dumps({"containers": [
    {"name": name, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}}
    for name in ("app", "side")]})}


def calls_of(node, program):
    return bus.round_trips(syscalls.trace(program, node.tmp / "strace"))


def milliseconds(program, statuses=(0,)):
    """What a program takes from its start to its end, with as little of Python as can be."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as given:
        given.write(program.given)
        given.flush()
        files = [(os.POSIX_SPAWN_OPEN, 0, given.name, os.O_RDONLY, 0),
                 (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)]
        argv = list(map(str, program.argv))
        begin = time.monotonic_ns()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=files)
        _, status = os.waitpid(pid, 0)
        end = time.monotonic_ns()
    if os.waitstatus_to_exitcode(status) not in statuses:
        raise RuntimeError(f"{argv}: wait status {status:#x}")
    return (end - begin) / 1e6


def count(node):
    """{event: [round trips, calls]}."""
    found = {}

    def note(event, program):
        trips = calls_of(node, program)
        found[event] = [len(trips), sum(map(len, trips))]

    only = node.container("app")
    note("the first pod", only.place())
    only.begin()
    note("createRuntime of a placed container", only.hook("createRuntime"))
    grows, known = nodes.new_uid(), nodes.new_uid()
    first, second, stray = (node.container(name, grows) for name in ("app", "side", "stray"))
    note("the first container of a further pod", first.place())
    first.begin()
    nodes.run(first.hook("createRuntime"))
    note("a container of an existing pod, which grows by it", second.place())
    second.begin()
    nodes.run(second.hook("createRuntime"))
    stray.begin()
    note("a container of an existing pod, which grows by it, if only the hook sees it", stray.hook("createRuntime"))
    stray.end()
    nodes.run(stray.hook("poststop"))
    node.container("app", known, **SPEC).live()
    note("a container of an existing pod, known by podqos.io/pod", node.container("side", known, **SPEC).place())
    second.end()
    note("the end of one container", second.hook("poststop"))
    first.end()
    note("the release of a pod", first.hook("poststop"))
    return found


def pod_by_podqos(node, times):
    container = node.container("app")
    times["made"].append(milliseconds(container.place()))
    container.begin()
    nodes.run(container.hook("createRuntime"))
    container.end()
    times["released"].append(milliseconds(container.hook("poststop")))
    node.containers.remove(container)


def recorded(node):
    """(uid, calls that make its pod, calls that release it), as podqos makes them."""
    uid = nodes.new_uid()
    container = node.container("app", uid)
    made = calls_of(node, container.place())
    container.begin()
    nodes.run(container.hook("createRuntime"))
    container.end()
    released = calls_of(node, container.hook("poststop"))
    return uid.replace("-", "_"), sum(made, []), sum(released, [])


def by_busctl(said, uid, other):
    """Milliseconds of a call of podqos, made by busctl for another pod."""
    words = [word.replace(uid, other) for word in said.words]
    argv = ["/usr/bin/busctl", "--", *nodes.MANAGER[1:], said.member, said.signature, *words]
    # A unit that has ended may be forgotten by the time that its failures shall be.
    statuses = (0, 1) if said.member == "ResetFailedUnit" else (0,)
    return milliseconds(Program(argv, b"", "/"), statuses)


def pod_by_busctl(record, times):
    uid, made, released = record
    other = nodes.new_uid().replace("-", "_")
    times["made"].append(sum(by_busctl(said, uid, other) for said in made))
    times["released"].append(sum(by_busctl(said, uid, other) for said in released))


def measure(rounds):
    systemd, cgroupfs = nodes.Node("systemd"), nodes.Node("cgroupfs")
    try:
        counts = count(systemd)
        systemd.release()
        for node in (systemd, cgroupfs):
            node.containers.clear()
            node.container("app").live()
        record = recorded(systemd)
        ways = {"systemd": lambda times: pod_by_podqos(systemd, times),
                "cgroupfs": lambda times: pod_by_podqos(cgroupfs, times),
                "busctl": lambda times: pod_by_busctl(record, times)}
        times = {name: {"made": [], "released": []} for name in ways}
        for way in ways.values():  # the bus starts with the first call, and caches are cold
            way({"made": [], "released": []})
        idle = []
        for _ in range(rounds):
            for name, way in ways.items():
                way(times[name])
                time.sleep(0.2)  # systemd's own work after its answer is not the next one's
            idle.append(milliseconds(Program(["/bin/true"], b"", "/")))
        return {"counts": counts, "times": times, "idle": idle, "busctl_calls": [len(record[1]), len(record[2])]}
    finally:
        for node in (systemd, cgroupfs):
            node.release()


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
