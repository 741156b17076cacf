"""Bundles, and the OCI runtimes that start them, as an engine uses them."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import uuid

import patience

PATHS = {"runc": ("/usr/sbin/runc", "/usr/bin/runc"), "crun": ("/usr/bin/crun",)}


def runtime_path(kind):
    """The real runtime's binary, or None."""
    return next((p for p in PATHS[kind] if os.access(p, os.X_OK)), None)


@functools.cache
def shared_rootfs():
    """A read-only busybox root file system that all bundles of this process share."""
    root = pathlib.Path(tempfile.gettempdir(), f"podqos-test-rootfs-{uuid.uuid4().hex}")
    # Before it is there: a signal may end this process at any point.
    atexit.register(shutil.rmtree, root, True)
    root.mkdir(mode=0o755)
    root.chmod(0o755)  # whatever the umask
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir()
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for applet in ("sh", "sleep", "cat", "true", "false", "id", "ls", "env", "grep", "echo", "dd", "stat", "sort"):
        (root / "bin" / applet).symlink_to("busybox")
    return root


@functools.cache
def spec_text(kind):
    """The unmodified output of `runc spec` or `crun spec`."""
    with tempfile.TemporaryDirectory(prefix="podqos-test-spec-") as directory:
        subprocess.run([runtime_path(kind), "spec"], cwd=directory, check=True)
        return pathlib.Path(directory, "config.json").read_text(encoding="utf-8")


class Bundle:
    """A bundle directory. `config` is the parsed spec: change it, then save(). `read()` gives the bytes on disk."""

    def __init__(self, directory, kind, args=("sleep", "1000")):
        self.path = pathlib.Path(directory)
        self.path.mkdir(parents=True)
        self.config = json.loads(spec_text(kind))
        self.config["process"]["terminal"] = False
        self.config["process"]["args"] = list(args)
        self.config["root"] = {"path": str(shared_rootfs()), "readonly": True}
        self.config.get("linux", {}).pop("cgroupsPath", None)
        self.save()

    @property
    def file(self):
        return self.path / "config.json"

    @property
    def annotations(self):
        return self.config.setdefault("annotations", {})

    @property
    def resources(self):
        return self.config["linux"].setdefault("resources", {})

    def save(self):
        self.file.write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        return self

    def read(self):
        return self.file.read_bytes()

    def reload(self):
        self.config = json.loads(self.read())
        return self

    def add_hook(self, stage, path, args, env=()):
        hook = {"path": str(path), "args": list(args), "env": list(env)}
        self.config.setdefault("hooks", {}).setdefault(stage, []).append(hook)


class Failed(AssertionError):
    """A runtime command that a test expected to succeed."""


def call(command, check=True, stdin=None, cwd=None):
    """patience.call; check: raise Failed on a non-zero status."""
    done = patience.call(command, stdin, cwd)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(done.args)}: exit {done.returncode}\n{done.stderr}{done.stdout}")
    return done


class Runtime:
    """One OCI runtime with a state directory of its own, called with podqos's wrapper before it or plainly.

    `prefix` is the argv before the verb without the global flags: [runc] or [podqos-runtime, --config, FILE].
    """

    def __init__(self, kind, state, prefix=None):
        self.kind = kind
        self.root = pathlib.Path(state)
        self.root.mkdir(parents=True, exist_ok=True)
        self.prefix = list(prefix) if prefix else [runtime_path(kind)]
        self.bundles = {}

    def command(self, *args):
        return [*map(str, self.prefix), "--root", str(self.root), *map(str, args)]

    def call(self, *args, check=True, cwd=None, stdin=None, argv=None):
        """Runs a verb, or `argv` as it is; text stdout and stderr."""
        return call(argv or self.command(*args), check, stdin, cwd)

    def create(self, name, bundle, *flags, check=True):
        self.bundles[name] = bundle
        return self.call("create", "--bundle", bundle.path, *flags, name, check=check)

    def start(self, name, check=True):
        return self.call("start", name, check=check)

    def launch(self, name, bundle):
        """create and start; returns the pid of the container's init."""
        self.create(name, bundle)
        self.start(name)
        return self.pid(name)

    def run(self, name, bundle, *flags, check=True):
        """`run` in the foreground until the container ends (or with "-d" in `flags`, detached)."""
        self.bundles[name] = bundle
        return self.call("run", "--bundle", bundle.path, *flags, name, check=check)

    def exec(self, name, *args, check=True):
        return self.call("exec", name, *args, check=check)

    def exec_detached(self, name, *args):
        """A second process in the container that stays; returns its pid."""
        with tempfile.TemporaryDirectory(prefix="podqos-test-pid-") as directory:
            file = pathlib.Path(directory, "pid")
            self.call("exec", "-d", "--pid-file", file, name, *args)
            return int(file.read_text(encoding="utf-8"))

    def state(self, name):
        """The state object, or None if there is no such container."""
        done = self.call("state", name, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def pid(self, name):
        return int(self.state(name)["pid"])

    def list(self):
        done = self.call("list", "--format" if self.kind == "runc" else "-f", "json")
        return json.loads(done.stdout or "null") or []

    def kill(self, name, signal="KILL", check=True):
        return self.call("kill", name, signal, check=check)

    def update(self, name, resources, check=True):
        """`update` with a LinuxResources object."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(resources, file)
            file.flush()
            return self.call("update", "--resources", file.name, name, check=check)

    def pause(self, name):
        return self.call("pause", name)

    def resume(self, name):
        return self.call("resume", name)

    def delete(self, name, force=True, check=True):
        flags = ["--force"] if force else []
        done = self.call("delete", *flags, name, check=check)
        self.bundles.pop(name, None)
        return done

    def delete_all(self):
        """Removes every container this runtime knows; for clean-up, so it never raises."""
        names = {entry.name for entry in self.root.iterdir()} | set(self.bundles)
        for name in names:
            done = self.call("delete", "--force", name, check=False)
            if done.returncode != 0:
                print(f"delete --force {name}: {done.stderr.strip()}", file=sys.stderr)
        self.bundles.clear()
