"""packaging/image and packaging/kubernetes as tests use them: the image as an archive, manifests as Python's values.

    archive = build_image(directory)
    kustomize("overlays/containerd")       # [{"kind": "ConfigMap", ...}, ...]
    Chart().render(podMonitor={"create": True})
"""

import json
import os
import pathlib
import tempfile

import guest
from package_case import output

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = REPOSITORY / "packaging/kubernetes"
RENDER = REPOSITORY / "tests/kubernetes/render/main.go"


def build_image(directory, *options, **environment):
    """The archive of packaging/image/build, with the programs of PODQOS_BIN."""
    said = output(REPOSITORY / "packaging/image/build", *options, directory,
                  env={**os.environ, "PODQOS_BUILT": str(guest.BIN.resolve().parent), **environment})
    return pathlib.Path(said.strip())


def parse(text):
    """The objects of a stream of YAML."""
    import yaml  # here, for the guest's root has none

    return [each for each in yaml.safe_load_all(text) if each is not None]


def kustomize(path):
    """What kubectl makes of a directory with a kustomization."""
    return parse(output("kubectl", "kustomize", MANIFESTS / path))


def values():
    """The chart's own."""
    return parse((MANIFESTS / "chart/values.yaml").read_text(encoding="utf-8"))[0]


def laid_over(below, above):
    """As Helm merges values: tables field by field, all else as a whole."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{name: laid_over(below.get(name), value) for name, value in above.items()}}
    return above


class Chart:
    """Renders the chart as Helm does, with Go's templates and the functions of sprig."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="podqos-test-")
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "CGO_ENABLED": "0",
                       "GOFLAGS": "", "GOCACHE": f"{self.folder.name}/cache"}
        output("go", "build", "-o", f"{self.folder.name}/render", RENDER, env=environment)

    def close(self):
        self.folder.cleanup()

    def render(self, **given):
        """The objects, for values that are laid over the chart's own."""
        data = {"Values": laid_over(values(), given), "Release": {"Name": "podqos", "Namespace": "kube-system"}}
        return parse(output(f"{self.folder.name}/render", MANIFESTS / "chart/templates", input=json.dumps(data)))
