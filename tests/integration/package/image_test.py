"""The container image of podqos-nri: what packaging/image/build puts into it, and that it is always the same."""

import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import kubernetes_manifests  # noqa: E402
from package_case import VERSION  # noqa: E402

LARGEST = 12 << 20  # bytes of all files
FILES = {  # path: mode
    "etc": 0o755, "etc/podqos": 0o755, "etc/podqos/podqos.json": 0o644,
    "usr": 0o755, "usr/sbin": 0o755, "usr/sbin/podqos-nri": 0o755,
    "usr/share": 0o755, "usr/share/doc": 0o755, "usr/share/doc/podqos-nri": 0o755,
    "usr/share/doc/podqos-nri/LICENSE": 0o644, "usr/share/doc/podqos-nri/copyright": 0o644,
}
DATE = 1700000000  # 2023-11-14T22:13:20Z


class Made:
    """An archive: what index.json says of its image, the image's manifest, and its configuration."""

    def __init__(self, archive):
        with tarfile.open(archive) as opened:
            self.content = {entry.name: opened.extractfile(entry).read() for entry in opened if entry.isfile()}
        (self.described,) = json.loads(self.content["index.json"])["manifests"]
        self.manifest = json.loads(self.blob(self.described))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor):
        algorithm, digest = descriptor["digest"].split(":")
        data = self.content[f"blobs/{algorithm}/{digest}"]
        if hashlib.sha256(data).hexdigest() != digest:
            raise AssertionError(f"blob {digest} has another sum")
        return data

    def layer(self):
        (described,) = self.manifest["layers"]
        return tarfile.open(fileobj=io.BytesIO(self.blob(described)))


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        guest.require_tools("buildah", "strip")
        if os.geteuid() != 0:
            raise unittest.SkipTest("buildah needs root")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="podqos-test-")))
        cls.archive = kubernetes_manifests.build_image(cls.folder / "first", SOURCE_DATE_EPOCH=str(DATE))
        cls.made = Made(cls.archive)

    def test_holds_the_program_and_nothing_else(self):
        with self.made.layer() as layer:
            entries = {entry.name.strip("/"): entry for entry in layer}
            self.assertEqual({name: entry.mode & 0o7777 for name, entry in entries.items()}, FILES)
            self.assertEqual({(entry.uid, entry.gid, entry.mtime) for entry in entries.values()}, {(0, 0, DATE)})
            self.assertLessEqual(sum(entry.size for entry in entries.values()), LARGEST)
            root = self.folder / "root"
            layer.extractall(root)
        done = subprocess.run(["chroot", root, "/usr/sbin/podqos-nri", "--version"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, f"podqos-nri {VERSION}\n"), done.stderr)
        self.assertEqual((root / "etc/podqos/podqos.json").read_bytes(),
                         (harness.REPOSITORY / "packaging/podqos.json").read_bytes())

    def test_says_what_it_is(self):
        name = f"localhost/podqos-nri:{VERSION}"
        self.assertEqual(self.made.described["annotations"], {"org.opencontainers.image.ref.name": name,
                                                    "io.containerd.image.name": name})
        config = self.made.config
        self.assertEqual(config["config"]["Entrypoint"], ["/usr/sbin/podqos-nri"])
        self.assertEqual(config["config"]["Labels"], {
            "org.opencontainers.image.title": "podqos-nri", "org.opencontainers.image.version": VERSION,
            "org.opencontainers.image.description": "NRI plugin that gives each pod its Kubernetes QoS cgroups",
            "org.opencontainers.image.licenses": "Apache-2.0"})
        self.assertEqual((config["os"], config["architecture"], config["created"]),
                         ("linux", "amd64", "2023-11-14T22:13:20Z"))

    def test_is_the_same_each_time_and_leaves_nothing_behind(self):
        """Whatever the umask, and with files of another time."""
        scratch = self.folder / "scratch"
        scratch.mkdir()
        before = os.umask(0o077)
        try:
            again = kubernetes_manifests.build_image(self.folder / "second", SOURCE_DATE_EPOCH=str(DATE),
                                                     TMPDIR=str(scratch))
        finally:
            os.umask(before)
        self.assertEqual(again.read_bytes(), self.archive.read_bytes())
        self.assertEqual(list(scratch.iterdir()), [])

    def test_has_the_name_that_it_is_given(self):
        other = kubernetes_manifests.build_image(self.folder / "named", "--name", "registry.example/qos/nri:v1")
        self.assertEqual(set(Made(other).described["annotations"].values()), {"registry.example/qos/nri:v1"})

    def test_is_of_another_architecture_where_its_program_is(self):
        built = self.folder / "foreign/bin"
        built.mkdir(parents=True)
        # What strip of this machine could not read is packed as it is.
        (built / "podqos-nri").write_bytes(b"\x7fELF of another machine")
        (built / "podqos-nri").chmod(0o755)
        archive = kubernetes_manifests.build_image(self.folder / "arm64", "--architecture", "arm64",
                                                   PODQOS_BUILT=str(built.parent))
        self.assertEqual(archive.name, f"podqos-nri_{VERSION}_arm64.oci.tar")
        config = Made(archive).config
        self.assertEqual((config["os"], config["architecture"]), ("linux", "arm64"))

    def test_refuses_what_it_cannot_build(self):
        build = harness.REPOSITORY / "packaging/image/build"
        environment = {**os.environ, "PODQOS_BUILT": str(self.folder)}
        for words, said in (((), "expected one argument, DIRECTORY"), (("--name", "No Name", self.folder), "a name with a tag"),
                            ((self.folder,), "holds no podqos-nri"),
                            (("--architecture", "../x", self.folder), "Debian's name of an architecture"),
                            (("--isolation", "rootless", self.folder), "unknown argument --isolation")):
            done = subprocess.run([build, *words], capture_output=True, text=True, check=False, env=environment)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    if not (guest.BIN / "podqos-nri").exists():
        print(f"skipped: {guest.BIN}/podqos-nri is not built")
        sys.exit(harness.SKIPPED)
    harness.main(("runc",))
