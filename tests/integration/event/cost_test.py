"""What one event costs, in numbers that do not depend on how busy the machine is; tests/bench measures times."""

import contextlib
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import many  # noqa: E402
import scenario  # noqa: E402
import spawn  # noqa: E402
import syscalls  # noqa: E402
from spawn import Program  # noqa: E402

MEGABYTE = 1_000_000
MOST_CALLS = 190  # system calls of createRuntime


def is_release():
    """Sizes are promised for optimised programs without sanitizers."""
    cache = harness.BIN.parent / "CMakeCache.txt"
    return cache.exists() and "CMAKE_BUILD_TYPE:STRING=Release" in cache.read_text(encoding="utf-8").splitlines()


# The moment before an event of a second container, and its program.


def create_runtime(ground):
    return many.program_for(ground, ground.second_container())


def poststop(ground):
    second = ground.second_container()
    ground.create_runtime(second)
    ground.leave(second)
    return many.poststop_of(ground, second)


def precreate(ground):
    second = ground.container("sidecar")
    config = json.loads((second.bundle / "config.json").read_text(encoding="utf-8"))
    config["linux"]["cgroupsPath"] = f"/machine/libpod-{second.identifier}"
    return Program([*ground.hook, "precreate"], json.dumps(config, separators=(",", ":")).encode(), second.bundle)


def wrapper(ground):
    second = ground.container("sidecar")
    words = ["create", "--bundle", second.bundle, second.identifier]
    return Program([harness.RUNTIME, "--config", ground.config, *words], b"", "/")


@contextlib.contextmanager
def prepared(arrange, **settings):
    """(Scenario, Program)."""
    with scenario.Scenario(arrange.__name__.replace("_", "-"), **settings) as ground:
        ground.first_container()
        yield ground, arrange(ground)


@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Files(unittest.TestCase):
    """Each hook opens a file once at most."""

    def trace(self, ground, program):
        return syscalls.trace(program, ground.tmp / "strace")

    def assert_opens_once(self, ground, program):
        self.assertEqual(syscalls.repeated(syscalls.opened(self.trace(ground, program))), {})

    def test_each(self):
        for arrange in (create_runtime, poststop, precreate):
            with self.subTest(arrange.__name__), prepared(arrange) as event:
                self.assert_opens_once(*event)

    def test_precreate_beside_others_of_one_creator(self):
        """Who creates many containers at once is looked for once."""
        with prepared(precreate) as (ground, program):
            own = program.cwd.name.encode()
            for number in range(3):
                given = program.given.replace(own, own[:-1] + str(number).encode())
                scenario.run(program.argv, input=given, cwd=program.cwd)
            self.assert_opens_once(ground, program)

    def test_create_runtime_reads_no_list_of_mounts(self):
        """Which grows with the containers of a host; the hierarchies of cgroup v1 stand nowhere else."""
        with prepared(create_runtime) as event:
            if any(hierarchy.version == 1 for hierarchy in event[0].machine.hierarchies):
                self.skipTest("needs a host of cgroup v2 alone")
            opened = syscalls.opened(self.trace(*event))
        self.assertNotIn("/proc/self/mountinfo", opened)

    def test_wrapper_and_its_child_read_the_list_of_mounts_once(self):
        with prepared(wrapper) as event:
            opened = syscalls.opened(self.trace(*event))
        self.assertLessEqual(opened.count("/proc/self/mountinfo"), 1)

    def test_create_runtime_makes_few_system_calls(self):
        with prepared(create_runtime) as event:
            self.assertLessEqual(len(self.trace(*event)), MOST_CALLS)

    def test_event_takes_four_system_calls(self):
        """A file is opened beneath the state directory, which is open already, looked at, written and closed."""
        counts = []
        for size in ("4Mi", "0"):
            with prepared(precreate, events={"size": size}) as (ground, program):
                # Whether the heap grows depends on what was allocated before.
                counts.append(sum(call.name != "brk" for call in self.trace(ground, program)))
        self.assertLessEqual(counts[0] - counts[1], 4)


@unittest.skipUnless(is_release(), "only a release build promises its size")
class Size(unittest.TestCase):
    def test_takes_little_memory(self):
        with prepared(create_runtime) as (_, program):
            peak = spawn.peak_memory(program)
        self.assertLessEqual(peak, 6 * MEGABYTE)

    def test_stripped_hook_is_small(self):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
            self.assertLessEqual(many.stripped_size(pathlib.Path(directory)), 3 * MEGABYTE)


class ManyPods(unittest.TestCase):
    """An event costs the same with ten pods as with a thousand, and none gets lost when many come at once."""

    @unittest.skipUnless(shutil.which("valgrind"), "needs valgrind")
    def test_instructions_do_not_grow(self):
        few, thousand, most = map(many.instructions, (10, 1_000, 10_000))
        print(f"{few} with 10 pods, {thousand / few:.2f} times as many with 1,000, {most / few:.2f} with 10,000", end=" ")
        self.assertLessEqual(thousand, 1.2 * few)

    def test_no_update_is_lost(self):
        many.run_many(200, 32)


if __name__ == "__main__":
    harness.main(kinds=("runc",))
