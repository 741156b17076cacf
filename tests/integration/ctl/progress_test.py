"""The line that tells on a terminal which program podqosctl waits for, and that nothing else ever sees it."""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import terminal  # noqa: E402

LINE = "\rwaiting for crio\x1b[K"
ERASED = "\r\x1b[K"
SLOW = "#!/bin/sh\nsleep 1\necho crio version 1.24.1\n"


@harness.runc_only
class Progress(harness.TestCase):
    """With a CRI-O that takes its time to tell its version, which this test alone sees."""

    def setUp(self):
        super().setUp()
        programs = pathlib.Path(self.tmp) / "programs"
        programs.mkdir()
        (programs / "crio").write_text(SLOW, encoding="ascii")
        (programs / "crio").chmod(0o755)
        self.podqos.state.mkdir(0o700)
        self.ctl = [str(harness.CTL), "--config", str(self.podqos.config())]
        self.mounted = ["unshare", "--mount", "sh", "-c",
                        f"mount --bind {programs} /usr/local/sbin && exec \"$@\"", "sh"]

    def run_on(self, *command, **others):
        """Exit status, and what the terminal was sent."""
        return terminal.run([*self.mounted, *command], 80, **others)

    def test_on_a_terminal(self):
        for words in (("doctor",), ("doctor", "-o", "json")):
            with self.subTest(words):
                lines, end, after = self.run_on(*self.ctl, *words)[1].rpartition(ERASED)
                self.assertIn(LINE, lines)
                self.assertEqual(end, ERASED)
                # Only such lines come before the last one's end, and none after.
                self.assertTrue(all(each.startswith("waiting for ") for each in
                                    filter(None, lines.replace("\x1b[K", "").split("\r"))), lines)
                self.assertNotIn("waiting for", after)

    def test_interrupted(self):
        command = ["setsid", "--ctty", *self.mounted, *self.ctl, "doctor"]
        status, text = terminal.run(command, 80, keys={"waiting for crio": "\x03"})
        self.assertEqual(status, -signal.SIGINT)
        self.assertIn(LINE, text)

    def test_not_on_a_terminal(self):
        """Not one byte more, to whichever of the two is no terminal; nor to one that knows no sequences."""
        doctor = " ".join([*self.ctl, "doctor", "--color", "never"])
        for command, term in ((f"{doctor} | cat", "xterm"), (f"{doctor} 2>&1 | cat", "xterm"),
                              (f"{doctor} 2>{self.tmp}/err; cat {self.tmp}/err", "xterm"), (doctor, "dumb")):
            text = self.run_on("sh", "-c", command, TERM=term)[1]
            self.assertNotRegex(text, "[\r\x1b]|waiting")
            self.assertEqual(text.splitlines()[0], "kernel")


if __name__ == "__main__":
    harness.main()
