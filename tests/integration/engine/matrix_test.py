"""The matrix on a real kernel: every runtime, cgroup version, cgroup driver and way in, each in a guest of its kind.

tests/lib/matrix.py, run in the guests, is what each cell proves. Here the guests are booted, two at once, and the cells
put into one table. It fails if a cell failed or gave no result.
"""

import concurrent.futures
import os
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import matrix  # noqa: E402

PROGRAM = pathlib.Path(matrix.__file__)
AT_ONCE = 2
GUEST_TIMEOUT = 1500  # seconds; a guest takes one to two minutes
# Flavour of the guest, driver; the slowest first.
GUESTS = (("systemd", "systemd"), ("systemd", "cgroupfs"), ("hybrid", "cgroupfs"), ("v1", "cgroupfs"),
          ("v2", "cgroupfs"))
# How the cells name a machine, driver.
MACHINES = (("v1", "cgroupfs"), ("v1", "systemd"), ("hybrid", "cgroupfs"), ("hybrid", "systemd"), ("v2", "cgroupfs"),
            ("v2+systemd", "cgroupfs"), ("v2", "systemd"))
# The systemd of today mounts v2 only.
NOT_APPLICABLE = (("v1", "systemd"), ("hybrid", "systemd"))
NOTES = (
    "v2+systemd: systemd runs the machine, and the runtime makes its cgroups itself.",
    "n/a: no systemd of today runs a machine with cgroup v1; what podqos would tell one is covered by golden plans",
    "     (tests/unit/core/slice_plan_test.cpp).",
)
LINE = re.compile(r"(?P<cell>(?:runc|crun) \S+ \S+ \S+): (?P<result>passed|failed|skipped)(?P<rest>.*)")

REPORT = os.environ.get("PODQOS_MATRIX_REPORT")  # a file for the table, which ctest itself does not show


def run_guest(flavour, driver):
    """What one guest printed, with a last line where it did not come to its end; and the time that it took."""
    begun = time.monotonic()
    machine = guest.Guest(flavour, timeout=GUEST_TIMEOUT)
    done = machine.run_test(PROGRAM, driver)
    said = done.stdout if done.returncode in (0, 1) else f"{done.stdout}\nguest: exit {done.returncode}"
    return said, time.monotonic() - begun


def run_all():
    """{cell: result}, while printing what the guests say."""
    results = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(run_guest, *kind): kind for kind in GUESTS}
        for future in concurrent.futures.as_completed(running):
            said, seconds = future.result()
            print(f"--- guest {' '.join(running[future])}, {seconds:.0f} s\n{said.strip()}", flush=True)
            for line in said.splitlines():
                if found := LINE.fullmatch(line):
                    results[found["cell"]] = found["result"]
    return results


def complete(results):
    """The result of every cell that there is, in the order of the table."""
    every = {}
    for machine in MACHINES:
        for kind in harness.KINDS:
            for way in matrix.WAYS:
                cell = f"{kind} {' '.join(machine)} {way}"
                every[cell] = "n/a" if machine in NOT_APPLICABLE else results.get(cell, "no result")
    return every


def table(results):
    """One row for each machine, driver and runtime."""
    rows = [("cgroups", "driver", "runtime", *matrix.WAYS)]
    for machine in MACHINES:
        for kind in harness.KINDS:
            rows.append((*machine, kind, *(results[f"{kind} {' '.join(machine)} {way}"] for way in matrix.WAYS)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows)


def main():
    begun = time.monotonic()
    try:
        for flavour, _ in GUESTS:
            guest.Guest(flavour).require()
    except unittest.SkipTest as reason:
        print(f"skipped, all cells of the matrix: {reason}")
        sys.exit(harness.SKIPPED)
    results = complete(run_all())
    counts = {word: list(results.values()).count(word) for word in ("passed", "n/a", "skipped", "failed", "no result")}
    total = ", ".join(f"{count} {word}" for word, count in counts.items())
    report = "\n".join(["", table(results), "", *NOTES, f"{total} in {time.monotonic() - begun:.0f} s"])
    print(report)
    if REPORT:
        pathlib.Path(REPORT).write_text(f"{report}\n", encoding="utf-8")
    sys.exit(1 if counts["failed"] or counts["no result"] else 0)


if __name__ == "__main__":
    main()
