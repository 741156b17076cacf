"""The line that tells on a terminal what a slow podqosctl waits for, and that nothing else ever sees it."""

import concurrent.futures
import fcntl
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import terminal  # noqa: E402

ERASED = "\r\x1b[K"
SLOW = "#!/bin/sh\nsleep 1.8\necho crio version 1.24.1\n"  # less than `status` waits for each
WAITING = r"(\r\d+ s: waiting for crio\x1b\[K)+"


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

    def run_on(self, columns, *command, **others):
        """Exit status, and what the terminal was sent."""
        return terminal.run([*self.mounted, *command], columns, **others)

    def test_on_a_terminal(self):
        report = str(pathlib.Path(self.tmp) / "node.html")
        commands = (("doctor",), ("doctor", "-o", "json"), ("report", "--output", report))
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            shown = list(pool.map(lambda words: self.run_on(80, *self.ctl, *words)[1], commands))
        for words, text in zip(commands, shown):
            with self.subTest(words):
                line, end, after = text.rpartition(ERASED)
                self.assertRegex(line, f"^{WAITING}")
                self.assertEqual(end, ERASED)
                # Only the line comes before its end, and nothing of it after.
                self.assertEqual(re.sub(r"\r\d+ s: [a-z, ]*(crio)?\x1b\[K", "", line), "")
                self.assertNotIn(" s: ", after)
        self.assertIn("measuring usage for a second", shown[-1])

    def test_lock_on_a_narrow_terminal(self):
        self.podqos.settings["lockDeadline"] = "2s"
        command = [str(harness.CTL), "--config", str(self.podqos.config()), "describe", "none"]
        with (self.podqos.state / "lock").open("w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            text = terminal.run(command, 20)[1]
        self.assertRegex(text, "^\r\\d+ s: reading pods, …\x1b\\[K.*\r\x1b\\[Kpodqosctl: lock ")

    def test_interrupted(self):
        """Both processes end, and the line is erased."""
        command = ["setsid", "--ctty", *self.mounted, *self.ctl, "doctor"]
        status, text = terminal.run(command, 80, keys={"waiting": "\x03"})
        self.assertEqual(status, -signal.SIGINT)
        self.assertRegex(text, f"^{WAITING}(\\^C)?\r\x1b\\[K(\\^C)?$")

    def test_not_on_a_terminal(self):
        """Not one byte more, to whichever of the two is no terminal; nor to one that knows no sequences."""
        doctor = " ".join([*self.ctl, "doctor", "--color", "never"])
        commands = ((f"{doctor} | cat", "xterm"), (f"{doctor} 2>&1 | cat", "xterm"),
                    (f"{doctor} 2>{self.tmp}/err; cat {self.tmp}/err", "xterm"), (doctor, "dumb"))
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            shown = list(pool.map(lambda each: self.run_on(80, "sh", "-c", each[0], TERM=each[1])[1], commands))
        for text in shown:
            self.assertNotRegex(text, "[\r\x1b]| s: ")
            self.assertEqual(text.splitlines()[0], "kernel")


if __name__ == "__main__":
    harness.main()
