"""packaging/image and packaging/kubernetes as tests use them: the image as an archive, manifests as Python's values.

    archive = build_image(directory)
    plain("containerd")       # [{"kind": "ConfigMap", ...}, ...]
    Chart().render(podMonitor={"create": True})

Called as a program it renders the plain manifests anew, which is to be done after a change of the chart.
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


def plain(name):
    """The objects of packaging/kubernetes/<name>.yaml."""
    return parse((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))


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

    def text(self, *templates, **given):
        """What these templates make, or all, for values that are laid over the chart's own."""
        data = {"Values": laid_over(values(), given), "Release": {"Name": "podqos", "Namespace": "kube-system"}}
        folder = MANIFESTS / "chart/templates"
        files = [folder / name for name in templates] or sorted(folder.iterdir())
        return output(f"{self.folder.name}/render", *files, input=json.dumps(data))

    def render(self, **given):
        """The objects of all templates."""
        return parse(self.text(**given))

    def plain(self):
        """{name: contents} of the manifests for those who have no Helm."""
        made = {"containerd": self.text(), "cri-o": self.text(runtimeClass={"handler": "crun"}),
                "podmonitor": self.text("podmonitor.yaml", podMonitor={"create": True})}
        return {name: f"# Rendered from packaging/kubernetes/chart: kubectl apply -f {name}.yaml\n{text}"
                for name, text in made.items()}


if __name__ == "__main__":
    for made_name, made_text in Chart().plain().items():
        (MANIFESTS / f"{made_name}.yaml").write_text(made_text, encoding="utf-8")
