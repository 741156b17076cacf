"""One refresh of `podqosctl top` on a node with a thousand containers, beside systemd-cgtop.

Both run for some samples in the same minutes; their CPU time is counted without the first sample, in which podqos opens
the files that it keeps.
"""

import shutil
import statistics
import subprocess

import many
import scenario
import spawn

CONTAINERS = 1000
POD_SIZE = many.POD_SIZE
ROUNDS = 5
SAMPLES = 10
DELAY = 0.2


def make_containers(ground):
    """Each with a process of its own."""
    for number in range(CONTAINERS):
        uid = f"{number // POD_SIZE:08x}{scenario.UID[8:]}"
        made = ground.container(f"c{number}", uid, "cpu=10m,memory=16Mi", "cpu=200m,memory=64Mi")
        ground.place(made)
        ground.spawn(made)
        ground.create_runtime(made)


def cpu_of(command, samples):
    """Milliseconds of CPU that a sample takes: what more of them take in addition."""
    def spent(count):
        quiet = ["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", *command(count)]
        return spawn.run(spawn.Program(quiet, b"", "/")).cpu

    return (spent(samples + 1) - spent(1)) / samples


def measure(table, _):
    if not shutil.which("systemd-cgtop"):
        raise RuntimeError("install systemd: systemd-cgtop is missing")
    with scenario.Scenario("top", **many.NODE) as ground:
        make_containers(ground)
        ctl = [str(scenario.harness.CTL), "--config", str(ground.config), "top", "--batch", "-d", str(DELAY)]
        ways = {
            "podqosctl top": lambda count: [*ctl, "-n", str(count)],
            "systemd-cgtop": lambda count: ["systemd-cgtop", "--batch", "--depth=9", f"--delay={DELAY}",
                                            f"--iterations={count}", ground.root],
        }
        shown = subprocess.run([*ctl, "-n", "1"], capture_output=True, text=True, check=True, timeout=60).stdout
        if f"{CONTAINERS:,}".replace(",", "") + " containers" not in shown.partition("\n")[0]:
            raise RuntimeError(f"not all containers are shown: {shown[:200]}")
        spent = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, command in ways.items():
                spent[name].append(cpu_of(command, SAMPLES))
        podqos, cgtop = (statistics.median(each) for each in spent.values())
        table.compare(f"refresh of podqosctl top, {CONTAINERS:,} containers in {CONTAINERS // POD_SIZE} pods, CPU; "
                      "of systemd-cgtop", podqos, cgtop, "ms", 0.2)
        table.add("the same, podqosctl top", f"{podqos:.1f} ms", bound="≤ 60 ms")
