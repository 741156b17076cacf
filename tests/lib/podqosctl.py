"""podqosctl for tests that need no root: the program of --bin DIR, else of PODQOS_BIN, else of the release build."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "--bin" in sys.argv:
    at = sys.argv.index("--bin")
    os.environ["PODQOS_BIN"] = sys.argv[at + 1]
    del sys.argv[at : at + 2]
BIN = pathlib.Path(os.environ.get("PODQOS_BIN", ROOT / "build" / "release" / "bin"))


def ctl(*args, stdin="", check=True):
    """Runs podqosctl; text in, text out."""
    done = subprocess.run([BIN / "podqosctl", *args], input=stdin, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"podqosctl {args}: {done.returncode}: {done.stderr}")
    return done


@contextlib.contextmanager
def config_file(**settings):
    """The path of a configuration with these fields, and a state directory that is not there."""
    with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
        file = pathlib.Path(directory) / "podqos.json"
        file.write_text(json.dumps({"stateDir": f"{directory}/absent", **settings}), encoding="utf-8")
        file.chmod(0o644)
        yield str(file)
