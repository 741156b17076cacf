"""Sweeps over the system calls of a program: each fails once, with each of its errors, or the program is killed at it.

    sweep = faults.Sweep(self.id(), stepper, count_file)
    def event():
        done = sweep.strike([program, "word"], refuses=["what it may refuse with"])
        sweep.compare("state", {...})       # with what the first, undisturbed event came to
        sweep.note("what is not as it should be")
    sweep.run(self, event)
"""

import json
import os
import pathlib
import random
import re
import time

import patience
import player
import rows

SEED = int(os.environ.get("PODQOS_FAULT_SEED", time.time_ns() % 1_000_000))
TIMES = int(os.environ.get("PODQOS_FAULT_TIMES", "1"))
# Errors of a call in the order of their likelihood (stepper.c), and of how many calls that have one it is tried.
SAMPLES = {"fail=0": 16, "fail=1": 8, "fail=2": 4, "fail=3": 2, "fail=4": 2, "fail=5": 1, "fail=6": 1, "fail=7": 1,
           "all": 6}
FEWEST = 60  # calls of a program that does what it should
KILLED = 137
# What a message has in place of the error's own text.
OTHER_WORDS = ("is not removed", "echo: I/O error", "cannot be read from /proc/self/exe", "is hidden: /proc",
               "no such cgroup", "standard output", "none of the runtimes", "has ended meanwhile", "it has ended", "does not exist")
# What differs from run to run.
PASSING = re.compile(rb'"(pid|startTime|id|bundle|cgroup)":("[^"]*"|\d+)|,"oomLook":{[^}]*}')
LEFT_OUT = ("lock", "nri.lock", "resize.lock", "events", "events.1", "rows")


class Sweep:
    """The faults of one event."""

    def __init__(self, name, stepper, count_file):
        self.name, self.stepper, self.count_file = name, stepper, count_file
        self.action, self.turn, self.count, self.error, self.at = "all", 0, 0, None, ""
        self.admits, self.wanted, self.odd = True, {}, []

    def is_failing(self):
        return self.action != "all"

    def note(self, what):
        self.odd.append(f"{self.at}: {what}")

    def before(self):
        """argv that lets a program fail."""
        return [str(self.stepper), self.action, "every", str(self.turn), str(self.count_file)]

    def look(self):
        """Reads which call has failed."""
        if self.count_file.exists():
            count, struck, call, number = self.count_file.read_text(encoding="ascii").split()
            self.count, self.error = int(count), os.strerror(int(number)) if struck == "1" else None
            self.at = f"{call} ({self.error}), {self.action} {self.turn}"

    def strike(self, command, state=None, refuses=()):
        """Runs a program with its fault; CompletedProcess with text.

        `refuses`: words of which one is in the error with which it may exit with 1.
        """
        done = patience.capture([*self.before(), *map(str, command)], json.dumps(state).encode() if state else b"")
        done.stderr = done.stderr.decode("utf-8", "replace")
        if done.returncode == 125:
            raise RuntimeError(done.stderr)
        self.look()
        if self.is_failing():
            self.check(done, refuses)
        return done

    def check(self, done, refuses):
        said = f"exit {done.returncode}: {done.stderr}"
        refused = done.stderr and (not self.admits or any(words in done.stderr for words in refuses))
        if done.returncode != 0 and not (done.returncode == 1 and refused):
            self.note(said)
        elif done.returncode == 0 and done.stderr and not self.admits:
            self.note(said)
        if self.error and done.stderr and not any(words in done.stderr for words in (self.error, *OTHER_WORDS)):
            self.note(f"does not name the error: {said}")

    def compare(self, name, found):
        """With what was found under this name first."""
        wanted = self.wanted.setdefault(name, found)
        for what, value in found.items():
            if value == wanted[what]:
                continue
            if isinstance(value, dict):
                names = sorted(n for n in value.keys() | wanted[what].keys() if value.get(n) != wanted[what].get(n))
                each = (f"{n} is {value.get(n)}, not {wanted[what].get(n)}" for n in names)
                self.note(f"{name}, {what}: {'; '.join(each)}")
            else:
                self.note(f"{name}, {what}: {value}, not {wanted[what]}")

    def files(self, state):
        """{name: content} of the records; of the index the number. What a killed one was writing may stay."""
        found = {str(path.relative_to(state)): PASSING.sub(b"", path.read_bytes()) for path in state.rglob("*")
                 if path.is_file() and not path.is_symlink() and path.name not in LEFT_OUT
                 and (self.is_failing() or not path.name.endswith(player.UNFINISHED))}
        return {**found, "containers": sum(path.is_symlink() for path in state.rglob("*"))}

    def check_files(self, folder, names):
        found = sorted(path.name for path in folder.iterdir())
        if found != names:
            self.note(f"files in {folder}: {found}")

    def run(self, case, event, admits=True):
        """Tries the event with its faults, first without."""
        self.admits = admits
        for action, most in SAMPLES.items():
            self.action, self.turn = action, 0
            event()
            case.assertGreater(self.count, FEWEST if action in ("all", "fail=0") else 0)
            chosen = random.Random(f"{SEED} {self.name} {action}")
            for self.turn in sorted(chosen.sample(range(1, self.count + 1), min(self.count, most * TIMES))):
                event()
        case.assertEqual(self.odd, [], "\n".join([f"PODQOS_FAULT_SEED={SEED}", *self.odd]))


def rows_of(state):
    """The rows of pods, without times and processes."""
    return sorted((row[1].rstrip(b"\0"), *row[2:7], *row[9:]) for row in rows.taken(state))


def slice_path(name):
    """The cgroup of a slice: "a-b.slice" is /a.slice/a-b.slice."""
    parts = name.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[:at])}.slice" for at in range(1, len(parts) + 1))
