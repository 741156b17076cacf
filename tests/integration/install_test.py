"""What cmake --install puts where, and that all that names an installed file names one that is there."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import harness  # noqa: E402

BUILD = harness.BIN.parent
VERSION = re.search(r"VERSION ([\d.]+) LANG", (harness.REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
NAMED = re.compile(r"/usr/[\w./-]*podqos[\w./-]*")


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="podqos-test-install-")
        cls.root = pathlib.Path(cls.place.name)
        # A build directory may have been configured for another place.
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"],
                       env={**os.environ, "DESTDIR": str(cls.root)}, check=True, stdout=subprocess.DEVNULL, timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_programs(self):
        hook = self.root / "usr/libexec/podqos/podqos-hook"
        for program in (hook, self.root / "usr/bin/podqosctl"):
            answer = subprocess.run([program, "--version" if program == hook else "version"], capture_output=True,
                                    text=True, check=True, timeout=10)
            self.assertIn(VERSION, answer.stdout)
        wrapper = self.root / "usr/bin/podqos-runtime"
        self.assertEqual(os.readlink(wrapper), "../libexec/podqos/podqos-hook")
        self.assertEqual(wrapper.resolve(), hook)

    def test_names_lead_to_files(self):
        share = self.root / "usr/share"
        texts = [*share.glob("podqos/**/*.json"), *share.glob("doc/podqos/examples/**/*")]
        named = {(file.name, path) for file in texts if file.is_file()
                 for path in NAMED.findall(file.read_text(encoding="utf-8"))}
        self.assertGreaterEqual(len(named), 6)
        self.assertEqual([pair for pair in sorted(named) if not (self.root / pair[1].lstrip("/")).exists()], [])

    def test_manuals_and_completion(self):
        share = self.root / "usr/share"
        self.assertTrue((share / "bash-completion/completions/podqosctl").is_file())
        pages = sorted(page.name for page in share.glob("man/man*/*"))
        self.assertEqual(pages, ["podqos-hook.8", "podqos-runtime.8", "podqos.json.5", "podqosctl.1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
