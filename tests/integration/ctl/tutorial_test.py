"""docs/tutorial.md: each of its commands is run, and prints what the tutorial shows.

A block of the tutorial that is marked "sh" holds commands. A block marked "text" right behind it holds all that they
print; where there is none, they print nothing. They run one after another in one shell, which ends with the first that
fails, in a guest as small as the tutorial asks for: here this file only boots it, there it runs again.
"""

import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import shown  # noqa: E402

TUTORIAL = harness.REPOSITORY / "docs/tutorial.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```\n(\n?)", re.MULTILINE | re.DOTALL)


def steps(text):
    """[(line number, commands, output)] of the tutorial."""
    found = []
    for block in BLOCK.finditer(text):
        kind, content, line = block[1], block[2], text.count("\n", 0, block.start()) + 1
        if kind == "sh":
            found.append((line, content, ""))
            behind = block.end()
        elif found and block.start() == behind and not found[-1][2]:
            found[-1] = (*found[-1][:2], content)
        else:
            raise ValueError(f"line {line}: no commands stand right before this output")
    return found


class Blocks(unittest.TestCase):
    """What counts as a command and as its output."""

    def test_output_belongs_to_the_commands_before(self):
        text = "a\n```sh\none\n```\n\n```text\n1\n```\n\nb\n\n```sh\ntwo\n```\n"
        self.assertEqual(steps(text), [(2, "one\n", "1\n"), (12, "two\n", "")])

    def test_output_of_nothing(self):
        for text in ("```text\n1\n```\n", "```sh\none\n```\n\nb\n\n```text\n1\n```\n"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                steps(text)

    def test_no_block_is_passed_over(self):
        """A third kind of block, or one that is indented, would not be run."""
        text = TUTORIAL.read_text(encoding="utf-8")
        self.assertEqual(text.count("```"), 2 * sum(2 if output else 1 for _, _, output in steps(text)))


class Comparison(unittest.TestCase):
    """What may differ between two runs, and what may not."""

    TREE = """CGROUP         WEIGHT (SHARES)  CPU limit  MEM now/limit   PIDS  OOM   PID
/kubepods      100 (2597)       -          ~100.9Mi/256Mi  1
└─ besteffort  1 (2)            -          732Ki/-         1     1000  84
"""

    def test_pids_and_usage_change(self):
        """And with them the width of the columns."""
        printed = """CGROUP         WEIGHT (SHARES)  CPU limit  MEM now/limit  PIDS  OOM   PID
/kubepods      100 (2597)       -          ~101Mi/256Mi   4
└─ besteffort  1 (2)            -          ~4.1Mi/-       4     1000  31847
"""
        self.assertIsNone(shown.difference(self.TREE, printed))

    def test_all_else_is_the_same(self):
        for old, new in (("256Mi", "255Mi"), ("~100.9Mi", "~120.9Mi"), ("1000", "999"), ("1 (2)", "2 (2)"),
                         ("  84", ""), ("└─ besteffort", "└─ burstable "), ("732Ki/-", "-/-    ")):
            with self.subTest(new=new):
                self.assertIsNotNone(shown.difference(self.TREE, self.TREE.replace(old, new)))

    def test_percentages(self):
        self.assertIsNone(shown.difference("db 97%, batch 2%\n", "db 98%, batch 1%\n"))
        for other in ("db 93%, batch 2%\n", "db 97%, batch 6%\n", "db 97%, batch\n", "db 97%, job 2%\n"):
            with self.subTest(other=other):
                self.assertIsNotNone(shown.difference("db 97%, batch 2%\n", other))

    def test_lines_outside_of_tables(self):
        self.assertIsNone(shown.difference(self.TREE + "\nPID 1\n", self.TREE + "\nPID 1\n"))
        for more in ("\nPID 2\n", "", "\nPID 1\nmore\n"):
            with self.subTest(more=more):
                self.assertIsNotNone(shown.difference(self.TREE + "\nPID 1\n", self.TREE + more))


class Tutorial(unittest.TestCase):
    """The tutorial from its beginning to its end."""

    maxDiff = None

    def setUp(self):
        self.tmp = pathlib.Path("/root/podqos-tutorial-test")
        self.tmp.mkdir()
        self.steps = steps(TUTORIAL.read_text(encoding="utf-8"))

    def run_steps(self):
        """Exit status of the shell. Of each step that began its output is in a file of its number."""
        script = ["set -e", f"cd {self.tmp}"]
        for number, (_, commands, _) in enumerate(self.steps):
            script += [f"exec >{self.tmp}/{number} 2>&1", commands]
        file = self.tmp / "script"
        file.write_text("\n".join(script), encoding="utf-8")
        return subprocess.run(["bash", file], check=False, stdin=subprocess.DEVNULL).returncode

    def test_commands_and_what_they_print(self):
        status = self.run_steps()
        for number, (line, commands, output) in enumerate(self.steps):
            file = self.tmp / str(number)
            self.assertTrue(file.exists(), f"docs/tutorial.md:{line}: not reached")
            printed = file.read_text(encoding="utf-8")
            where = f"docs/tutorial.md:{line}\n{commands}printed:\n{printed}"
            self.assertIsNone(shown.difference(output, printed), where)
        self.assertEqual(status, 0, "the last commands fail")
        self.assert_nothing_left()

    def assert_nothing_left(self):
        self.assertEqual(machines.Machine().leftovers("/podqos"), [])
        self.assertFalse(pathlib.Path("/etc/podqos/conf.d/tutorial.json").exists())
        left = subprocess.run(["runc", "list", "--quiet"], capture_output=True, text=True, check=True)
        self.assertEqual(left.stdout, "")


class Guests(unittest.TestCase):
    """Where all this is run."""

    def test_on_v2(self):
        done = guest.Guest("v2", mem="640M").run_test(__file__, show=True)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    if guest.inside():
        del Guests, Blocks, Comparison
    else:
        del Tutorial
    harness.main(("runc",))
