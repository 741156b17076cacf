"""What Go, and so runc, reads of config.json at random, beside what podqos does with it: tests/fuzz/go/config."""

import os
import pathlib
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "lib"))

import go_nri  # noqa: E402
import harness  # noqa: E402

# The same texts in every run, so that a red run means a change.
SEED = os.environ.get("PODQOS_CONFIG_SEED", "1")
COUNT = os.environ.get("PODQOS_CONFIGS", "20000")


class Configs(unittest.TestCase):
    def test_each(self):
        compare = go_nri.built(str(TESTS / "fuzz/go"), "config") / "config"
        bundles = sorted((TESTS / "data/bundles").glob("*.json"))
        done = subprocess.run([compare, harness.BIN / "podqos_read_config", SEED, COUNT, *bundles], capture_output=True,
                              text=True, errors="replace", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(done.stdout.strip(), end=" ")


if __name__ == "__main__":
    harness.main(kinds=("runc",))
