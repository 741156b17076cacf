"""What cmake --install puts where, and that all that names an installed file names one that is there."""

import json
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
        cls.install()

    @classmethod
    def install(cls):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": str(cls.root)}, timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_programs(self):
        hook = self.root / "usr/libexec/oci/hooks.d/podqos-hook"
        for program in (hook, self.root / "usr/bin/podqosctl"):
            answer = subprocess.run([program, "--version" if program == hook else "version"], capture_output=True,
                                    text=True, check=True, timeout=10)
            self.assertIn(VERSION, answer.stdout)
        wrapper = self.root / "usr/bin/podqos-runtime"
        self.assertEqual(os.readlink(wrapper), "../libexec/oci/hooks.d/podqos-hook")
        self.assertEqual(wrapper.resolve(), hook)

    def test_names_lead_to_files(self):
        share = self.root / "usr/share"
        texts = [*share.glob("podqos/**/*.json"), *share.glob("containers/oci/hooks.d/*.json"),
                 *share.glob("doc/podqos/examples/**/*"), *self.root.glob("etc/containers/**/*.conf")]
        named = {(file.name, path) for file in texts if file.is_file()
                 for path in NAMED.findall(file.read_text(encoding="utf-8"))}
        self.assertGreaterEqual(len(named), 6)
        self.assertEqual([pair for pair in sorted(named) if not (self.root / pair[1].lstrip("/")).exists()], [])

    def test_only_podman_sees_precreate(self):
        share = self.root / "usr/share"
        stages = {file.name: json.loads(file.read_text(encoding="utf-8"))["stages"]
                  for file in share.glob("containers/oci/hooks.d/*")}
        self.assertEqual(stages, {"50-podqos-createruntime.json": ["createRuntime"],
                                  "50-podqos-poststop.json": ["poststop"]})
        self.assertTrue((share / "podqos/podman-hooks.d/50-podqos-precreate.json").is_file())
        drop_in = self.root / "etc/containers/containers.conf.d/50-podqos.conf"
        self.assertIn('"/usr/share/podqos/podman-hooks.d"', drop_in.read_text(encoding="utf-8"))

    def test_shipped_configuration_changes_nothing(self):
        shipped = self.root / "etc/podqos/podqos.json"
        self.assertTrue((self.root / "etc/podqos/conf.d").is_dir())
        empty = self.root / "empty.json"
        empty.write_text("{}", encoding="utf-8")
        shown = [subprocess.run([self.root / "usr/bin/podqosctl", "--config", file, "config", "show"],
                                capture_output=True, check=True, timeout=10).stdout for file in (shipped, empty)]
        self.assertEqual(shown[0], shown[1])

    def test_configuration_of_the_operator_stays(self):
        own = self.root / "etc/podqos/podqos.json"
        shipped = own.read_bytes()
        own.write_bytes(b'{"scope": "annotated"}')
        self.install()
        self.assertEqual(own.read_bytes(), b'{"scope": "annotated"}')
        own.unlink()
        self.install()
        self.assertEqual(own.read_bytes(), shipped)

    def test_manuals_and_completion(self):
        share = self.root / "usr/share"
        self.assertTrue((share / "bash-completion/completions/podqosctl").is_file())
        pages = sorted(page.name for page in share.glob("man/man*/*"))
        self.assertEqual(pages, ["podqos-hook.8", "podqos-nri.8", "podqos-runtime.8", "podqos.json.5", "podqosctl.1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
