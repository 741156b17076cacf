"""All that is set in a tree of cgroups, read from the kernel and from systemd, so that two of them can be compared.

    before = cgroup_settings.read("/kubepods", names)     # {"where, what": value}
    cgroup_settings.differences(before, cgroup_settings.read("/kubepods", names))

What counts or measures is left out. `names` is {id of a container: how it is called}, for an engine draws new ids.
"""

import os
import pathlib
import re

import machine as machines
import patience
import units

# Files that tell of use, or can only be written.
MEASURED = re.compile(r".*\.(current|peak|stat|stat\.local|events|events\.local|numa_stat|pressure|reclaim)"
                      r"|cgroup\.(procs|threads|kill)")
# Properties of a unit that tell of use, of time or of this very start.
VOLATILE = re.compile(r".*(Timestamp|TimestampMonotonic|Current|Peak|NSec|Available|IOReadBytes|IOReadOperations"
                      r"|IOWriteBytes|IOWriteOperations|InvocationID|ControlGroupId|Job)"
                      r"|IP(In|E)gress(Bytes|Packets)|TasksCurrent")
RUNTIME = re.compile(r"$|(/\S*/)?(runc|crun)\b")
ID = re.compile(r"[0-9a-f]{64}")


def read(top, names):
    """Everything from a cgroup down: files, owners and attributes, processes' scores, units' properties."""
    def named(text):
        return ID.sub(lambda match: names.get(match[0], match[0]), text)

    found = {}
    for folder, _, files in os.walk(f"/sys/fs/cgroup{top}"):
        where = named(folder.removeprefix("/sys/fs/cgroup"))
        status = os.stat(folder)
        found[f"{where}, directory"] = (f"mode {status.st_mode:o}, owner {status.st_uid}:{status.st_gid}, "
                                        f"attributes {sorted(os.listxattr(folder))}")
        for file in files:
            if not MEASURED.fullmatch(file):
                found[f"{where}, {file}"] = _text(folder, file)
        found[f"{where}, processes"] = str(_processes(folder))
    if top.endswith(".slice"):
        # Lists of units have no order.
        found.update({named(key): " ".join(sorted(named(value).split())) for key, value in _units(top).items()})
    return found


def _text(folder, file):
    try:
        return pathlib.Path(folder, file).read_text(encoding="utf-8").strip()
    except OSError as error:
        return error.strerror


def _processes(folder):
    """[(command, oom_score_adj)], once each of them is what it was started for, and no longer its runtime."""
    for _ in patience.turns():
        found = []
        for pid in pathlib.Path(folder, "cgroup.procs").read_text(encoding="ascii").split():
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ").strip()
            found.append((command, machines.oom_score_adj(pid)))
        if not any(RUNTIME.match(command) for command, _ in found):
            break
    return sorted(found)


def _units(top):
    """Every property of the slice and of those below, and of the scopes of their containers."""
    loaded = [*units.loaded(f"{os.path.basename(top).removesuffix('.slice')}*"), *units.loaded("cri-containerd-*")]
    found = {}
    for block in units.call("show", *loaded).strip().split("\n\n") if loaded else ():
        properties = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if properties["Id"].endswith(".scope") and not properties["ControlGroup"].startswith(f"{top}/"):
            continue
        found.update({f"{properties['Id']}, {name}": value for name, value in properties.items()
                      if not VOLATILE.fullmatch(name)})
    return found


def differences(before, after):
    """One sentence for each setting that is not the same; none if all are."""
    return [f"{key}: {before.get(key, 'is not there')!r}, then {after.get(key, 'is not there')!r}"
            for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
