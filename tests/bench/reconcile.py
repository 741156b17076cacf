"""One `podqosctl reconcile` of many pods of which nothing has changed.

Beside it a static C program reads what it reads (compare.c), and compares each with what it must be.
"""

import os
import pathlib
import re
import statistics
import subprocess

import many
import oci
import scenario
import spawn

HERE = pathlib.Path(__file__).resolve().parent
PODS = 1000
ROUNDS = 11
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
