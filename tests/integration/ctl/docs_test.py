"""What README.md and docs show of podqos is what podqos does now. The tutorial has a test of its own."""

import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import tree_picture  # noqa: E402

TROUBLESHOOTING = harness.REPOSITORY / "docs/troubleshooting.md"
README = harness.REPOSITORY / "README.md"
PICTURE = harness.REPOSITORY / "docs/tree.svg"
SOURCE = re.compile(r" +\[[^]]*\]$")  # at the end of a line of explain: where the rule stands


class Explain(unittest.TestCase):
    """README's explain."""

    def setUp(self):
        text = README.read_text(encoding="utf-8")
        self.commands = re.findall(r"^    podqosctl (explain .*)$", text, re.MULTILINE)
        self.shown = re.findall(r"^    (.* {2,}= .*)$", text, re.MULTILINE)

    def test_prints_what_is_shown(self):
        self.assertEqual((len(self.commands), len(self.shown)), (1, 4))
        words = [str(README.parent / word) if word.startswith("examples/") else word for word in self.commands[0].split()]
        # README leaves out sources, and what comes behind an ellipsis; columns are as wide as their widest cell.
        printed = [re.sub(" {2,}", "  ", SOURCE.sub("", line)) for line in self.explain(words)]
        for line in self.shown:
            begin, ellipsis, _ = re.sub(" {2,}", "  ", line).partition("…")
            found = [p for p in printed if (p.startswith(begin) if ellipsis else p == begin)]
            self.assertEqual(len(found), 1, f"{line}\nis not in\n" + "\n".join(printed))

    def explain(self, words):
        done = subprocess.run([harness.CTL, *words], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()


class Troubleshooting(unittest.TestCase):
    """The page says of a warning only what the programs say."""

    def test_quotes_warnings(self):
        files = [file for folder in ("common", "ctl") for file in (harness.REPOSITORY / folder).rglob("*.[ch]*")]
        source = "".join(file.read_text(encoding="utf-8") for file in files)
        literals = re.sub(r'"\s*\n\s*"', "", source)
        text = TROUBLESHOOTING.read_text(encoding="utf-8").partition("\n## Warnings\n")[2].partition("\n## ")[0]
        quoted = re.findall(r"^\| `([^`]*)` \|", text, re.MULTILINE)
        self.assertGreater(len(quoted), 10)
        self.assertEqual([words for words in quoted if words not in literals], [])


class Picture(unittest.TestCase):
    """docs/tree.svg is what tests/lib/tree_picture.py draws of the demo."""

    def test_shows_the_demo(self):
        # With crun: runc's own start takes half a minute of the slow guest under the demo's quotas.
        done = guest.Guest("v2").run_test(harness.REPOSITORY / "tests/lib/demo.py", "crun")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(tree_picture.draw(done.stdout), PICTURE.read_text(encoding="utf-8"), done.stdout)


if __name__ == "__main__":
    harness.main(("runc",))
