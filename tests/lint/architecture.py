"""The architecture holds: who may include whom, what a layer may know, how long a file may be, what it is called."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The rules: kubernetes <- cgroups <- pods <- events; record.h and settings.h in core itself are for the last three.
CORE = {"common/core", *(f"common/core/{folder}" for folder in ("kubernetes", "cgroups", "pods", "events"))}
# Which project headers each folder may include, itself not named.
MAY_INCLUDE = {
    "common/base": set(),
    "common/core": {"common/base", "common/core/kubernetes"},
    "common/core/kubernetes": {"common/base"},
    "common/core/cgroups": {"common/base", "common/core", "common/core/kubernetes"},
    "common/core/pods": {"common/base", "common/core", "common/core/kubernetes", "common/core/cgroups"},
    "common/core/events": {"common/base", *CORE} - {"common/core/events"},
    "common/codec": {"common/base", *CORE},
    "common/sys": {"common/base"},
    "common/cgroup": {"common/base", "common/sys", *CORE},
    "common/store": {"common/base", "common/codec", "common/sys", *CORE},
    "common/app": {f"common/{layer}" for layer in ("base", "codec", "sys", "cgroup", "store")} | CORE,
}
PROGRAMS = ("hook", "ctl", "nri")
# podqosctl reads the node in one folder, and shows it in others.
MUST_NOT_INCLUDE = {
    "ctl/cli": ("ctl/configure/", "ctl/node/", "ctl/view/", "ctl/doctor/", "ctl/explain/", "ctl/act/"),
    "ctl/node": ("ctl/view/", "ctl/doctor/", "ctl/explain/", "ctl/act/"),
}

# The rules are pure: no machine, no clock, no log, no JSON.
IO_HEADERS = (
    "nlohmann/", "spdlog/", "fmt/", "seccomp.h", "unistd.h", "fcntl.h", "sys/", "linux/", "fstream", "iostream",
    "filesystem", "cstdio", "stdio.h", "chrono", "ctime", "time.h", "thread", "mutex", "random")
NO_HEADERS = {
    "common/base": ("nlohmann/", "spdlog/", "fmt/", "seccomp.h", "fstream", "iostream"),
    **dict.fromkeys(CORE, IO_HEADERS),
    "common/codec": tuple(h for h in IO_HEADERS if h != "nlohmann/"),
    "common/sys": ("nlohmann/", "spdlog/", "fmt/"),
    "common/cgroup": ("nlohmann/", "spdlog/", "fmt/"),
    "common/store": ("spdlog/", "fmt/"),
}
# No layer of the product: no streams, no regex; no second way to start a program.
NOWHERE = ("iostream", "fstream", "sstream", "regex")
FORBIDDEN_CALL = re.compile(r"(?<![\w.>:])(?:std::|::)?(system|popen|execvp|execlp|getpwnam|getpwuid|getgrnam)\s*\(")
# What may wait for others stands in these files alone, each with what bounds it; all else waits by sys::Clock::poll().
WAIT = re.compile(r"(?:(?<![\w:])::(?:p?poll|select|epoll_wait|waitp?id|wait|flock|lockf|accept4?|connect|recv(?:msg|from)?|"
                  r"nanosleep|clock_nanosleep|u?sleep|pause|sigwait(?:info)?)\s*\()|(?:sleep_for|sleep_until)\s*\(")
MAY_WAIT = {
    "common/app/departure.cpp": "poststop and reconcile, 1.3 s in all",
    "common/app/log_sinks.cpp": "a time of 0, and a socket that does not block",
    "common/cgroup/discovery.cpp": "a time of 0",
    "common/cgroup/execute_units.cpp": "the 50 ms of a transaction",
    "common/store/event_file.cpp": "LOCK_NB",
    "common/sys/clock.cpp": "its caller's deadline",
    "common/sys/directory.cpp": "its caller's patience",
    "common/sys/file_lock.cpp": "LOCK_NB, or a WakeUp at the deadline",
    "ctl/configure/program.cpp": "its caller's patience; what was killed",
    "ctl/view/events.cpp": "an interval, in which --follow ends with its reader",
    "ctl/view/top.cpp": "the rest of a key that was typed",
    "hook/lifecycle.cpp": "the 5 s of poststop",
    "hook/resources_input.cpp": "a second for who writes to the pipe",
    "hook/sandboxed_child.cpp": "the deadline of a start; what has ended, or was killed before it did anything",
    "hook/wrapper.cpp": "the runtime, in whose place it stands during an update",
    "nri/http_server.cpp": "a socket that does not block",
    "nri/sockets.cpp": "a socket that does not block",
}
MARKER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
MAX_LINES, MAX_TEST_LINES = 400, 650


def layer_of(include):
    """The folder of a file, whose path is relative to the project's root."""
    parts = include.split("/")
    if parts[0] != "common":
        return parts[0]
    depth = 3 if parts[1] == "core" and len(parts) > 3 else 2
    return "/".join(parts[:depth])


def folder_of(path):
    return layer_of(path.relative_to(ROOT).as_posix())


def may_include(folder, layer):
    if layer == folder:
        return True
    if folder in MAY_INCLUDE:
        return layer in MAY_INCLUDE[folder]
    return layer.startswith("common/")


def include_faults(folder, include, angled):
    if not angled:
        if layer_of(include) in (*MAY_INCLUDE, *PROGRAMS) and not may_include(folder, layer_of(include)):
            yield f"{folder} must not include {include}"
        return
    for header in NO_HEADERS.get(folder, ()) + NOWHERE:
        if include == header or (header.endswith("/") and include.startswith(header)):
            yield f"{folder} must not include <{include}>"
            return


def faults_in_folders(path, include):
    folder = path.parent.relative_to(ROOT).as_posix()
    if include.startswith(MUST_NOT_INCLUDE.get(folder, ("\n",))):
        yield f"{folder} must not include {include}"


def faults_in(path):
    text = path.read_text(encoding="utf-8")
    folder, product = folder_of(path), folder_of(path) != "tests"
    lines = text.splitlines()
    limit = MAX_LINES if product else MAX_TEST_LINES
    if path.suffix in (".cpp", ".h", ".py") and len(lines) > limit:
        yield 1, f"{len(lines)} lines, at most {limit}"
    for number, line in enumerate(lines, 1):
        if MARKER.search(line):
            yield number, "marker of unfinished work"
        if path.suffix not in (".cpp", ".h") or not product:
            continue
        found = INCLUDE.match(line)
        if found:
            include = found[1] or found[2]
            for fault in (*include_faults(folder, include, found[2] is not None), *faults_in_folders(path, include)):
                yield number, fault
        elif FORBIDDEN_CALL.search(line.split("//", 1)[0]):
            yield number, "no shell, no PATH lookup, no NSS"
        elif WAIT.search(line.split("//", 1)[0]) and path.relative_to(ROOT).as_posix() not in MAY_WAIT:
            yield number, "waits: use sys::Clock::poll(), or say in MAY_WAIT what bounds it"


def namesakes(files):
    """A file is found by its name; of the programs alone each has a main.cpp."""
    by_name = {}
    for path in files:
        if path.suffix in (".cpp", ".h") and folder_of(path) != "tests" and path.name != "main.cpp":
            by_name.setdefault(path.name, []).append(path)
    for paths in by_name.values():
        for path in paths[1:]:
            yield path, 1, f"{paths[0].relative_to(ROOT)} has the same name"


def main():
    folders = [ROOT / name for name in ("common", "hook", "ctl", "nri", "tests") if (ROOT / name).is_dir()]
    suffixes = {".cpp", ".h", ".py", ".sh", ".txt", ".cmake"}
    files = sorted(p for f in folders for p in f.rglob("*") if p.suffix in suffixes and p.is_file())
    files = [p for p in files if p != pathlib.Path(__file__).resolve()]
    faults = [(p, n, text) for p in files for n, text in faults_in(p)] + list(namesakes(files))
    for path, number, text in faults:
        print(f"{path.relative_to(ROOT)}:{number}: {text}")
    print(f"{len(files)} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
