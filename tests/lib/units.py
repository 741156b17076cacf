"""systemd's units and the cgroups of pods on a whole machine, seen without podqos; for tests in a guest.

What clears away here takes the names of a real node (kubepods.slice), so it works in a guest only.
"""

import os
import pathlib
import subprocess

import guest
import machine as machines
import patience

BOOTED = pathlib.Path("/run/systemd/system")
KEPT = tuple(pathlib.Path("/run/systemd", name) for name in ("system.control", "transient"))


def runs():
    """Does systemd run this machine?"""
    return BOOTED.is_dir()


def call(*args, check=True):
    """systemctl; returns its output."""
    done = subprocess.run(["systemctl", *args], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"systemctl {' '.join(args)}: exit {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout


def loaded(pattern):
    """Names of the loaded units that match, inactive and failed ones included."""
    if not runs():
        return []
    lines = call("list-units", "--all", "--plain", "--no-legend", pattern).splitlines()
    return [line.split()[0] for line in lines]


def show(names, properties):
    """The properties of each unit, as systemctl shows them."""
    blocks = call("show", "--property", ",".join(properties), *names).strip().split("\n\n")
    return [dict(line.split("=", 1) for line in block.splitlines()) for block in blocks]


def kept(prefix):
    """What systemd keeps of such units in /run: drop-ins and the files of transient units."""
    return sorted(str(entry) for folder in KEPT if folder.is_dir() for entry in folder.glob(f"{prefix}*"))


def cgroups(prefix):
    """The cgroups at the top of any hierarchy whose name begins so."""
    return sorted(str(top) for hierarchy in machines.Machine().hierarchies
                  for top in pathlib.Path(hierarchy.mount).glob(f"{prefix}*") if top.is_dir())


def left(prefix):
    """All that stays of pods: cgroups, units, and what systemd keeps."""
    return cgroups(prefix) + loaded(f"{prefix}*") + kept(prefix)


def wait_for_none(prefix):
    """systemd forgets a unit in its own time."""
    for _ in patience.turns():
        if not (found := left(prefix)):
            return
    raise AssertionError(f"left behind: {', '.join(found)}")


def clear(prefix):
    """Ends and removes all of it, after a test that failed half-way."""
    if not guest.inside():
        raise ValueError("only in a guest all pods are the test's own")
    for top in cgroups(prefix):
        machines.Machine().killed(f"/{os.path.basename(top)}")
    if names := loaded(f"{prefix}*"):
        call("stop", *names, check=False)
        call("reset-failed", *names, check=False)
    for _ in patience.turns():
        if not (tops := cgroups(prefix)):
            break
        subprocess.run(["find", *tops, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], capture_output=True,
                       check=False)
    for path in map(pathlib.Path, kept(prefix)):
        for file in path.iterdir() if path.is_dir() else ():
            file.unlink()
        path.rmdir() if path.is_dir() else path.unlink()
