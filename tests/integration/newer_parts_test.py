"""The runtimes that Debian testing has, newer than those of Debian 12 and 13: runc 1.3 and crun 1.28.

They run some cells of the matrix in a guest. Where the archive's testing cannot be had, or has moved on from what the tests
were written for, they are skipped.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402

MATRIX = pathlib.Path(__file__).resolve().parents[1] / "lib/matrix.py"


class Testing(unittest.TestCase):
    def check(self, flavour, file, *arguments):
        machine = guest.Guest(flavour, root="testing", timeout=600)
        machine.require()
        done = machine.run_test(file, *arguments)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, f"{pathlib.Path(file).name} in the guest with testing")

    def test_runtimes(self):
        """They put what they make of shares into cpu.weight by another formula than those of Debian 12."""
        self.check("v2", MATRIX, "cgroupfs", "wrapper")


if __name__ == "__main__":
    harness.main(("runc",))
