"""Containers that podqos does not manage: status, doctor and why tell the reason and the remedy; and why of all others."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402
import terminal  # noqa: E402
from harness import container, pod  # noqa: E402

WEB = pod("web-1", container("app", requests={"cpu": "100m"}), container("log", requests={"cpu": "50m"}))
RUNTIMES = pathlib.Path("/run/containerd/runc")  # where containerd has runtimes note its containers


@harness.for_each_runtime
class NotManaged(harness.TestCase):
    """Of a runtime that notes its containers where podqosctl looks."""

    def setUp(self):
        super().setUp()
        state = RUNTIMES / self.root[1:]
        self.engine = oci.Runtime(self.kind, state)
        self.asked = oci.Runtime(self.kind, state, self.podqos.prefix(self.kind))
        self.addCleanup(self.engine.delete_all)

    def start(self, runtime, check=True, **annotations):
        """A container with annotations of podqos's, where an engine would place it; returns its id."""
        made = self.bundle()
        name = self.container_id("made")
        made.annotations.update({f"podqos.io/{key.replace('_', '-')}": text for key, text in annotations.items()})
        made.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{name}"
        self.made = made.save()
        runtime.create(name, self.made, check=check)
        return name

    def listed(self, status=1):
        """{id: (why, remedy)} of status, which exits so."""
        done = self.podqos.ctl("status", "--color", "never", "-o", "json", check=False, kind=self.kind)
        self.assertEqual(done.returncode, status, done.stderr)
        found = json.loads(done.stdout)["notManaged"]
        listed = {each["container"]["id"]: (each["why"], each["remedy"]) for each in found}
        self.assertEqual(len(listed), len(found), found)
        return listed

    def why(self, name):
        """(state, text) of podqosctl why."""
        state = self.podqos.ctl_json("why", name, kind=self.kind)["state"]
        return state, self.podqos.ctl("why", name, kind=self.kind).stdout

    def checked(self, name):
        """A check of doctor."""
        checks = json.loads(self.podqos.ctl("doctor", "-o", "json", check=False, kind=self.kind).stdout)
        return next(check for check in checks if check["name"] == name)

    def test_bundle_of_another_user(self):
        name = self.start(self.engine, requests="cpu=100m")
        os.chown(self.made.path, 1234, 1234)
        os.chmod(self.made.path, 0o700)
        self.assertEqual(set(self.listed()), {name})
        self.assertEqual(self.why(name)[0], "not managed")

    def note(self, name, text):
        """A container, as a runtime of another namespace of containerd's notes it."""
        state = RUNTIMES / "others" / name / "state.json"
        if not state.parents[1].exists():
            self.addCleanup(shutil.rmtree, state.parents[1])
        state.parent.mkdir(parents=True)
        state.write_text(text, encoding="utf-8")
        return state

    def warned(self):
        """The warnings of status, which finds no container that is not managed."""
        view = json.loads(self.podqos.ctl("status", "-o", "json", check=False, kind=self.kind).stdout)
        self.assertEqual((view["notManaged"], set(view["warningKinds"])), ([], {"missed"}))
        return view["warnings"]

    def test_what_cannot_be_read(self):
        """Whether podqos should manage these is unknown: status says so, and why of what it does not know."""
        name = self.start(self.engine, requests="cpu=100m")
        config = self.made.path / "config.json"
        config.rename(self.made.path / "moved")
        damaged = self.note("damaged", "{")
        (RUNTIMES / "others" / "empty").mkdir()
        said = {text.split(": ")[0]: text for text in self.warned()}
        self.assertEqual(set(said), {f"container {name}", "container damaged"})
        self.assertRegex(said[f"container {name}"], f"{config}: No such file.*; whether podqos should manage it is unk")
        self.assertIn(f": {damaged}: ", said["container damaged"])
        shown = self.podqos.ctl("why", name, check=False, kind=self.kind)
        self.assertIn(f"podqosctl: {said[f'container {name}']}\n", shown.stderr)
        self.note("hostile\x1b[2J", "{")
        shown = self.podqos.ctl("status", check=False, kind=self.kind).stdout
        self.assertNotIn("\x1b", shown)
        self.assertIn("hostile\\x1b[2J", shown)
        for number in range(30):
            self.note(f"more-{number}", "")
        self.assertEqual(len(said := self.warned()), 21)
        self.assertEqual(said[-1], "nor could 13 more containers be read")

    def test_more_than_are_looked_at(self):
        for number in range(2001):
            self.note(str(number), '{"init_process_pid": 4194304, "config": {"labels": ["bundle=/none"]}}')
        self.assertEqual(self.warned(), ["only the first 2000 containers of runtimes were looked at: others that podqos "
                                         "does not manage may be missing here"])

    def test_podqos_was_not_asked(self):
        self.start(self.engine)  # without annotation
        self.start(self.engine, ignore="true", requests="cpu=1")
        self.assertEqual(self.listed(0), {})
        self.launch(WEB, "app")
        missed = {self.start(self.engine, requests="cpu=100m"),
                  self.start(self.engine, pod_uid="web-1", container="log")}
        state = RUNTIMES / self.root[1:] / min(missed)
        [noted] = (path for name in ("state.json", "status") if (path := state / name).exists())
        other = noted.with_name({"status": "state.json", "state.json": "status"}[noted.name])
        other.write_bytes(noted.read_bytes())  # as another runtime would have noted the same container
        found = self.listed()
        other.unlink()
        self.assertEqual(set(found), missed)
        for why, remedy in found.values():
            self.assertIn("podqos was not asked when it was created", why)
            self.assertEqual(remedy, "use podqos-runtime in place of its runtime, then recreate the container")
        state, text = self.why("web-1/log")
        self.assertEqual(state, "not managed")
        self.assertIn("podqos does not manage web-1/log: podqos was not asked", text)
        self.assertEqual(self.checked("missed")["outcome"], "problem")
        config = str(self.podqos.config(self.kind))
        for command in (["status"], ["why", "web-1/log"], ["why", "web-1"]):
            status, text = terminal.run([str(harness.CTL), "--config", config, *command], 80)
            lines = terminal.plain(text).splitlines()
            self.assertEqual((status, [line for line in lines if len(line) > 80]), (int(command == ["status"]), []))
        self.podqos.settings["enabled"] = False
        self.assertIn("podqos was not asked", self.listed()[missed.pop()][0])

    def test_its_annotation_is_misspelt(self):
        plain = self.start(self.engine, request="cpu=1")
        self.assertEqual(self.checked("failures")["outcome"], "ok")
        asked = self.start(self.asked, request="cpu=1")
        failures = self.checked("failures")
        self.assertEqual((failures["outcome"], failures["remedy"]), ("warning", "podqosctl events --since 1h"))
        self.assertRegex(failures["text"], "^1 in the last hour, the last one: .*did you mean podqos.io/requests")
        found = self.listed()
        for name in (plain, asked):
            self.assertIn("did you mean podqos.io/requests?", found[name][0])
        self.assertIn("podqos failed, and it started all the same", found[asked][0])
        state, text = self.why(asked)
        self.assertEqual(state, "not managed")
        self.assertIn(f"podqos failed for {asked}: ", text)

    def test_it_was_refused(self):
        self.podqos.settings["onError"] = "reject"
        self.podqos.config(self.kind)
        name = self.start(self.wrapper, check=False, request="cpu=1")
        self.assertEqual(self.listed(0), {})
        state, text = self.why(name)
        self.assertEqual(state, "not started")
        self.assertIn("was refused and not started", text)
        self.assertEqual(self.checked("failures")["outcome"], "warning")

    def test_it_has_ended_and_is_yet_to_be_deleted(self):
        """Its runtime tells of its end when it deletes it: nothing is wrong until then."""
        name, pid = self.launch(WEB, "app", self.asked)
        self.asked.kill(name)
        patience.expect(lambda: not pathlib.Path(f"/proc/{pid}/root").exists(), "its end")
        view = json.loads(self.podqos.ctl("status", "-o", "json", kind=self.kind).stdout)
        self.assertEqual((view["pods"][0]["containers"][0]["state"], view["warnings"]), ("dead", []))

    def test_of_pods_that_are_managed_and_have_ended(self):
        made, _ = self.launch(WEB, "app")
        state, text = self.why("web-1")
        self.assertEqual(state, "managed")
        for words in ("Its class is Burstable: ", "(by podqos.io/pod)", "Its CPU ",
                      "The wrapper podqos-runtime placed web-1/app before it was created: "):
            self.assertIn(words, text)
        self.wrapper.delete(made)
        state, text = self.why("web-1/app")
        self.assertEqual(state, "ended")
        self.assertIn("placed web-1/app", text)
        self.assertIn("web-1: released, ", self.why("web-1")[1])
        self.assertEqual(self.podqos.ctl("why", "other", check=False, kind=self.kind).returncode, 1)


def forget(made):
    for path in reversed(made):
        with contextlib.suppress(OSError):  # another one is using it
            path.rmdir()


def setUpModule():
    """Other tests, whose podqos looks there, too, do not see these containers."""
    unittest.addModuleCleanup(forget, [path for path in (RUNTIMES.parent, RUNTIMES) if not path.exists()])
    RUNTIMES.mkdir(parents=True, exist_ok=True)
    machines.private_mounts()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", RUNTIMES], check=True)
    unittest.addModuleCleanup(subprocess.run, ["umount", RUNTIMES], check=True)


if __name__ == "__main__":
    harness.main()
