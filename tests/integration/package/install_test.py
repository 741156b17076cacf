"""What cmake --install puts where, and that all that names an installed file names one that is there."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402

BUILD = harness.BIN.parent
VERSION = re.search(r"VERSION ([\d.]+) LANG", (harness.REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
NAMED = re.compile(r"/usr/[\w./-]*podqos[\w./-]*")
# What CRI-O reads of the tables in podqos's examples: the toml tags of its pkg/config and internal/config/nri. CRI-O
# passes over a key that it does not know, so that one with a slip in it would do nothing, and say nothing.
CRIO = {
    "crio": {"runtime", "nri"},
    "crio.runtime": {"cgroup_manager", "conmon_cgroup", "default_runtime", "hooks_dir", "runtimes"},
    "crio.runtime.runtimes.podqos": {"runtime_path", "runtime_type", "runtime_root", "monitor_path"},
    "crio.nri": {"enable_nri", "nri_listen", "nri_plugin_dir", "nri_plugin_config_dir",
                 "nri_plugin_registration_timeout", "nri_plugin_request_timeout", "nri_disable_connections"},
}
CONTAINERD_NRI = {"disable", "disable_connections", "socket_path", "plugin_path", "plugin_config_path",
                  "plugin_registration_timeout", "plugin_request_timeout"}
# A line that is a setting once its comment sign is gone.
COMMENTED = re.compile(r"^# (?=\w+ = )", re.MULTILINE)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="podqos-test-install-")))
        cls.install()

    @classmethod
    def install(cls):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": str(cls.root)})

    def test_programs(self):
        hook = self.root / "usr/libexec/oci/hooks.d/podqos-hook"
        for program in (hook, self.root / "usr/bin/podqosctl"):
            answer = subprocess.run([program, "--version" if program == hook else "version"], capture_output=True,
                                    text=True, check=True)
            self.assertIn(VERSION, answer.stdout)
        wrapper = self.root / "usr/bin/podqos-runtime"
        self.assertEqual(os.readlink(wrapper), "../libexec/oci/hooks.d/podqos-hook")
        self.assertEqual(wrapper.resolve(), hook)

    def test_names_lead_to_files(self):
        share = self.root / "usr/share"
        texts = [*share.glob("podqos/**/*.json"), *share.glob("containers/oci/hooks.d/*.json"),
                 *share.glob("doc/podqos*/examples/**/*"), *share.glob("podqos/containers.conf.d/*")]
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
        drop_in = tomllib.loads((share / "podqos/containers.conf.d/zz-podqos.conf").read_text(encoding="utf-8"))
        self.assertEqual(drop_in["engine"]["hooks_dir"], ["/usr/share/podqos/podman-hooks.d", {"append": True}])

    def examples(self, package, pattern):
        """{name: content} of examples in TOML, with what stands in comments to be taken in."""
        found = {}
        for file in (self.root / "usr/share/doc" / package / "examples").glob(pattern):
            found[file.name] = tomllib.loads(COMMENTED.sub("", file.read_text(encoding="utf-8")))
        return found

    def assert_crio_knows(self, table, content):
        self.assertEqual(set(content) - CRIO[table], set(), f"keys of [{table}]")
        for key, value in content.items():
            below = f"{table}.{key}"
            if key == "runtimes":
                for name, runtime in value.items():
                    self.assert_crio_knows(f"{below}.{name}", runtime)
            elif isinstance(value, dict):
                self.assert_crio_knows(below, value)

    def test_crio_reads_its_examples(self):
        found = {**self.examples("podqos", "cri-o/*"), **self.examples("podqos-nri", "cri-o/*")}
        self.assertEqual(set(found), {"50-podqos.conf", "60-podqos-nri.conf"})
        for content in found.values():
            self.assertEqual(set(content), {"crio"})
            self.assert_crio_knows("crio", content["crio"])
        runtime = found["50-podqos.conf"]["crio"]["runtime"]
        self.assertIn(runtime["cgroup_manager"], ("systemd", "cgroupfs"))
        self.assertIn(runtime["default_runtime"], runtime["runtimes"])
        self.assertEqual(runtime["runtimes"]["podqos"]["runtime_type"], "oci")
        nri = found["60-podqos-nri.conf"]["crio"]["nri"]
        self.assertEqual(nri, {"enable_nri": True, "nri_listen": "/var/run/nri/nri.sock",
                               "nri_disable_connections": False})

    def test_containerd_reads_its_example_of_nri(self):
        content = self.examples("podqos-nri", "containerd/*")["nri.toml"]
        self.assertEqual(set(content), {"plugins"})
        self.assertEqual(list(content["plugins"]), ["io.containerd.nri.v1.nri"])
        nri = content["plugins"]["io.containerd.nri.v1.nri"]
        self.assertEqual(set(nri) - CONTAINERD_NRI, set())
        self.assertEqual((nri["disable"], nri["disable_connections"], nri["socket_path"]),
                         (False, False, "/var/run/nri/nri.sock"))

    def test_hooks_are_such_as_crio_loads(self):
        """CRI-O does not start beside one with a stage or a version that it does not know."""
        for file in (self.root / "usr/share/containers/oci/hooks.d").iterdir():
            hook = json.loads(file.read_text(encoding="utf-8"))
            self.assertEqual(set(hook), {"version", "hook", "when", "stages"}, file.name)
            self.assertEqual(hook["version"], "1.0.0")
            self.assertLessEqual(set(hook["hook"]), {"path", "args", "env", "timeout"})
            self.assertTrue(os.path.isabs(hook["hook"]["path"]))
            self.assertLessEqual(set(hook["stages"]), {"prestart", "createRuntime", "createContainer", "startContainer",
                                                       "poststart", "poststop"})
            self.assertLessEqual(set(hook["when"]), {"always", "annotations", "commands", "hasBindMounts", "or"})

    def test_shipped_configuration_changes_nothing(self):
        shipped = self.root / "etc/podqos/podqos.json"
        self.assertTrue((self.root / "etc/podqos/conf.d").is_dir())
        empty = self.root / "empty.json"
        empty.write_text("{}", encoding="utf-8")
        shown = [subprocess.run([self.root / "usr/bin/podqosctl", "--config", file, "config", "show"],
                                capture_output=True, check=True).stdout for file in (shipped, empty)]
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
        for script in ("bash-completion/completions/podqosctl", "zsh/site-functions/_podqosctl",
                       "fish/vendor_completions.d/podqosctl.fish"):
            self.assertTrue((share / script).is_file(), script)
        pages = {page.name: page.read_text(encoding="utf-8") for page in share.glob("man/man*/*")}
        self.assertEqual(sorted(pages), ["podqos-hook.8", "podqos-nri.8", "podqos-runtime.8", "podqos.json.5", "podqosctl.1"])
        # Debian 13's lintian warns of each: its groff has no such font.
        self.assertEqual([name for name, text in pages.items() if "\\f[C" in text], [])
        # It also warns of the narrow columns that pandoc makes of a table.
        self.assertEqual([name for name, text in pages.items() if "\n.TS" in text], [])
        self.assertIn("jq \\[aq].pods", pages["podqosctl.1"], "an unescaped quote becomes a typographic one")


if __name__ == "__main__":
    unittest.main(verbosity=2)
