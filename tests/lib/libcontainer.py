"""Cgroups of version 2 as the library makes them that a kubelet uses (github.com/opencontainers/cgroups): two drivers.

    driver = libcontainer.Systemd()
    path = driver.path("kubepods", "burstable", "pod1234-abcd")
    driver.create(path, shares=102, quota=20000, memory=128 << 20)
    driver.update(path, quota=30000)               # only what is named is written
    driver.destroy(path)                           # processes and all

It takes the names of a real node, so it works in a guest only.
"""

import os
import pathlib
import subprocess

import guest
import machine as machines
import oracle
import patience
import units

ROOT = pathlib.Path("/sys/fs/cgroup")
ACCOUNTING = [word for what in ("Memory", "CPU", "IO", "Tasks") for word in (f"{what}Accounting", "b", "true")]


class CgroupFs:
    """Directories and their files."""

    name = "cgroupfs"

    def __init__(self):
        if not guest.inside():
            raise RuntimeError("this makes kubepods at the top of the machine: only in a guest")

    def path(self, *parts):
        return "/" + "/".join(parts)

    def folder(self, path):
        return pathlib.Path(f"{ROOT}{path}")

    def exists(self, path):
        return self.folder(path).is_dir()

    def create(self, path, **values):
        """With every controller that the machine has, in all parents too."""
        above = ROOT
        for part in path.strip("/").split("/"):
            for controller in (above / "cgroup.controllers").read_text(encoding="ascii").split():
                (above / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
            above /= part
            above.mkdir(exist_ok=True)
        self.update(path, **values)

    def update(self, path, **values):
        """`values`: shares, quota, memory, pids; None is not written."""
        for file, text in self._files(**values).items():
            (self.folder(path) / file).write_text(text, encoding="ascii")

    def _files(self, shares=None, quota=None, memory=None, pids=None):
        found = {"memory.max": memory, "cpu.weight": shares and machines.linear_weight(shares),
                 "cpu.max": quota and f"{self.quota(quota)} {oracle.PERIOD}", "pids.max": pids}
        return {file: str(value) for file, value in found.items() if value is not None}

    def quota(self, quota):
        """As this driver writes it."""
        return quota

    def destroy(self, path):
        """Kills what runs there, and removes it with all that lies below."""
        machines.Machine().killed(path)
        folders = [pathlib.Path(folder) for folder, _, _ in os.walk(self.folder(path), topdown=False)]
        for folder in folders:
            patience.expect(lambda folder=folder: machines.removed(folder), f"{folder} is removed")


class Systemd(CgroupFs):
    """Slices of systemd, and their files in the same way."""

    name = "systemd"

    def path(self, *parts):
        first, *rest = parts
        path = f"/{first}.slice"
        for part in rest:
            path = machines.child_cgroup(path, part)
        return path

    def create(self, path, **values):
        unit = os.path.basename(path)
        above = os.path.basename(os.path.dirname(path)) or "-.slice"
        self._call("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "replace", "7",
                   "Description", "s", f"libcontainer container {unit}", "Wants", "as", "1", above, *ACCOUNTING,
                   "DefaultDependencies", "b", "false", "0")
        patience.expect(lambda: self.exists(path), f"{unit} is started")
        super().create(path, **values)

    def update(self, path, **values):
        properties = self._properties(**values)
        if properties:
            self._call("SetUnitProperties", "sba(sv)", os.path.basename(path), "true", str(len(properties)),
                       *(word for each in properties for word in each))
        super().update(path, **values)

    def _properties(self, shares=None, quota=None, memory=None, pids=None):
        found = {"MemoryMax": memory, "CPUWeight": shares and machines.linear_weight(shares),
                 "CPUQuotaPeriodUSec": quota and oracle.PERIOD,
                 "CPUQuotaPerSecUSec": quota and self.quota(quota) * 10, "TasksMax": pids}
        return [(name, "t", str(value)) for name, value in found.items() if value is not None]

    def quota(self, quota):
        return oracle.rounded_by_systemd(quota)

    def destroy(self, path):
        machines.Machine().killed(path)
        unit = os.path.basename(path)
        units.call("stop", unit)
        units.call("reset-failed", unit, check=False)
        super().destroy(path)

    @staticmethod
    def _call(method, signature, *arguments):
        subprocess.run(["busctl", "call", "--", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                        "org.freedesktop.systemd1.Manager", method, signature, *arguments],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


DRIVERS = {"cgroupfs": CgroupFs, "systemd": Systemd}
