"""crictl, as far as the documents use it: `crictl run CONTAINER POD`, two files of JSON, with containerd's own socket.

Debian has no crictl. Images are not pulled: they are there. It prints the container's id, as crictl does.
"""

import json
import pathlib
import sys

import cri

SOCKET = "/run/containerd/containerd.sock"


def main():
    verb, container, pod = sys.argv[1:]
    if verb != "run":
        sys.exit(f"crictl {verb}: only run is known")
    container, pod = (json.loads(pathlib.Path(name).read_text(encoding="utf-8")) for name in (container, pod))
    client = cri.Client(SOCKET)
    client.wait()
    identifier = client.create(client.run_pod(pod, ""), container)
    client.start(identifier)
    print(identifier)


if __name__ == "__main__":
    main()
