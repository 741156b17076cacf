"""Waiting that a busy machine does not end too soon.

A deadline of the wall clock says nothing about what waits: beside twenty other processes that compute, all takes twenty
times as long. So a turn of waiting counts as long as it was meant to be, not as long as it took, and in each turn this
machine has to get a process started and ended as well, which takes the longer, the busier it is.

One patience is for all, many times what anything takes that is waited for here. A program that is no more than a step
of a test is waited for without an end: ctest has one for the test (TIMEOUT).
"""

import subprocess
import tempfile
import time

PATIENCE = 600  # seconds; only a test that fails waits for them
TURN = 0.05  # seconds


def turns(seconds=PATIENCE, pause=time.sleep, length=TURN):
    """Yields once at the beginning and after each turn, until turns of so many seconds are over."""
    yield
    for _ in range(round(seconds / length)):
        pause(length)
        subprocess.run(["/bin/true"], check=True, stdin=subprocess.DEVNULL)
        yield


def until(condition, seconds=PATIENCE, length=TURN):
    """Returns what `condition` gives: as soon as it is true, or else when the patience ends."""
    found = None
    for _ in turns(seconds, length=length):
        if found := condition():
            break
    return found


def expect(condition, what):
    """Returns what `condition` gives as soon as it is true."""
    return wait_for(condition, PATIENCE, what)


def wait_for(condition, seconds, what):
    """expect() with another patience."""
    if found := until(condition, seconds):
        return found
    raise AssertionError(f"{what}: not in {seconds} s")


def capture(command, stdin=b""):
    """Runs a program to its end; what it writes is in stdout and stderr, in bytes."""
    return subprocess.run(command, input=stdin or b"", capture_output=True, check=False)


def call(command, stdin=None, cwd=None):
    """capture() with text. What is written goes to files: a container that stays would keep a pipe open."""
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {
        "input": stdin.encode() if isinstance(stdin, str) else stdin}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run(list(map(str, command)), stdout=out, stderr=err, cwd=cwd, check=False, **given)
        for stream in (out, err):
            stream.seek(0)
        said = (stream.read().decode("utf-8", "replace") for stream in (out, err))
        return subprocess.CompletedProcess(done.args, done.returncode, *said)
