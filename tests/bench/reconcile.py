"""One `podqosctl reconcile` of many pods of which nothing has changed.

Beside it a static C program reads what it reads (compare.c), and compares each with what it must be. How long a start
waits for it is measured by starts while one reconciliation follows the other.
"""

import os
import pathlib
import re
import statistics
import subprocess
import threading
import time

import many
import oci
import scenario
import spawn

HERE = pathlib.Path(__file__).resolve().parent
PODS = 1000
ROUNDS = 11
STARTS = 100
READ = re.compile(r"^\d+ +read\(\d+<([^>]*)>")
LINK = re.compile(r'^\d+ +readlinkat\(\d+<([^>]*)>, "([^"]*)"')
ATTRIBUTE = re.compile(r'^\d+ +lgetxattr\("([^"]*)", "([^"]*)"')


def make_pods(ground):
    """Each with a container of its own."""
    for number in range(PODS):
        uid = f"{number:08x}{scenario.UID[8:]}"
        made = ground.container("app", uid, "cpu=100m,memory=64Mi", "cpu=200m,memory=128Mi")
        ground.place(made)
        ground.spawn(made)
        ground.create_runtime(made)


def what_it_reads(ground, command):
    """(kind, path) of all that a reconciliation reads of pods, state and processes, but for usage, which changes; see
    compare.c."""
    trace = ground.tmp / "trace"
    subprocess.run(["strace", "-f", "-y", "-e", "trace=read,readlinkat,lgetxattr", "-o", trace, *command], check=True,
                   stdout=subprocess.DEVNULL, timeout=600)
    found = {}
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := READ.match(line):
            found["f", match[1]] = None
        elif match := LINK.match(line):
            found["l", f"{match[1]}/{match[2]}"] = None
        elif (match := ATTRIBUTE.match(line)) and " = -1 " not in line:
            found[match[2], match[1]] = None
    trace.unlink()
    places = (ground.root, str(ground.state))
    return [(kind, path) for kind, path in found if "usage" not in path and (
            re.match(r"/proc/\d+/(stat|cgroup)$", path) or any(place in path for place in places))]


def content_of(kind, path):
    if kind == "l":
        return os.fsencode(os.readlink(path))
    return pathlib.Path(path).read_bytes() if kind == "f" else os.getxattr(path, kind)


def seconds_of_starts(ground, name):
    """Of so many createRuntimes, one after the other, each of a container that podqos does not know yet."""
    found = []
    for number in range(STARTS):
        uid = f"{number:08x}{scenario.UID[8:]}"
        made = ground.spawn(ground.container(f"{name}-{number}", uid))
        begun = time.monotonic()
        ground.create_runtime(made)
        found.append(time.monotonic() - begun)
    return found


def measure_starts(table, ground, command):
    """Beside nothing, and while one reconciliation follows the other."""
    alone = seconds_of_starts(ground, "alone")
    over = threading.Event()

    def reconcile():
        while not over.is_set():
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    beside = threading.Thread(target=reconcile)
    beside.start()
    try:
        found = seconds_of_starts(ground, "beside")
    finally:
        over.set()
        beside.join()
    for what, of in (("median", statistics.median), ("longest", max)):
        table.compare(f"createRuntime while {PODS:,} pods are reconciled, {what} of {STARTS}; alone",
                      of(found) * 1000, of(alone) * 1000, "ms")


def measure(table, _):
    with scenario.Scenario("reconcile", **many.NODE) as ground:
        make_pods(ground)
        command = [str(scenario.harness.CTL), "--config", str(ground.config), "reconcile", "--quiet"]
        oci.call(command)
        entries = what_it_reads(ground, command)
        listed, program = ground.tmp / "list", ground.tmp / "compare"
        listed.write_bytes(b"".join(b"%s %s\0%d\0%s" % (kind.encode(), path.encode(), len(text), text)
                                    for kind, path in entries for text in [content_of(kind, path)]))
        subprocess.run(["gcc", "-O2", "-static", "-o", program, HERE / "compare.c"], check=True)
        spent = {"podqos": [], "C": []}
        for _ in range(ROUNDS):
            spent["podqos"].append(spawn.run(spawn.Program(command, b"", "/")).cpu)
            spent["C"].append(spawn.run(spawn.Program([program, listed], b"", "/")).cpu)
        podqos, plain = (statistics.median(spent[way]) for way in ("podqos", "C"))
        table.compare(f"reconcile of {PODS:,} pods, CPU; a C program that reads the same {len(entries):,} files",
                      podqos, plain, "ms", 3)
        measure_starts(table, ground, command)
