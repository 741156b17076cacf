#!/usr/bin/python3
"""Changes the rules of common/core in one place at a time, and lists each change that no test of them notices.

usage: tests/mutation/mutate.py [--seconds N] [--again] PATH...

    PATH         a source, a header or a folder below common/core
    --seconds N  begins with no further change after that time; the next call goes on where this one ended
    --again      tries once more what was not noticed: after tests have been added

The tests are podqos_core_test and, in tests/unit/codec, the comparisons with Kubernetes' own answers.

A comparison loses or gains its equality or is reversed, && becomes ||, + becomes -, * becomes /, std::min std::max, and
the other way round; an integer grows by one. A change that does not compile is not counted. Some make no difference
to any caller: whether a listed one does, is for the reader to say. What was found is kept in build/mutation/found, by the
contents of the changed file.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILD = TREE / "build/mutation"
FOUND = BUILD / "found"
PATIENCE = 5  # seconds for a run of a tenth of one: a loop without an end is noticed
MEMORY = 2 << 30  # bytes for each of the compiler and the tests, for the same reason

TOKEN = re.compile(r"""
    (?P<skipped> //[^\n]* | /\*.*?\*/ | ^[ ]*\#[^\n]* | R"\((?s:.*?)\)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' )
  | (?P<word> (?:std::)?[A-Za-z_]\w* )
  | (?P<number> \d[\w']*(?:\.\d+)? )
  | (?P<operator> <=>|<<|>>|->|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/<>] )""", re.VERBOSE | re.MULTILINE | re.DOTALL)
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
             "+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+="}
REVERSED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
WORDS = {"std::min": "std::max", "std::max": "std::min"}

NINJA = """
cxx = clang++-19 -std=gnu++2b -O0 -w -I{tree}
rule compile
  command = $cxx $flags -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule precompile
  command = $cxx $flags -fpch-instantiate-templates -MD -MF $out.d -x c++-header $in -o $out
  depfile = $out.d
rule link
  command = $cxx -fuse-ld=lld $in -lgmock -lgtest -lgtest_main -o $out
"""
STANDARD = "algorithm array chrono functional map memory optional ranges set string string_view vector".split()
OWN = [*sorted(TREE.glob("common/base/*.h")), *sorted(TREE.glob("common/core/**/*.h"))]
# What is compiled once; all of the project's headers only for a changed source.
PRECOMPILED = {"standard": STANDARD, "source": [*STANDARD, *OWN],
               "tests": ["gmock/gmock.h", "gtest/gtest.h", "nlohmann/json.hpp", *STANDARD]}
DATA = f'-DPODQOS_TEST_DATA=\\"{TREE}/tests/data\\"'
DEFINED = {"core_test": DATA, "answers_test": DATA + r' -DPODQOS_VERSION=\"\"'}
RULES = sorted([*TREE.glob("common/base/*.cpp"), *TREE.glob("common/core/**/*.cpp")])
TESTS = {"core_test": sorted(TREE.glob("tests/unit/core/*_test.cpp")),
         "answers_test": sorted([*TREE.glob("common/codec/*.cpp"), *TREE.glob("tests/unit/codec/*vectors_test.cpp")])}


def object_of(source):
    return f"objects/{source.relative_to(TREE)}.o"


def objects_of(program):
    return [object_of(file) for file in (*RULES, *TESTS[program])]


def prepare():
    """Builds what no change touches: objects of the rules and of the tests."""
    BUILD.mkdir(parents=True, exist_ok=True)
    lines = [NINJA.format(tree=TREE)]
    for kind, included in PRECOMPILED.items():
        headers = "".join(f"#include <{name}>\n" for name in included)
        header = BUILD / f"{kind}.h"
        if not header.exists() or header.read_text(encoding="utf-8") != headers:
            header.write_text(headers, encoding="utf-8")
        lines.append(f"build {kind}.pch: precompile {kind}.h")
    for kind, defined, files in (("standard", DATA, RULES), *(("tests", DEFINED[name], TESTS[name]) for name in TESTS)):
        lines += (f"build {object_of(file)}: compile {file} | {kind}.pch\n  flags = {defined} -include-pch {kind}.pch"
                  for file in files)
    lines += (f"build {program}: link {' '.join(objects_of(program))}" for program in TESTS)
    (BUILD / "build.ninja").write_text("\n".join([*lines, f"default {' '.join(TESTS)} source.pch", ""]), encoding="utf-8")
    subprocess.run(("ninja", "-C", BUILD, "--quiet"), check=True)
    if not all(passes(BUILD / program) for program in TESTS):
        sys.exit("the tests fail without any change")


def passes(program):
    try:
        return subprocess.run((program, "--gtest_fail_fast", "--gtest_brief=1"), capture_output=True, timeout=PATIENCE,
                              check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def changes(text):
    """(offset, what is there, what is put in its place). An operator has space on both sides, as clang-format writes it,
    and so is no pointer, reference, sign or bracket of a template."""
    for token in TOKEN.finditer(text):
        there = token[0]
        if token["operator"] and text[token.start() - 1].isspace() and text[token.end()].isspace() and there in OPERATORS:
            yield token.start(), there, OPERATORS[there]
            if there in REVERSED:
                yield token.start(), there, REVERSED[there]
        elif token["word"] and there in WORDS:
            yield token.start(), there, WORDS[there]
        elif token["number"] and (integer := re.fullmatch(r"(\d[\d']*)([uUlLzZ]*)", there)):
            yield token.start(), there, f"{int(integer[1].replace(chr(39), '')) + 1}{integer[2]}"


class Change:
    def __init__(self, path, text, offset, there, instead):
        self.path = path
        self.text = text[:offset] + instead + text[offset + len(there):]
        self.key = f"{path.relative_to(TREE)} {hashlib.sha256(text.encode()).hexdigest()[:12]} {offset} {instead}"
        number = text.count("\n", 0, offset) + 1
        column = offset - text.rfind("\n", 0, offset)
        line = text.splitlines()[number - 1].strip()
        self.shown = f"{path.relative_to(TREE)}:{number}:{column}: {there} → {instead}: {line}"

    def outcome(self):
        """What becomes of the tests: "noticed", "unnoticed" or, if it does not compile, "refused"."""
        with tempfile.TemporaryDirectory(prefix="change-", dir=BUILD) as place:
            return self.compiled(pathlib.Path(place))

    def compiled(self, place):
        changed = place / self.path.relative_to(TREE)
        changed.parent.mkdir(parents=True)
        changed.write_text(self.text, encoding="utf-8")
        made = {}
        for source in self.readers():
            made[object_of(source)] = target = place / f"{len(made)}.o"
            done = subprocess.run(("clang++-19", "-std=gnu++2b", "-O0", "-w", f"-I{place}", f"-I{TREE}", "-include-pch",
                                   "source.pch" if source == self.path else "standard.pch", "-c",
                                   changed if source == self.path else source, "-o", target),
                                  cwd=BUILD, capture_output=True, check=False)
            if done.returncode != 0:
                return "refused"
        return "unnoticed" if all(self.unnoticed_by(program, place, made) for program in TESTS) else "noticed"

    @staticmethod
    def unnoticed_by(program, place, made):
        # First what was changed: of an inline function the linker takes the first that it sees.
        rest = (each for each in objects_of(program) if each not in made)
        subprocess.run(("clang++-19", "-fuse-ld=lld", *made.values(), *rest, "-lgmock", "-lgtest", "-lgtest_main", "-o",
                        place / program), cwd=BUILD, check=True)
        return passes(place / program)

    def readers(self):
        """The sources that have to be compiled for it."""
        if self.path.suffix == ".cpp":
            return [self.path]
        log = subprocess.run(("ninja", "-C", BUILD, "-t", "deps", *map(object_of, RULES)),
                             check=True, capture_output=True, text=True).stdout
        including = {block.partition(":")[0] for block in log.split("\n\n") if f"    {self.path}\n" in block + "\n"}
        return [file for file in RULES if object_of(file) in including]


def changes_of(paths):
    """Those of headers last: half of the sources have to be compiled for each."""
    files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])}
    for suffix in (".cpp", ".h"):
        for file in sorted(each for each in files if each.suffix == suffix):
            text = file.read_text(encoding="utf-8")
            yield from (Change(file, text, *each) for each in changes(text))


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(todo, found, seconds):
    """Begins a change whenever a processor is free, and keeps what comes of it."""
    end = time.monotonic() + seconds
    pool = concurrent.futures.ProcessPoolExecutor(os.cpu_count(), initializer=limit)
    with pool, FOUND.open("a", encoding="utf-8") as kept:
        waiting = {}
        while True:
            while len(waiting) < os.cpu_count() and time.monotonic() < end and (change := next(todo, None)):
                waiting[pool.submit(change.outcome)] = change
            if not waiting:
                return
            for done in concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED).done:
                key = waiting.pop(done).key
                found[key] = done.result()
                print(found[key], key, file=kept, flush=True)


def report(every, found):
    folders = collections.defaultdict(collections.Counter)
    for change in every:
        folders[str(change.path.parent.relative_to(TREE))][found.get(change.key, "left")] += 1
        if found.get(change.key) == "unnoticed":
            print(change.shown)
    for folder, count in sorted(folders.items()):
        tried = count["noticed"] + count["unnoticed"]
        print(f"{folder}: {count['noticed']} of {tried} noticed ({100 * count['noticed'] / max(tried, 1):.1f} %), "
              f"{count['refused']} do not compile, {count['left']} left")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("path", nargs="+", type=pathlib.Path)
    given = parser.parse_args()
    prepare()
    FOUND.touch()
    lines = (line.partition(" ") for line in FOUND.read_text(encoding="utf-8").splitlines())
    found = {key: outcome for outcome, _, key in lines}
    every = list(changes_of([path.resolve() for path in given.path]))
    wanted = {None, "unnoticed"} if given.again else {None}
    run((change for change in every if found.get(change.key) in wanted), found, given.seconds)
    report(every, found)


main()
