"""The files of engines that `podqosctl configure` changes: running it, and comparing what is there before and after."""

import hashlib
import os
import subprocess

import harness

STOCK = harness.REPOSITORY / "tests/data/engines/containerd-debian.toml"
CONTAINERD = "etc/containerd/config.toml"
DAEMON_JSON = "etc/docker/daemon.json"
NVIDIA = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}


def configure(*words, check=0, **more):
    """CompletedProcess, which has ended with this status."""
    done = subprocess.run([harness.CTL, "configure", *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=harness.CALL_TIMEOUT, **more)
    if done.returncode != check:
        raise AssertionError(f"configure {words}: exit {done.returncode}\n{done.stderr}{done.stdout}")
    return done


def snapshot(root):
    """{path: what is there} below a directory, directories left out."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(root))] = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(root))] = (content, status.st_uid, status.st_gid, status.st_mode)
    found.pop("cni/net.d/cni.lock", None)  # Podman 4's own
    return found
