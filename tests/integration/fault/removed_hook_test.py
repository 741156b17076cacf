"""What stands in the hook's place after a removal: which processes keep it there.

The functions of packaging/removal/removed-hook that look for callers, without the rest of the script.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402

SCRIPT = harness.REPOSITORY / "packaging/removal/removed-hook"
UNUSED = "0123456789abcdef"  # no container's id
NOBODY = 65534


class Callers(unittest.TestCase):

    def setUp(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="podqos-removed-hook-"))
        self.addCleanup(shutil.rmtree, directory)
        directory.chmod(0o755)
        self.conmon = shutil.copy("/usr/bin/sleep", directory / "conmon")

    def start(self, program, first, user=0):
        """A process with the wrapper in its arguments, as conmon has it behind -r."""
        running = subprocess.Popen([first, "60"], executable=program, user=user)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return f"/proc/{running.pid}/cmdline"

    def callers(self):
        text = SCRIPT.read_text(encoding="utf-8")
        functions = text[text.index("# is_roots "):text.index("# sweep ID")]
        done = subprocess.run(["sh", "-u", "-c", f"{functions}\ncallers {UNUSED}"], capture_output=True, text=True,
                              check=True, timeout=harness.CALL_TIMEOUT)
        return done.stdout.split()

    def test_only_processes_of_root_count(self):
        monitor = self.start(self.conmon, "/usr/bin/podqos-runtime")
        others = [self.start("/usr/bin/sleep", "podqos-runtime", NOBODY),
                  self.start(self.conmon, "podqos-runtime", NOBODY)]
        found = self.callers()
        self.assertIn(monitor, found)
        for each in others:
            self.assertNotIn(each, found)


if __name__ == "__main__":
    harness.main(("runc",))
