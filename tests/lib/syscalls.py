"""The syscalls of a program, read from strace's output."""

import collections
import pathlib
import re
import subprocess

LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\w+)(?: .*)?$")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
OPENS = ("openat", "openat2")

Call = collections.namedtuple("Call", "name arguments result pid")


def trace(program, file):
    """Runs a spawn.Program under strace; its calls, execve excepted. `file` keeps strace's own words."""
    command = ["strace", "-f", "-X", "raw", "-xx", "-s", "1048576", "-o", str(file), *map(str, program.argv)]
    done = subprocess.run(command, input=program.given, capture_output=True, check=False, cwd=program.cwd)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"strace {program.argv}: exit {done.returncode}: {done.stderr.decode()}")
    calls = []
    for line in whole_lines(pathlib.Path(file).read_text(encoding="ascii")):
        match = LINE.match(line)
        if match and match[2] != "execve":
            calls.append(Call(match[2], split(match[3]), match[4], match[1]))
        elif "exit_group" in line:
            calls.append(Call("exit_group", ["0"], "?", line.split()[0]))
    return calls


def whole_lines(text):
    """A line for each call: strace splits one in two where another process's call comes in between."""
    begun = {}
    for line in text.splitlines():
        if match := UNFINISHED.match(line):
            begun[match[1]] = match[2]
        elif match := RESUMED.match(line):
            yield f"{match[1]} {begun.pop(match[1])}{match[2]}"
        else:
            yield line


def split(text):
    """The arguments of a call: split at commas outside of quotes and brackets."""
    parts, depth, quoted, current = [], 0, False, ""
    for c in text:
        quoted ^= c == '"'
        if not quoted:
            depth += c in "{["
            depth -= c in "}]"
        if c == "," and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [*parts, current.strip()] if current.strip() else parts


def text_of(argument):
    """The bytes of a string that strace wrote as \\xNN throughout."""
    match = re.match(r'^"((?:\\x[0-9a-f]{2})*)"', argument)
    return bytes.fromhex(match[1].replace("\\x", "")) if match else None


def opened(calls):
    """The absolute path of each open of one process in order, failed ones included: what a file of that name costs."""
    where, paths = {}, []
    for call in calls:
        if call.name in OPENS:
            directory, name = int(call.arguments[0], 0), text_of(call.arguments[1]).decode("utf-8", "replace")
            path = name if name.startswith("/") else f"{where.get(directory, directory)}/{name}"
            paths.append(path)
            if not call.result.startswith("-"):
                where[int(call.result, 0)] = path
    return paths


def repeated(paths):
    """{path: times} of those that come more than once."""
    return {path: n for path, n in collections.Counter(paths).items() if n > 1}
