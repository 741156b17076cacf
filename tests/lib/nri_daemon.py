"""podqos-nri as a process of a test's own: its files below one temporary directory, its cgroups below one root."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import nri_peer
import patience

BIN = pathlib.Path(os.environ.get("PODQOS_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"))
PROGRAM = BIN / "podqos-nri"
_counter = itertools.count(1)


class DaemonCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="podqos-test-")))
        self.socket = self.folder / "nri.sock"
        self.log = self.folder / "log"
        self.root = f"/podqos-test-{os.getpid()}-nri-{next(_counter)}"
        self.configure()

    def configure(self, **settings):
        settings = {
            "stateDir": str(self.folder / "state"),
            "cgroupRoot": self.root,  # made with the first pod
            "log": {"sink": str(self.log), "level": "debug"},
            **settings,
        }
        (self.folder / "podqos.json").write_text(json.dumps(settings), encoding="utf-8")

    def start(self, *options, env=None, before=(), **more):
        process = subprocess.Popen(
            [*before, PROGRAM, "--config", self.folder / "podqos.json", *options],
            env=env if env is not None else {},
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()

    def start_at_socket(self, **more):
        return self.start("--socket", self.socket, **more)

    def listen(self):
        runtime = nri_peer.Runtime(self.socket)
        self.addCleanup(runtime.stop)
        return runtime

    def connected(self):
        """A runtime, a plugin, and their connection after the synchronization."""
        runtime = self.listen()
        process = self.start_at_socket()
        return runtime, process, runtime.accept().welcome()

    def stop(self, process):
        process.terminate()
        self.assertEqual(process.wait(), 0)

    def wait_for_log(self, text, times=1):
        if not patience.until(lambda: self.log.exists() and self.log.read_text(encoding="utf-8").count(text) >= times,
                              length=0.01):
            self.fail(f"the log does not say {text!r}:\n{self.log.read_text(encoding='utf-8')}")

    def status(self, process, key):
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(key + ":"):
                return line.split()[1]
        self.fail(key)


def main():
    if not PROGRAM.exists():
        print(f"skipped: {PROGRAM} is not built")
        sys.exit(77)
    unittest.main(verbosity=2)
