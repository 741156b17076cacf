"""The Debian package: what is in it, and what becomes of living pods when it is upgraded, removed and purged.

Here the package is built from the programs of PODQOS_BIN and looked at. The life of an installed one passes in a guest,
where this file runs again: real dpkg, real runc and crun, the configuration that the package ships.
"""

import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402
import spdx  # noqa: E402
from package_case import (  # noqa: E402
    BUILD, CONFIGURATION, HOOK, KEPT, STATE, VERSION, WORK, WRAPPER, BuiltCase, LifeCase, PackageCase, RemovalCase, boot,
    output)

CHROOTED = harness.REPOSITORY / "tests/guest/chrooted"
# Where a package may have left something. The whole root would not do: the guest keeps open what it has looked at.
PLACES = ("/etc", "/usr/bin", "/usr/libexec", "/usr/lib/tmpfiles.d", "/usr/share/podqos", "/usr/share/doc/podqos",
          "/usr/share/containers", "/usr/share/man/man1", "/usr/share/man/man5", "/usr/share/man/man8", "/run",
          "/usr/share/bash-completion/completions", "/usr/share/fish/vendor_completions.d",
          "/usr/share/zsh/vendor-completions")
# What is linked into each program, as Debian 12's source packages; gcc's has its version in its name.
SOURCES = {
    "podqos-hook": {"dbus", "fmtlib", "gcc", "glibc", "nlohmann-json3", "spdlog"},
    "podqosctl": {"cli11", "dbus", "fmtlib", "gcc", "glibc", "libyaml", "nlohmann-json3", "spdlog", "tomlplusplus"},
    "podqos-nri": {"cli11", "dbus", "fmtlib", "gcc", "glibc", "nlohmann-json3", "protozero", "spdlog"},
}
# What of them is archives; the others are headers.
ARCHIVES = {
    "podqos-hook": {"dbus", "gcc", "glibc"},
    "podqosctl": {"dbus", "gcc", "glibc", "libyaml"},
    "podqos-nri": {"dbus", "gcc", "glibc"},
}


def source_of(path):
    """The source package of a file of this machine."""
    real = os.path.realpath(path)
    found = subprocess.run(["dpkg-query", "--search", real, real.removeprefix("/usr")], capture_output=True, text=True,
                           check=False).stdout
    source = output("dpkg-query", "--show", "--showformat=${source:Package}", found.partition(": ")[0])
    return re.sub(r"-\d+$", "", source)


class Package(BuiltCase):
    """The packages as files."""

    build_program, release_option = "deb/build", "--revision"
    more = tuple(f"/usr/share/doc/podqos/{name}" for name in (
        "README.md", "docs/metrics.md", "examples/pod.yaml", "changelog.gz", "changelog.Debian.gz", "copyright"))

    @classmethod
    def setUpClass(cls):
        guest.require_tools()
        cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8") if (BUILD / "CMakeCache.txt").exists() else ""
        if "CMAKE_BUILD_TYPE:STRING=Release\n" not in cache:
            raise unittest.SkipTest(f"{BUILD} is not a release build, and only that is packaged")
        cls.make_packages()

    @staticmethod
    def contents(package):
        """{path: mode} of a package whose files are all root's."""
        lines = [line.split(None, 5) for line in output("dpkg-deb", "--contents", package).splitlines()]
        owners = {line[1] for line in lines}
        if owners != {"root/root"}:
            raise AssertionError(f"{package}: owners {owners}")
        return {line[5].removeprefix(".").rstrip("/"): line[0] for line in lines}

    def unpack(self, package, directory):
        output("dpkg-deb", "--extract", package, directory)

    def programs(self):
        """As they are packed."""
        for package, paths in ((self.package, ("usr/libexec/oci/hooks.d/podqos-hook", "usr/bin/podqosctl")),
                               (self.plugin, ("usr/sbin/podqos-nri",))):
            yield from (self.unpacked(package) / path for path in paths)

    def test_name_and_control(self):
        architecture = output("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"podqos_{VERSION}-1_{architecture}.deb")
        # All libraries are linked in.
        self.assertEqual(output("dpkg-deb", "--field", self.package, "Depends").strip(), "")

    def test_architectures(self):
        """Those with integers of 128 bits."""
        control = (harness.REPOSITORY / "packaging/deb/debian/control").read_text(encoding="utf-8")
        for each in re.findall("(?m)^Architecture: (.*)$", control):
            bits = {name: output("dpkg-architecture", "-f", "-a", name, "-q", "DEB_HOST_ARCH_BITS").strip()
                    for name in each.split()}
            self.assertEqual(set(bits.values()), {"64"}, bits)

    def test_static_built_using(self):
        """The programs are static executables: whoever ships them must know of what."""
        for package, programs in ((self.package, ("podqos-hook", "podqosctl")), (self.plugin, ("podqos-nri",))):
            field = output("dpkg-deb", "--field", package, "Static-Built-Using").strip()
            named = [re.fullmatch(r"([\w.+-]+?)(-\d+)? \(= [^)]+\)", entry)[1] for entry in field.split(", ")]
            self.assertEqual(sorted(named), sorted(set().union(*(SOURCES[program] for program in programs))), field)

    def test_what_the_linker_takes(self):
        """Linked once more, aloud; nothing is compiled."""
        if "PODQOS_LTO:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"):
            self.skipTest("linking compiles, with PODQOS_LTO")
        for program, expected in ARCHIVES.items():
            command = output("ninja", "-C", BUILD, "-t", "commands", "-s", f"bin/{program}").splitlines()[-1]
            link = next(part for part in command.split(" && ") if f" -o bin/{program} " in part)
            link = link.replace(f" -o bin/{program} ", f" -o {self.place}/{program} ")
            # Twice, it names each member of an archive.
            said = output("sh", "-c", re.sub(r"-Map=\S+", f"-Map={self.place}/map", link) + " -Wl,--trace,--trace", cwd=BUILD)
            taken = {found[1] or found[2] for found in re.finditer(r"(?m)^(?:\((/\S+\.a)\)\S+|(/\S+\.o))$", said)}
            self.assertEqual({source_of(path) for path in taken}, expected, program)

    def test_sbom(self):
        """The programs of the package, and what is in each of them."""
        files = {path.name: path for path in self.programs()}
        for package, name, programs in ((self.package, "podqos", ("podqos-hook", "podqosctl")),
                                        (self.plugin, "podqos-nri", ("podqos-nri",))):
            document = self.sbom(package, name, *programs)
            for program in programs:
                linked = spdx.related(document, f"Program-{program}", "STATIC_LINK")
                versions = {each: output("dpkg-query", "--show", "--showformat=${Version}", each) for each in linked}
                self.assertEqual(linked, versions)
                sources = {re.sub(r"-\d+$", "", output("dpkg-query", "--show", "--showformat=${source:Package}", each))
                           for each in linked}
                self.assertEqual((sources, spdx.related(document, f"Program-{program}", "DYNAMIC_LINK")),
                                 (SOURCES[program], {}))
                checksums = next(each["checksums"] for each in document["packages"]
                                 if each["SPDXID"] == f"SPDXRef-Program-{program}")
                self.assertEqual(checksums[0]["checksumValue"], hashlib.sha256(files[program].read_bytes()).hexdigest())

    def test_hardening(self):
        """Of the programs as they are packed: position-independent, nothing writable is executable, all bound at once and
        read-only then, with the stack protector and the checked functions of _FORTIFY_SOURCE."""
        for path in self.programs():
            said = output("readelf", "--wide", "--file-header", "--program-headers", "--dynamic", path)
            self.assertRegex(said, r"Type: +DYN ", path)
            self.assertRegex(said, r"FLAGS_1\) +Flags: (NOW )?PIE|FLAGS_1\) +Flags: .*PIE", path)
            self.assertRegex(said, r"\n +GNU_RELRO ", path)
            self.assertRegex(said, r"FLAGS\) .*BIND_NOW", path)
            self.assertEqual(re.findall(r"\n +(?:LOAD|GNU_STACK) .* RWE ", said), [], path)
            # Static: no library of the machine's is in it, and makes system calls that a filter does not know.
            self.assertNotIn("INTERP", said, path)
            linked = (BUILD / "link" / f"{path.name}.map").read_text(encoding="utf-8")
            self.assertIn("stack_chk_fail", linked, path)
            self.assertIn("_chk", linked.replace("stack_chk_fail", ""), path)

    def test_one_version(self):
        """CMakeLists.txt says which, and all else repeats it."""
        for path in self.programs():
            self.assertRegex(output(path, "--version"), rf"(?m)^{path.name} {re.escape(VERSION)}$")
        for package, count in ((self.package, 4), (self.plugin, 1)):
            self.assertEqual(output("dpkg-deb", "--field", package, "Version").strip(), f"{VERSION}-1")
            pages = list(self.unpacked(package).glob("usr/share/man/man?/*.gz"))
            self.assertEqual(len(pages), count)
            texts = {page: f"podqos {VERSION}" for page in pages}
            texts |= dict.fromkeys(self.unpacked(package).glob("usr/share/doc/*/changelog.Debian.gz"), f"podqos ({VERSION}-1)")
            for file, text in texts.items():
                self.assertIn(text, gzip.decompress(file.read_bytes()).decode(), file.name)
        control = self.place / "scripts"
        output("dpkg-deb", "--control", self.package, control)
        self.assertIn(f"version {VERSION} is not installed", (control / "preinst").read_text(encoding="utf-8"))
        self.assertRegex((harness.REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), rf"(?m)^## \[?{VERSION}\]?\b")

    def test_contents(self):
        super().test_contents()
        self.assertEqual([path for path in self.contents(self.package) if not re.match(r"$|/etc\b|/usr\b(?!/local)", path)], [])
        for engine in ("containerd/nri.toml", "cri-o/60-podqos-nri.conf"):
            self.assertIn(f"/usr/share/doc/podqos-nri/examples/{engine}", self.contents(self.plugin))

    def test_documents(self):
        """Every page and picture; those of more than 4 KiB are packed."""
        where = "/usr/share/doc/podqos/docs/"
        found = {path.removeprefix(where).removesuffix(".gz") for path, mode in self.contents(self.package).items()
                 if path.startswith(where) and not mode.startswith("d")}
        docs = harness.REPOSITORY / "docs"
        self.assertEqual(found, {str(file.relative_to(docs)) for file in docs.rglob("*") if file.is_file()})

    def test_configuration_belongs_to_the_operator(self):
        unpacked = self.place / "control"
        output("dpkg-deb", "--control", self.package, unpacked)
        self.assertEqual((unpacked / "conffiles").read_text(encoding="utf-8").split(), ["/etc/podqos/podqos.json"])

    def check_lintian(self, *prefix):
        # The pages are written by this machine's pandoc, which names a font that newer groffs miss.
        self.check_with(*prefix, "lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", "groff-message")

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        self.check_lintian()

    def test_lintian_of_testing(self):
        """It knows all that those before it know."""
        root, reason = guest.made_root("testing")
        if reason:
            self.skipTest(reason)
        self.check_lintian(CHROOTED, root, self.package.parent)

    def test_life_on_v2(self):
        self.check_life(__file__, "v2")

    def test_removal_on_v1(self):
        self.check_life(__file__, "v1", "Removal")


class RemovedHook(unittest.TestCase):
    """What stands in the programs' place after a removal, with a wrapper that prints what it is called with."""

    def test_subcommand(self):
        """Words of a container's process are none: `exec` keeps the caller's runtimes, whatever it runs."""
        with tempfile.TemporaryDirectory() as folder:
            kept, script = (pathlib.Path(folder, name, "podqos-runtime") for name in ("kept", "bin"))
            text = (harness.REPOSITORY / "packaging/removal/removed-hook").read_text(encoding="utf-8")
            text = re.sub("^kept=.*", f"kept={kept.parent}", text, flags=re.MULTILINE)
            for path, content in ((kept, '#!/bin/sh\necho "$@"\n'), (script, text)):
                path.parent.mkdir()
                path.write_text(content, encoding="utf-8")
                path.chmod(0o755)
            for words, config in (("exec web npm run build", "/own"), ("kill create 9", "/own"), ("delete x", "/own"),
                                  ("--root /r create -b /b x", kept.parent / "podqos.json"),
                                  ("run exec", kept.parent / "podqos.json")):
                said = subprocess.run([script, "--config", "/own", *words.split()], check=True, capture_output=True, text=True)
                self.assertEqual(said.stdout, f"--config {config} {words}\n")


class Refused(unittest.TestCase):
    """What is no package."""

    def test_without_manual_pages(self):
        guest.require_tools()
        with tempfile.TemporaryDirectory(prefix="podqos-test-package-") as place:
            built = pathlib.Path(place, "built")
            (built / "bin").mkdir(parents=True)
            for name in ("podqos-hook", "podqosctl", "podqos-nri"):
                (built / "bin" / name).symlink_to(harness.BIN / name)
            done = subprocess.run([harness.REPOSITORY / "packaging/deb/build", place], capture_output=True, text=True,
                                  check=False, env={**os.environ, "PODQOS_BUILT": str(built)})
            self.assertEqual((done.returncode, list(pathlib.Path(place).glob("*.deb"))), (2, []))
            self.assertIn(f"PODQOS_BUILT={built} holds no manual pages", done.stderr)


class Installed(PackageCase):
    """The installed package and what it can leave; each test begins without it and ends with a purge."""

    @classmethod
    def setUpClass(cls):
        if oci.runtime_path(cls.kind) is None:
            raise unittest.SkipTest(f"{cls.kind} is not installed")
        packages = sorted(pathlib.Path(os.environ["PODQOS_PACKAGES"]).glob("podqos_*.deb"))
        cls.first, cls.second = packages
        WORK.mkdir(exist_ok=True)
        tempfile.tempdir = str(WORK)
        # Of its own, and empty, for podqos depends on nothing: to read what this machine has takes dpkg seconds here.
        cls.database = WORK / "dpkg"
        if not cls.database.exists():
            for folder in ("info", "updates"):
                (cls.database / folder).mkdir(parents=True)
            (cls.database / "status").touch()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clean_up)
        self.said = self.dpkg("--install", self.first)
        if self.kind == "crun":
            settings = pathlib.Path("/etc/podqos/conf.d/runtime.json")
            settings.write_text('{"runtimes": ["/usr/bin/crun"]}', encoding="utf-8")

    def clean_up(self):
        self.delete_all()
        self.dpkg("--purge", "podqos")
        boot()
        self.assertEqual(self.left(), [])
        self.assertFalse(HOOK.parent.exists(), "an empty directory of hooks")
        self.assertEqual(self.machine.directories("/podqos"), [])

    def dpkg(self, *words, status=0):
        done = subprocess.run(["dpkg", f"--admindir={self.database}", "--force-unsafe-io", *map(str, words)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, status, f"dpkg {words}\n{done.stdout}")
        return done.stdout

    def put(self, package, refused=False):
        return self.dpkg("--force-confold", "--install", package, status=int(refused))

    def take(self):
        return self.dpkg("--remove", "podqos")

    def verify(self):
        """What is not as the package has it."""
        return self.dpkg("--verify", "podqos")

    def put_podman(self, version):
        place = WORK / "podman"
        for file, text in (("DEBIAN/control", f"Package: podman\nVersion: 4:{version}-0ubuntu22.04+obs81.12\nArchitecture: all\n"
                                              "Maintainer: podqos <maintainers@podqos.io>\nDescription: stands in for Podman\n"),
                           ("DEBIAN/conffiles", "/etc/containers/of-podman\n"), ("etc/containers/of-podman", ""),
                           ("usr/bin/podman", "")):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text, encoding="utf-8")
        output("dpkg-deb", "--build", place, WORK / "podman.deb")
        self.dpkg("--install", WORK / "podman.deb")

    def take_podman(self):
        self.dpkg("--remove", "podman")

    def release(self):
        version, status = output("dpkg-query", f"--admindir={self.database}", "--show", "--showformat="
                                 "${Version}\n${db:Status-Status}", "podqos").split()
        self.assertEqual(status, "installed")
        return version.rpartition("-")[2]

    def left(self):
        found = [path for place in PLACES for folder, folders, files in os.walk(place) for entry in folders + files
                 if "podqos" in entry and not (path := os.path.join(folder, entry)).startswith(str(WORK))]
        return sorted(found)

    def assert_gone(self):
        """From the boot on nothing of the removed package, but for its configuration."""
        self.assertEqual(self.machine.directories("/podqos"), [])
        boot()
        self.assertEqual([path for path in self.left() if not path.startswith("/etc/")], [])


class Removal(RemovalCase, Installed):
    def test_purge_with_a_pod_alive(self):
        pid = self.launch("app", "purged")
        self.dpkg("--purge", "podqos")
        self.assert_managed(pid, "purged")
        self.assertFalse(pathlib.Path("/etc/podqos").exists())
        self.plain.delete("app")
        self.assert_foreign_ran("app")
        self.assertEqual(self.machine.directories("/podqos"), [])


class RemovalUnderCrun(Removal):
    """crun runs poststop while the state of the container that ends is still there."""

    kind = "crun"


class Life(LifeCase, Installed):
    """Installation, upgrade and what else may befall an installed package."""

    def test_installation(self):
        told = [line for line in self.said.splitlines() if "podqos: registered: " in line]
        self.assertEqual(len(told), 1, self.said)
        for name in ("/usr/share/containers/oci/hooks.d/50-podqos-*.json", "podqos-reconcile.timer",
                     "/usr/lib/tmpfiles.d/podqos.conf", "to undo: ", "apt remove podqos"):
            self.assertIn(name, told[0])
        registered = [HOOK.parents[3] / f"share/containers/oci/hooks.d/50-podqos-{stage}.json"
                      for stage in ("createruntime", "poststop")]
        self.assertEqual([json.loads(file.read_text(encoding="utf-8"))["hook"]["path"] for file in registered],
                         [str(HOOK)] * 2)
        status = STATE.stat()
        self.assertEqual((status.st_mode & 0o7777, status.st_uid, status.st_gid), (0o700, 0, 0))
        self.assertIn(VERSION, output("podqosctl", "version"))
        self.assertIn("ok", output("podqosctl", "config", "check"))
        self.assertEqual(output(WRAPPER, "--version"), output(oci.runtime_path(self.kind), "--version"))
        self.dpkg("--remove", "podqos")
        self.assertEqual([file for file in registered if file.exists()], [])
        self.assert_gone()
        self.assertTrue(CONFIGURATION.exists())

    def test_purge_under_a_configuration_of_its_own(self):
        settings = {"cgroupRoot": "/podqos-test-own", "stateDir": "/run/podqos-own", "podPidsLimit": 55}
        pathlib.Path("/etc/podqos/conf.d/own.json").write_text(json.dumps(settings), encoding="utf-8")
        pid = self.launch("app", "own")
        self.dpkg("--purge", "podqos")
        self.assert_managed(pid, "own", root="/podqos-test-own")
        self.assertEqual(self.machine.read(self.pod("own", "/podqos-test-own"), "pids"), 55)
        self.plain.delete("app")
        self.assert_foreign_ran("app")
        self.assertEqual(self.machine.leftovers("/podqos-test-own"), [])
        self.machine.sweep("/podqos-test-own")
        shutil.rmtree("/run/podqos-own")

    def test_removal_under_a_broken_configuration(self):
        CONFIGURATION.write_text("{", encoding="utf-8")
        self.dpkg("--remove", "podqos")
        self.assert_gone()

    def test_pod_that_ended_unnoticed(self):
        pid = self.launch("app", "unnoticed")
        self.plain.kill("app")
        patience.until(lambda: not machines.alive(pid))
        shutil.rmtree(self.plain.root / "app")  # as if the machine's engine had lost it
        self.dpkg("--remove", "podqos")
        self.assert_gone()

    def test_container_without_a_pod_keeps_its_hook(self):
        self.launch("single", runtime=self.plain)
        self.assertFalse((STATE / "containers").exists() and os.listdir(STATE / "containers"))
        self.dpkg("--remove", "podqos")
        self.plain.delete("single")
        self.assert_foreign_ran("single")
        self.assert_gone()

    def test_engine_keeps_its_wrapper(self):
        """A shim of containerd deletes a container with the runtime that its bundle names."""
        configuration = pathlib.Path("/etc/containerd/config.toml")
        configuration.parent.mkdir(exist_ok=True)
        self.addCleanup(configuration.unlink)
        configuration.write_text(f'BinaryName = "{WRAPPER}"\n', encoding="utf-8")
        said = self.dpkg("--remove", "podqos")
        self.assertIn(f"podqos: {configuration} still names podqos-runtime", said)
        self.assertEqual(output(WRAPPER, "--version"), output(oci.runtime_path(self.kind), "--version"))
        self.assert_gone()

    def test_removal_given_up(self):
        script = self.database / "info"
        environment = {**os.environ, "DPKG_ADMINDIR": str(self.database), "DPKG_MAINTSCRIPT_PACKAGE": "podqos"}
        program = HOOK.read_bytes()
        for _ in range(2):  # a removal that was cut off is begun again
            output(script / "podqos.prerm", "remove", env=environment)
        self.assertTrue(KEPT.exists())
        boot()
        self.assertEqual(HOOK.read_bytes(), program, "registered still: without it Podman starts no container")
        output(script / "podqos.postinst", "abort-remove", env=environment)
        self.assertEqual(HOOK.read_bytes(), program)
        self.assertFalse(KEPT.exists())
        self.assert_managed(self.launch("app", "kept"), "kept")
        self.wrapper.delete("app")

    def test_boot_clears(self):
        if not shutil.which("systemd-tmpfiles"):
            self.skipTest("systemd-tmpfiles is not installed")
        pid = self.launch("app", "boot")
        self.dpkg("--purge", "podqos")
        output("systemd-tmpfiles", "--remove", "podqos-removed.conf")
        self.assertTrue(HOOK.exists(), "only a boot may take it away")
        output("systemd-tmpfiles", "--remove", "--boot", "podqos-removed.conf")
        self.assertEqual(self.left(), [str(STATE)])
        # A real boot ends what lives in memory.
        self.assert_managed(pid, "boot")
        self.plain.delete("app")
        tiers = (f"/podqos/kubepods{tier}" for tier in ("/burstable", "/besteffort", ""))
        for path in (self.pod("boot"), *tiers, "/podqos"):
            self.machine.remove(path)


if __name__ == "__main__":
    harness.main(("runc",), here=[Package, Refused, RemovedHook], in_guest=[Removal, RemovalUnderCrun, Life])
