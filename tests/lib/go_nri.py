"""Programs in Go, built by tests/nri/build: a runtime that embeds NRI as containerd does, and a small plugin.

    runtime = go_nri.Runtime(directory / "nri.sock", directory / "log")
    runtime.wait('plugin "10-podqos" connected')
    adjust = runtime.call("CreateContainer", pod, container)["adjust"]
    runtime.kill()

Pods and containers are NRI's messages in the JSON of protobuf. The programs are in PODQOS_GO_NRI, or are built when they
are asked for.
"""

import functools
import json
import os
import pathlib
import subprocess
import unittest

import patience as patient

BUILD = pathlib.Path(__file__).resolve().parents[1] / "nri/build"
SKIPPED = 77


class Refused(AssertionError):
    """What the runtime was told to do has failed; the text is NRI's."""


@functools.cache
def built(*words):
    """The directory of the programs that `build` makes; skips the calling test where they cannot be had."""
    done = subprocess.run([BUILD, *words], capture_output=True, text=True, check=False)
    if done.returncode == SKIPPED:
        raise unittest.SkipTest(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(f"tests/nri/build: exit {done.returncode}\n{done.stderr}")
    return pathlib.Path(done.stdout.strip())


def programs():
    """The directory of runtime and plugin."""
    given = os.environ.get("PODQOS_GO_NRI")
    return pathlib.Path(given) if given else built()


class Runtime:
    """A process with one runtime, or several of different names (see tests/nri/runtime/main.go)."""

    def __init__(self, socket, log, **options):
        """`log` is a file, which may hold the words of those before it."""
        self.log, self.said_before = log, log.stat().st_size if log.exists() else 0
        with log.open("ab") as stderr:
            self.process = subprocess.Popen([programs() / "runtime"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=stderr, text=True, cwd="/")
        try:
            self.start(socket, **options)
        except BaseException:
            self.kill()
            raise

    def start(self, socket, runtime="", name="containerd", version="v1.7.24", patience=0):
        """NRI of one more runtime; the version is what it tells plugins of itself. It waits for an answer as long as
        containerd does, or that many seconds."""
        self.ask(do="start", runtime=runtime, socket=str(socket), name=name, version=version, plugins="/nowhere",
                 configs="/nowhere", patience=patience)

    def send(self, **command):
        """Without waiting for the answer."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError("the runtime has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def ask(self, **command):
        self.send(**command)
        return self.receive()

    def tell(self, pods, containers, runtime=""):
        """What every plugin is told from now on when it connects."""
        self.ask(do="tell", runtime=runtime, pods=pods, containers=containers)

    def call(self, method, pod, container=None, **more):
        """The plugins' answer: {"adjust", "updates", "ns", "sent"}."""
        return self.ask(do="call", method=method, pod=pod, container=container or {}, **more)

    def wait(self, text, times=1):
        """Until NRI has logged the text so often."""
        patient.expect(lambda: self.log.read_bytes()[self.said_before:].count(text.encode()) >= times,
                       f"{text!r} in {self.log}")

    def synchronized(self, runtime=""):
        """How each synchronization of a plugin has ended: {"ns", "error"}."""
        return self.ask(do="synchronized", runtime=runtime).get("synchronized", [])

    def kill(self):
        """Without a word to anybody, as a runtime dies."""
        self.process.kill()
        self.process.communicate()


class Plugin:
    """The small plugin in Go, connected to a runtime."""

    def __init__(self, socket, index="10", **options):
        given = {"socket": socket, "index": index, "name": "other", **options}
        words = [f"-{option}={value}" for option, value in given.items()]
        self.process = subprocess.Popen([programs() / "plugin", *words], stderr=subprocess.DEVNULL, cwd="/")

    def stop(self):
        self.process.kill()
        self.process.wait()
