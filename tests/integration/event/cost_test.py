"""What one event costs, in numbers that do not depend on how busy the machine is; tests/bench measures times."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "lib"))

import events  # noqa: E402
import harness  # noqa: E402
import many  # noqa: E402
import scenario  # noqa: E402
import spawn  # noqa: E402
import syscalls  # noqa: E402

MEGABYTE = 1_000_000


def is_release():
    """Sizes are promised for optimised programs without sanitizers."""
    cache = harness.BIN.parent / "CMakeCache.txt"
    return cache.exists() and "CMAKE_BUILD_TYPE:STRING=Release" in cache.read_text(encoding="utf-8").splitlines()


@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Files(unittest.TestCase):
    """Each hook opens a file once at most."""

    def test_each(self):
        for kind in (events.CreateRuntime, events.Poststop, events.Precreate):
            with self.subTest(kind.name), kind() as event:
                calls = syscalls.trace(event.program, event.scenario.tmp / "strace")
                self.assertEqual(syscalls.repeated(syscalls.opened(calls)), {})

    def test_create_runtime_reads_no_list_of_mounts(self):
        """Which grows with the containers of a host; where cgroup v1 is in use, a file tells what the first event found."""
        with events.CreateRuntime() as event:
            roots = [os.stat(hierarchy.mount).st_ino for hierarchy in event.scenario.machine.hierarchies]
            if set(roots) != {1}:
                self.skipTest("hierarchies are not mounted as a whole here: what was found is not kept")
            opened = syscalls.opened(syscalls.trace(event.program, event.scenario.tmp / "strace"))
        self.assertNotIn("/proc/self/mountinfo", opened)

    def test_create_runtime_makes_few_system_calls(self):
        with events.CreateRuntime() as event:
            calls = syscalls.trace(event.program, event.scenario.tmp / "strace")
        self.assertLessEqual(len(calls), events.CreateRuntime.most_calls)

    def test_precreate_beside_others_of_one_creator(self):
        """Who creates many containers at once is looked for once."""
        with events.Precreate() as event:
            own = event.second.identifier.encode()
            for number in range(3):
                given = event.program.given.replace(own, own[:-1] + str(number).encode())
                scenario.run(event.program.argv, input=given, cwd=event.program.cwd)
            calls = syscalls.trace(event.program, event.scenario.tmp / "strace")
        self.assertEqual(syscalls.repeated(syscalls.opened(calls)), {})


@unittest.skipUnless(is_release(), "only a release build promises its size")
class Size(unittest.TestCase):
    def test_takes_little_memory(self):
        with events.CreateRuntime() as event:
            peak = spawn.peak_memory(event.program)
        self.assertLessEqual(peak, 6 * MEGABYTE)

    def test_stripped_hook_is_small(self):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
            self.assertLessEqual(many.stripped_size(pathlib.Path(directory)), 3 * MEGABYTE)


class ManyPods(unittest.TestCase):
    """An event costs the same, however many pods there are, and none gets lost when many come at once."""

    @unittest.skipUnless(is_release(), "stepping through a debug build takes minutes")
    def test_instructions_do_not_grow(self):
        self.assertLessEqual(many.instructions(10_000), 1.2 * many.instructions(10))

    def test_no_update_is_lost(self):
        many.run_many(200, 32)


if __name__ == "__main__":
    harness.main(kinds=("runc",))
