"""What the package does to Podman's hooks: an operator's own run before, during and after, the same as without podqos.

For Debian 12, 13 and testing one guest is booted with its Podman: 4.3, 5.4 and 5.8. There this file runs again with the
real dpkg. Podman before 4.8 cannot add to a list of directories: there the package leaves Podman alone, and the shipped
example registers it by hand.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import neighbours  # noqa: E402
import podman  # noqa: E402
from engine import WORK, call  # noqa: E402

OWN = WORK / "own-hooks"
COMMON = pathlib.Path("/usr/share/containers/oci/hooks.d")  # Podman's own default
CONFIGURATION = pathlib.Path("/etc/containers/containers.conf.d")
MAIN = CONFIGURATION.with_suffix("")  # read before those; podman.configure() has written it, [engine] last
DROP_IN = CONFIGURATION / "zz-podqos.conf"
EXAMPLE = harness.REPOSITORY / "examples/podman/50-podqos.conf"
RECORDER = f"#!/bin/sh\necho $1 >>{WORK}/ran\ncat\n"
OWN_FILE = CONFIGURATION / "10-own.conf"
# Where an operator may have named a directory, and what runs then: nowhere, or in a file that is read before podqos's.
PLACES = {None: {"common"}, MAIN: {"own"}, OWN_FILE: {"own"}}


def write_hook(directory, name):
    program = WORK / "recorder"
    program.write_text(RECORDER, encoding="ascii")
    program.chmod(0o755)
    engine.write_json(directory / f"40-{name}.json", {
        "version": "1.0.0", "hook": {"path": str(program), "args": ["recorder", name]}, "when": {"always": True},
        "stages": ["precreate"]})


class Hooks(unittest.TestCase):
    """In the guest."""

    @classmethod
    def setUpClass(cls):
        if not (WORK / "images").exists():
            podman.configure()
        write_hook(OWN, "own")
        write_hook(COMMON, "common")
        version = re.search(r"(\d+)\.(\d+)", call("podman", "--version").stdout)
        cls.appends = tuple(map(int, version.groups())) >= (4, 8)

    def ran(self):
        """(the operator's hooks that ran with a container of a pod, whether podqos placed it)."""
        told = WORK / "ran"
        told.unlink(missing_ok=True)
        where = call("podman", "run", "--rm", "--cgroupns", "host", "--annotation", "podqos.io/pod-uid=web-1",
                     engine.IMAGE, "cat", "/proc/self/cgroup").stdout
        names = set(told.read_text(encoding="utf-8").split()) if told.exists() else set()
        return names, "kubepods" in where

    def check(self, place, placed, names=None):
        """With the operator's directory named there."""
        before = place.read_text(encoding="utf-8") if place == MAIN else None
        if place:
            place.parent.mkdir(exist_ok=True)
            place.write_text(f'{before or "[engine]"}\nhooks_dir = ["{OWN}"]\n', encoding="utf-8")
        try:
            self.assertEqual(self.ran(), (names or PLACES[place], placed), place)
        finally:
            if before:
                place.write_text(before, encoding="utf-8")
            elif place:
                place.unlink()

    def test_before_during_and_after(self):
        for place in PLACES:
            self.check(place, False)
        call("dpkg", "--force-unsafe-io", "--no-triggers", "--install", os.environ["PODQOS_PACKAGE"])
        self.assertEqual(DROP_IN.is_symlink(), self.appends)
        for place in PLACES:
            self.check(place, self.appends)
        if self.appends:
            # An array that is set after one with "append" is appended: what runs beside it is Podman's own directory.
            self.check(CONFIGURATION / "zzz-own.conf", True, {"own", "common"})
        else:
            self.check_example()
        call("dpkg", "--remove", "podqos")
        self.assertFalse(CONFIGURATION.exists() and list(CONFIGURATION.iterdir()))
        for place in PLACES:
            self.check(place, False)
        call("dpkg", "--purge", "podqos")
        self.check(OWN_FILE, False)

    def test_podman_comes_later(self):
        """dpkg tells of it, by a trigger."""
        call("dpkg", "--force-unsafe-io", "--no-triggers", "--install", os.environ["PODQOS_PACKAGE"])
        DROP_IN.unlink(missing_ok=True)
        call("/var/lib/dpkg/info/podqos.postinst", "triggered", "/usr/bin/podman")
        self.assertEqual(DROP_IN.is_symlink(), self.appends)
        DROP_IN.unlink(missing_ok=True)
        DROP_IN.touch()  # an operator's word against it
        call("/var/lib/dpkg/info/podqos.postinst", "triggered", "/usr/bin/podman")
        self.assertFalse(DROP_IN.is_symlink())
        call("dpkg", "--purge", "podqos")
        self.assertTrue(DROP_IN.exists())
        DROP_IN.unlink()

    def check_example(self):
        """By hand, as the example's head says."""
        CONFIGURATION.mkdir(exist_ok=True)
        shutil.copy(EXAMPLE, CONFIGURATION)
        self.check(None, True)
        (CONFIGURATION / EXAMPLE.name).unlink()


class Neighbours(unittest.TestCase):
    """In the guest: hooks and devices of others are called as before, and their files are theirs."""

    def setUp(self):
        if not (WORK / "images").exists():
            podman.configure()
        neighbours.register_hooks()
        self.files = neighbours.snapshot()
        self.addCleanup(call, "dpkg", "--purge", "podqos")

    def ran(self, *flags):
        """(what the others were told with one container, the hooks in its config.json, whether podqos placed it)."""
        made = call("podman", "create", "--cgroupns", "host", *neighbours.FLAGS, *flags, engine.IMAGE, "cat",
                    "/proc/self/cgroup").stdout.strip()
        where = call("podman", "start", "--attach", made).stdout
        config = podman.Podman.config(made)
        call("podman", "rm", "--force", made)
        return neighbours.told(), config["hooks"], "kubepods" in where

    def check(self, placed, own):
        """own: whether podqos's hooks are in a config.json."""
        self.assertEqual(neighbours.snapshot(), self.files)
        for flags, managed in (((), False), (("--annotation", "podqos.io/pod-uid=web-1"), placed)):
            told, hooks, where = self.ran(*flags)
            self.assertEqual((told, where), (self.told[bool(flags)], managed), flags)
            others = {stage: [hook for hook in entries if "podqos" not in hook["path"]] for stage, entries in hooks.items()}
            self.assertEqual({stage: entries for stage, entries in others.items() if entries}, self.hooks)
            self.assertEqual(hooks != self.hooks, own)

    def test_before_during_and_after(self):
        before = [self.ran(), self.ran("--annotation", "podqos.io/pod-uid=web-1")]
        self.told, self.hooks = [told for told, _, _ in before], before[0][1]
        self.assertEqual([called.split()[0] for called, _, _ in self.told[0]],
                         [str(path) for path in (neighbours.TOOLKIT, neighbours.SECCOMP_HOOK, neighbours.CDI_HOOK)])
        call("dpkg", "--force-unsafe-io", "--no-triggers", "--install", os.environ["PODQOS_PACKAGE"])
        appends = DROP_IN.is_symlink()
        self.check(appends, True)
        call("podqosctl", "configure", "podman")
        self.check(True, True)
        call("podqosctl", "configure", "podman", "--undo")
        self.check(False, True)  # by createRuntime and poststop, which the package has in the common directory
        call("dpkg", "--remove", "podqos")
        self.check(False, False)
        call("dpkg", "--purge", "podqos")
        self.check(False, False)


class Annotations(unittest.TestCase):
    """In the guest: what this Podman makes of annotations, and which reach podqos whole."""

    @classmethod
    def setUpClass(cls):
        if not (WORK / "images").exists():
            podman.configure()
        call("dpkg", "--force-unsafe-io", "--no-triggers", "--install", os.environ["PODQOS_PACKAGE"])
        call("podqosctl", "configure", "podman")
        cls.version = tuple(map(int, re.search(r"(\d+)\.(\d+)", call("podman", "--version").stdout).groups()))

    @classmethod
    def tearDownClass(cls):
        call("podqosctl", "configure", "podman", "--undo")
        call("dpkg", "--purge", "podqos")

    def requests(self, uid):
        pods = json.loads(call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)["pods"]
        return next(pod["requests"] for pod in pods if pod["uid"] == uid)

    def run_with(self, uid, *annotations):
        """(the pod's requests as podqos knows them, what it has logged)."""
        told = len(engine.LOG.read_text(encoding="utf-8")) if engine.LOG.exists() else 0
        flags = [flag for each in (f"podqos.io/pod-uid={uid}", *annotations) for flag in ("--annotation", each)]
        made = call("podman", "run", "--detach", *flags, engine.IMAGE).stdout.strip()
        self.addCleanup(call, "podman", "rm", "--force", made)
        return self.requests(uid), engine.LOG.read_text(encoding="utf-8")[told:]

    def test_one_amount_each_arrives(self):
        got, log = self.run_with("a-1", "podqos.io/cpu-request=100m", "podqos.io/memory-request=64Mi")
        self.assertEqual(got, {"cpuMilli": 100, "memoryBytes": 64 << 20})
        self.assertNotIn("splits", log)

    def test_a_split_list_is_warned_of(self):
        got, log = self.run_with("a-2", "podqos.io/requests=cpu=100m,memory=64Mi")
        if self.version < (4, 4):
            self.assertEqual(got, {"cpuMilli": 100, "memoryBytes": None})
            self.assertIn('podqos.io/requests has no memory, but there is an annotation memory = "64Mi"', log)
            self.assertIn("use --annotation podqos.io/memory-request=64Mi", log)
        else:
            self.assertEqual(got, {"cpuMilli": 100, "memoryBytes": 64 << 20})
            self.assertNotIn("splits", log)

    def test_kube_play(self):
        plain = ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: shop\nANNOTATIONS"
                 f"spec:\n  hostNetwork: true\n  containers:\n  - name: web\n    image: {engine.IMAGE}\n"
                 "    imagePullPolicy: Never\n    resources: {limits: {cpu: 200m, memory: 64Mi}}\n")
        bare = plain.replace("ANNOTATIONS", "")
        long = call("podqosctl", "annotate", "-f", "-", stdin=None, input=bare).stdout
        self.addCleanup(call, "podman", "pod", "rm", "--force", "--ignore", "shop")
        done = call("podman", "kube", "play", "-", stdin=None, input=long, check=False)
        self.assertEqual(done.returncode == 0, self.version >= (5, 0), done.stderr)
        call("podman", "pod", "rm", "--force", "--ignore", "shop")
        refused = call("podqosctl", "annotate", "--for", "podman4", "-f", "-", stdin=None, input=bare, check=False)
        self.assertEqual(refused.returncode, 1)
        amounts = re.findall(r'(podqos\.io/\S+): ("\S+?")', refused.stderr.partition("annotate the pod with ")[2])
        self.assertEqual(len(amounts), 4, refused.stderr)
        lines = "".join(f"    {key}: {value}\n" for key, value in (*amounts, ("podqos.io/pod-uid", '"a-3"')))
        short = plain.replace("ANNOTATIONS", f"  annotations:\n{lines}")
        call("podman", "kube", "play", "-", stdin=None, input=short)
        self.assertEqual(self.requests("a-3"), {"cpuMilli": 200, "memoryBytes": 64 << 20})


# Neighbours and annotations are the same in Podman 5.4 and 5.8.
CHOSEN = {"bookworm": (), "trixie": (), "testing": ("Hooks",)}


class Guests(guest.cases({root: (guest.Guest("systemd", root=root), __file__, *names) for root, names in CHOSEN.items()},
                         installed=False)):
    """Here, with the package for those there."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["PODQOS_PACKAGE"] = str(guest.packages() / "podqos.deb")


if __name__ == "__main__":
    harness.main(("runc",), here=[Guests], in_guest=[Hooks, Neighbours, Annotations])
