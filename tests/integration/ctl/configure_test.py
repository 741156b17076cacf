"""podqosctl configure: engines' files before, after, and once more without podqos.

A tree of this test's own stands for a machine where no engine has to run (--root). configure_releases_test has the engines'
own programs check what was written; configure_guest_test starts pods.
"""

import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import patience  # noqa: E402
from engine_files import CONTAINERD, DAEMON_JSON, NVIDIA, STOCK, configure, snapshot  # noqa: E402

VERSIONS = {"containerd": "1.7", "crio": "1.27", "podman": "4.3", "docker": "28.5"}
# What oci-seccomp-bpf-hook and nvidia-container-toolkit install.
HOOKS = {"usr/share/containers/oci/hooks.d/oci-seccomp-bpf-hook.json": '{"version": "1.0.0"}\n',
         "usr/share/containers/oci/hooks.d/oci-nvidia-hook.json": '{"version": "1.0.0"}\n'}


def is_locked():
    """Whether a process holds the lock with which podqosctl changes the files of a tree."""
    opened = os.open("/run/podqos-configure-root.lock", os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


class Trees(unittest.TestCase):
    """A tree without programs."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="podqos-configure-"))
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def words(self, engine):
        return engine, "--root", self.root, "--engine-version", VERSIONS[engine]

    def configure(self, engine, *words, **more):
        return configure(*self.words(engine), *words, **more)

    def start(self, engine, **more):
        return subprocess.Popen([harness.CTL, "configure", *self.words(engine)], stdout=subprocess.DEVNULL, text=True,
                                **more)

    def fill(self):
        """Somebody's node: each engine has a file, others have registered themselves."""
        shutil.copyfile(STOCK, self.put(CONTAINERD, ""))
        self.put(DAEMON_JSON, json.dumps(NVIDIA, indent=4) + "\n")
        self.put("etc/crio/crio.conf.d/99-nvidia.conf",
                 '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n')
        self.put("etc/containers/containers.conf", '[engine]\nhooks_dir = ["/own"]\n')
        for name, content in HOOKS.items():
            self.put(name, content)

    def test_there_and_back(self):
        """Twice is once, a dry run writes nothing, undo leaves each byte of others as it was."""
        self.fill()
        before = snapshot(self.root)
        for engine in VERSIONS:
            self.assertIn("+++ ", self.configure(engine, "--dry-run").stdout)
            self.assertEqual(snapshot(self.root), before)
        for engine in VERSIONS:
            self.configure(engine)
        registered = snapshot(self.root)
        self.assertNotEqual(registered, before)
        for name in HOOKS:
            self.assertEqual(registered[name], before[name])
        for engine in VERSIONS:
            self.configure(engine)
            self.assertNotIn("+++ ", self.configure(engine, "--dry-run").stdout)
        self.assertEqual(snapshot(self.root), registered)
        daemon = json.loads((self.root / DAEMON_JSON).read_text(encoding="utf-8"))
        self.assertEqual(daemon["runtimes"], {**NVIDIA["runtimes"], "podqos": {"path": "/usr/bin/podqos-runtime"}})
        for engine in VERSIONS:
            self.configure(engine, "--undo")
            self.configure(engine, "--undo")
        self.assertEqual(snapshot(self.root), before)

    def test_owner_mode_and_backup(self):
        path = self.put(DAEMON_JSON, '{"log-level": "warn"}\n')
        os.chown(path, 1234, 5678)
        path.chmod(0o640)
        self.configure("docker")
        backup = path.with_name("daemon.json.podqos-backup")
        for each in (path, backup):
            status = each.stat()
            self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o7777), (1234, 5678, 0o640), each)
        self.assertEqual(backup.read_text(encoding="utf-8"), '{"log-level": "warn"}\n')
        self.assertEqual([each.name for each in path.parent.iterdir() if each not in (path, backup)], [])

    def test_new_files_are_for_all_to_read(self):
        """Rootless Podman reads the same directory."""
        self.configure("podman")
        path = self.root / "etc/containers/containers.conf.d/50-podqos.conf"
        for each, mode in ((path, 0o644), (path.parent, 0o755), (path.parent.parent, 0o755)):
            self.assertEqual(each.stat().st_mode & 0o7777, mode, each)

    def test_steps_after_undo(self):
        """CRI-O stops no pod whose runtime it does not know any more; the others need podqos itself until then."""
        remove = "recreate containers started with podqos-runtime before uninstalling"
        for engine, steps in (
                ("containerd", ["systemctl restart containerd.service", remove]),
                ("crio", ['remove the pods of the runtime "podqos": once restarted, CRI-O cannot stop them',
                          "systemctl restart crio.service"]),
                ("docker", ["systemctl restart docker.service", remove]), ("podman", [remove])):
            with self.subTest(engine):
                self.configure(engine)
                self.assertEqual(json.loads(self.configure(engine, "--undo", "-o", "json").stdout)["next"], steps)

    def test_json(self):
        said = json.loads(self.configure("docker", "-o", "json").stdout)
        self.assertEqual(said["changes"], [{"path": f"{self.root}/{DAEMON_JSON}", "action": "create",
                                            "what": 'runtime "podqos"', "backup": None}])
        self.assertEqual((said["engine"], said["method"], said["version"]), ("docker", "wrapper", "28.5"))
        said = json.loads(self.configure("docker", "--undo", "--dry-run", "-o", "json").stdout)
        self.assertIn("-  \"runtimes\": {", said["changes"][0]["diff"])

    def refused(self, engine, *says, **more):
        """Nothing changes, and the reason says all of this."""
        before = snapshot(self.root)
        said = self.configure(engine, check=1, **more).stderr
        for each in says:
            self.assertIn(each, said)
        self.assertEqual(snapshot(self.root), before)

    def test_ten_megabytes(self):
        self.put(CONTAINERD, "version = 2\n" + "#" * (10 << 20))
        self.put(DAEMON_JSON, "{}" + " " * (10 << 20))
        for engine in ("containerd", "docker"):
            self.refused(engine, "4194304")

    def test_deep_keys_in_little_memory(self):
        """A dotted key of 16 kB took a gigabyte, one of 40 kB six; then as long as a file can be."""
        limit = 256 << 20
        for begin, dots, end in (("", 8_000, " = 1"), ("", 20_000, " = 1"), ("[", 2_000_000, "]")):
            self.put(CONTAINERD, f"version = 2\n{begin}{'a.' * dots}a{end}\n")
            self.refused("containerd", f"{CONTAINERD}:2: a key has more than 64 dots",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    def test_a_lock_of_another_user(self):
        """Whoever may open the engine's directory can lock it, and keeps nobody out."""
        path = self.put(DAEMON_JSON, "{}\n")
        opened = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, opened)
        fcntl.flock(opened, fcntl.LOCK_SH)
        self.configure("docker")
        self.configure("docker", "--undo")

    def test_directories_of_drop_ins(self):
        """CRI-O reads them, too; Podman passes them over."""
        self.put("etc/crio/crio.conf.d/sub/10.conf", '[crio.runtime.runtimes.podqos]\nruntime_path = "/other"\n')
        self.refused("crio", "etc/crio/crio.conf.d/sub/10.conf:2: ")
        self.put("etc/crio/crio.conf.d/sub/10.conf", "")
        self.put("etc/containers/containers.conf.d/sub.conf/x.conf", "[")
        for engine in ("crio", "podman"):
            self.configure(engine)
            self.configure(engine, "--undo")

    def test_what_is_no_file(self):
        (self.root / CONTAINERD).mkdir(parents=True)
        self.refused("containerd", CONTAINERD)
        path = self.put(DAEMON_JSON, "")
        path.unlink()
        os.mkfifo(path)
        self.refused("docker", DAEMON_JSON)

    def test_symlinks(self):
        """A file behind a symlink is left alone, and below --root none leads out of the tree."""
        outside = tempfile.mkdtemp(prefix="podqos-outside-")
        self.addCleanup(shutil.rmtree, outside)
        target = pathlib.Path(outside, "daemon.json")
        target.write_text("{}\n", encoding="utf-8")
        path = self.put(DAEMON_JSON, "")
        path.unlink()
        path.symlink_to(target)
        self.refused("docker", f"is a symlink to {target}", '"podqos": {"path": ')
        shutil.rmtree(path.parent)
        path.parent.symlink_to(outside)
        self.refused("docker", "etc/docker")
        self.assertEqual((target.read_text(encoding="utf-8"), os.listdir(outside)), ("{}\n", ["daemon.json"]))
        # What is only read is looked for in the tree.
        self.put("etc/containers/containers.conf", "").unlink()
        (self.root / "etc/containers/containers.conf").symlink_to("/etc/passwd")
        self.configure("podman")

    def test_symlinks_in_the_tree(self):
        """What is only read is found behind links of the tree, without openat2, which may be refused."""
        self.put("opt/real/10.conf", '[crio.runtime.runtimes.podqos]\nruntime_path = "/other"\n')
        link = self.put("etc/crio/crio.conf", "")
        for target in ("/opt/real/10.conf", "../../opt/real/10.conf", "../../../../../opt/real/10.conf"):
            link.unlink()
            link.symlink_to(target)
            self.refused("crio", "etc/crio/crio.conf:2: ")
        link.unlink()
        link.symlink_to("crio.conf")
        self.refused("crio", "Too many levels of symbolic links")
        link.unlink()
        trace = self.put("trace", "")
        subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=openat2", harness.CTL, "configure",
                        *self.words("crio")], check=True, stdout=subprocess.DEVNULL, timeout=harness.CALL_TIMEOUT)
        # All else that openat2 is asked for has a way without it (common/sys/directory.cpp).
        self.assertNotIn("RESOLVE_IN_ROOT", trace.read_text(encoding="ascii"))

    def test_two_at_once(self):
        """Each ends well, or says that the other is at work; the file is written once."""
        path = self.put(CONTAINERD, "version = 2\n")
        for each in [self.start("containerd", stderr=subprocess.PIPE) for _ in range(8)]:
            said = each.communicate(timeout=harness.CALL_TIMEOUT)[1]
            if each.returncode != 0:
                self.assertRegex(said, "another podqosctl|modified concurrently")
        text = path.read_text(encoding="utf-8")
        self.assertEqual(text.count("# podqos: begin wrapper"), 1)
        tomllib.loads(text)

    def test_killed_in_between(self):
        """Whenever it ends, a file is the old or the new one."""
        whole = (b"version = 2\n" + b"# a line of somebody's\n" * 20000)
        path = self.put(CONTAINERD, whole)
        for delay in range(0, 40, 2):
            with self.start("containerd", stderr=subprocess.DEVNULL) as running:
                time.sleep(delay / 1000)
                running.kill()
            self.assertTrue(path.read_bytes().startswith(whole))
            tomllib.loads(path.read_text(encoding="utf-8"))
            backup = path.with_name("config.toml.podqos-backup")
            if backup.exists():
                self.assertEqual(backup.read_bytes(), whole)
        # The process that writes ends by itself, a moment after the one that was killed.
        patience.wait_for(lambda: not is_locked(), 60, "the end of the last writer")
        self.configure("containerd")
        self.configure("containerd", "--undo")
        self.assertEqual(path.read_bytes(), whole)

    def test_ended_while_the_engine_checks(self):
        """What the engine goes on to refuse is taken back all the same."""
        before = b"version = 2\n"
        path = self.put(CONTAINERD, before)
        engine = self.put("containerd", f"""#!/bin/sh
            touch {self.root}/asked
            until [ -e {self.root}/answer ]; do sleep 0.05; done
            exit $(cat {self.root}/answer)""")
        engine.chmod(0o755)
        for ending, answer in ((signal.SIGINT, "1"), (signal.SIGTERM, "1"), (signal.SIGHUP, "1"), (signal.SIGTERM, "0")):
            with self.subTest(ending=ending, answer=answer):
                with subprocess.Popen([harness.CTL, "configure", "containerd", "--config", path, "--program", engine,
                                       "--engine-version", "1.7", "--method", "wrapper"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) as running:
                    patience.expect((self.root / "asked").exists, "the engine's check")
                    self.assertNotEqual(path.read_bytes(), before)
                    running.send_signal(ending)
                    (self.root / "new").write_text(answer, encoding="ascii")
                    (self.root / "new").rename(self.root / "answer")
                    said = running.communicate()[1]
                self.assertEqual((running.returncode, "changes rolled back" in said), (int(answer), answer == "1"), said)
                self.assertEqual(path.read_bytes() == before, answer == "1")
                (self.root / "asked").unlink()
                (self.root / "answer").unlink()

    def test_usage(self):
        for words in ((), ("moby",), ("docker", "--method", "shim"), ("docker", "--root", self.root, "--restart"),
                      ("docker", "--dry-run", "--restart"), ("docker", "--undo", "--method", "nri")):
            configure(*words, check=2)
        self.assertIn("--engine-version", configure("containerd", "--root", self.root, check=1).stderr)
        self.assertIn("--engine-version",
                      configure("docker", "--root", self.root, "--engine-version", "new", check=1).stderr)


if __name__ == "__main__":
    harness.main(("runc",))
