"""A look at fifty containers of Podman by `podqosctl top`, beside `podman stats`.

Podman and conmon are Debian 13's, in a view of its root on this machine's own kernel (tests/guest/chrooted). Both take
turns, and show the same containers: once, which takes the start of the program, and as one more refresh of a program
that runs.
"""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import podman  # noqa: E402
import spawn  # noqa: E402

CONTAINERS, POD_SIZE = 50, 5
ROUNDS, SAMPLES = 3, 5
BOUND = 0.2
CHROOTED = harness.REPOSITORY / "tests/guest/chrooted"


def cpu_of(pid):
    """Milliseconds of CPU that a process has used, with threads that are no more (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def once(command):
    """Milliseconds of CPU of a program that shows all containers and ends."""
    return spawn.run(spawn.Program(["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", *command], b"", "/")).cpu


def refresh(command, head):
    """Milliseconds of CPU of one more refresh, of a program that shows them every second beneath a line with `head`."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        heads = (line for line in process.stdout if head in line)
        next(heads)
        next(heads)  # the first time files are opened and kept
        before = cpu_of(process.pid)
        for _ in range(SAMPLES):
            next(heads)
        return (cpu_of(process.pid) - before) / SAMPLES


def make_containers(root):
    """Podman's, placed by the wrapper."""
    engine.WORK.mkdir(parents=True)
    engine.call("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")  # it has the locks of this machine's own Podman
    engine.write_image(engine.WORK / "image.tar")
    podman.configure_podman()
    run = podman.Podman(harness.RUNTIME, "cgroupfs", hooks=False).run
    for number in range(CONTAINERS):
        run("--cgroup-parent", f"{root}/engine",
            *engine.annotated(f"pod-{number // POD_SIZE}", "cpu=10m,memory=16Mi", "cpu=200m,memory=64Mi"))


def main():
    """In Debian 13's root."""
    if os.getpid() != 1:
        sys.exit("this configures the machine's Podman: run tests/bench/run --only podman_stats")
    (root,) = sys.argv[1:]
    os.environ["PODMAN_IGNORE_CGROUPSV1_WARNING"] = "1"
    engine.write_json(pathlib.Path("/etc/podqos/podqos.json"), {"cgroupRoot": root, "runtimes": [shutil.which("runc")]})
    make_containers(root)
    commands = {"podqos": [str(harness.CTL), "top"], "podman": ["/usr/bin/podman", "stats"]}
    one = {"podqos": ["--once"], "podman": ["--no-stream"]}
    heads = {"podqos": "podqos top:", "podman": "CPU %"}
    many = {"podqos": ["--batch", "-d", "1"], "podman": ["--no-reset", "--interval", "1"]}
    shown = {way: engine.call(*commands[way], *one[way]).stdout for way in commands}
    if f"{CONTAINERS} containers" not in shown["podqos"] or len(shown["podman"].splitlines()) != CONTAINERS + 1:
        raise RuntimeError(f"not all containers are shown: {shown}")
    spent = {"once": {way: [] for way in commands}, "refresh": {way: [] for way in commands}}
    for _ in range(ROUNDS):
        for way, command in commands.items():
            spent["once"][way].append(once([*command, *one[way]]))
            spent["refresh"][way].append(refresh([*command, *many[way]], heads[way]))
    print(json.dumps(spent))


def measure(table, _):
    release, reason = guest.made_root("trixie")
    if reason:
        raise RuntimeError(reason)
    root = f"/podqos-test-bench-{os.getpid()}-podman"
    words = ["env", f"PODQOS_BIN={harness.BIN.resolve()}", "PYTHONDONTWRITEBYTECODE=1", "python3", __file__, root]
    try:
        # PODQOS_BIN may be elsewhere.
        done = subprocess.run([CHROOTED, "--write", harness.BIN.resolve(), release, harness.REPOSITORY, *words],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    finally:
        machines.Machine().sweep(root)
    spent = json.loads(done.stdout.splitlines()[-1])
    for kind, what in (("once", "podqosctl top --once, {} containers of Podman, CPU; podman stats --no-stream"),
                       ("refresh", "one more refresh of podqosctl top, {} containers of Podman, CPU; of podman stats")):
        table.compare(what.format(CONTAINERS), *(statistics.median(each) for each in spent[kind].values()), "ms", BOUND)


if __name__ == "__main__":
    main()
