"""What others register with engines, written by hand as nvidia-container-toolkit (1.17) and oci-seccomp-bpf-hook do, with
programs that stand in for theirs: each writes down how it was called and what it read.

    neighbours.register_hooks()          # for Podman: hooks.d, and CDI
    ...                                  # a container
    neighbours.told()                    # [(program and arguments, environment, state)] of the calls since the last time

For Docker and containerd it is a runtime (register_runtime), which gets a config.json in place of a state.

Sources: oci-nvidia-hook.json of NVIDIA/nvidia-container-toolkit, oci-seccomp-bpf-hook.json of
containers/oci-seccomp-bpf-hook; what `nvidia-ctk cdi generate` and `nvidia-ctk runtime configure` write.
"""

import json
import pathlib
import re

import engine

TOLD = engine.WORK / "told"
HOOKS = pathlib.Path("/usr/share/containers/oci/hooks.d")
CDI = pathlib.Path("/etc/cdi/nvidia.yaml")
TOOLKIT, CDI_HOOK = pathlib.Path("/usr/bin/nvidia-container-toolkit"), pathlib.Path("/usr/bin/nvidia-cdi-hook")
NVIDIA_RUNTIME = pathlib.Path("/usr/bin/nvidia-container-runtime")
# Beside podqos's own program.
SECCOMP_HOOK = pathlib.Path("/usr/libexec/oci/hooks.d/oci-seccomp-bpf-hook")
# Of containers and layers, of which the short form is a host name; and of processes.
ID = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b|(?<=/proc/)\d+(?=/)")
# What a container asks them for.
FLAGS = ("--device", "nvidia.com/gpu=all", "--annotation", "io.containers.trace-syscall=of:/tmp/profile.json")
FILES = {
    HOOKS / "oci-nvidia-hook.json": json.dumps({
        "version": "1.0.0", "hook": {"path": str(TOOLKIT), "args": [TOOLKIT.name, "prestart"], "env": ["PATH=/usr/bin:/bin"]},
        "when": {"always": True, "commands": [".*"]}, "stages": ["prestart"]}, indent=2) + "\n",
    HOOKS / "oci-seccomp-bpf-hook.json": json.dumps({
        "version": "1.0.0", "hook": {"path": str(SECCOMP_HOOK), "args": [SECCOMP_HOOK.name, "-s"]},
        "when": {"annotations": {r"^io\.containers\.trace-syscall$": ".*"}}, "stages": ["prestart"]}, indent=4) + "\n\n",
    CDI: f"""---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/null
      hostPath: /dev/null
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - hookName: createContainer
    path: {CDI_HOOK}
    args:
    - nvidia-cdi-hook
    - update-ldcache
    - --folder
    - /usr/lib/x86_64-linux-gnu
""",
}
# Newer cruns write the state in lines.
HOOK = f"""#!/bin/sh
{{ echo "$0 $*"; /usr/bin/env | /usr/bin/sort | /usr/bin/tr '\\n' ' '; echo; /usr/bin/tr '\\n' ' '; echo; }} >>{TOLD}
"""
# What `nvidia-ctk runtime configure --set-as-default` adds for Docker, and for containerd to a file of version 2.
DOCKER = {"default-runtime": "nvidia", "runtimes": {"nvidia": {"args": [], "path": NVIDIA_RUNTIME.name}}}
CONTAINERD = f"""
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    privileged_without_host_devices = false
    runtime_engine = ""
    runtime_root = ""
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "{NVIDIA_RUNTIME}"
"""
# As nvidia-container-runtime it is called with runc's arguments, and becomes runc.
RUNTIME = f"""#!/bin/sh
bundle=. previous=
for word; do
  if [ "$previous" = --bundle ]; then bundle=$word; fi
  previous=$word
done
case " $* " in
  *" create "*) {{ echo "$0 $*"; echo; /bin/cat "$bundle/config.json"; echo; }} >>{TOLD} ;;
esac
exec runc "$@"
"""


def register_hooks():
    """As their packages do; whatever else is there stays."""
    for path, text in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    _programs(HOOK, TOOLKIT, CDI_HOOK, SECCOMP_HOOK)


def register_runtime():
    """The program; who names it is the engine's configuration."""
    _programs(RUNTIME, NVIDIA_RUNTIME)


def _programs(text, *paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(0o755)


def snapshot():
    """{path: (content, mode, owner, time of the last change)} of all files above."""
    paths = [path for path in (*FILES, TOOLKIT, CDI_HOOK, SECCOMP_HOOK) if path.exists()]
    return {path: (path.read_bytes(), path.stat().st_mode, path.stat().st_uid, path.stat().st_mtime_ns) for path in paths}


def told():
    """[(call, environment, what was read)] in the order of the calls, without what differs from container to container;
    forgets them."""
    lines = ID.sub("ID", TOLD.read_text(encoding="utf-8")).splitlines() if TOLD.exists() else []
    TOLD.unlink(missing_ok=True)
    calls = []
    for called, environment, read in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        state = json.loads(read)
        state.pop("pid", None)
        state.get("annotations", {}).pop("io.kubernetes.cri-o.Created", None)
        calls.append((called, environment, state))
    return calls
