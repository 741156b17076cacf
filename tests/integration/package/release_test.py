"""packaging/release: what it refuses, and what it makes of a tag. Compiling for four roots takes an hour and is for
releases; here it packs the programs of PODQOS_BIN."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
from package_case import VERSION, output  # noqa: E402

BUILD = harness.BIN.parent
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")
DATE = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="podqos-test-release-")))
        cls.tree = cls.place / "tree"
        cls.tree.mkdir()
        output("bash", "-c", 'source "$1/packaging/source.sh" && copy_tree "$1" "$2"', "bash", harness.REPOSITORY, cls.tree)
        cls.git("init", "--quiet")
        cls.git("add", "--all")
        cls.git("commit", "--quiet", "--message", "test")
        cls.tarball = f"podqos-{VERSION}.tar.gz"

    @classmethod
    def git(cls, *words):
        return output("git", "-C", cls.tree, *IDENTITY, *words, env={**os.environ, **DATE})

    def setUp(self):
        self.addCleanup(self.git, "tag", "--delete", f"v{VERSION}")
        self.git("tag", f"v{VERSION}")

    def release(self, folder, *words, tree=None, prefix=(), **environment):
        """Completed, and the directory that it was told."""
        kept = {name: value for name, value in os.environ.items() if name != "PODQOS_BUILT"}
        done = subprocess.run([*prefix, (tree or self.tree) / "packaging/release", *words, self.place / folder],
                              capture_output=True, text=True, check=False, env={**kept, **environment})
        return done, self.place / folder

    def assert_refused(self, reason, *words, status=1, **environment):
        done, made = self.release("refused", *words, **environment)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertEqual(list(made.glob("*")) if made.exists() else [], [])

    def test_refuses_another_tree_than_the_tags(self):
        stray = self.tree / "stray.txt"
        stray.touch()
        self.assert_refused("the tree has changes that are in no commit:\n?? stray.txt")
        stray.unlink()
        self.git("tag", "--delete", f"v{VERSION}")
        self.addCleanup(self.git, "tag", f"v{VERSION}")
        self.assert_refused(f"no tag is checked out: git tag --sign v{VERSION}")
        self.git("tag", "v99.0.0")
        self.addCleanup(self.git, "tag", "--delete", "v99.0.0")
        self.assert_refused(f"the tag is v99.0.0, and CMakeLists.txt says version {VERSION}: it has to be v{VERSION}")

    def test_refuses_what_it_does_not_know(self):
        self.assert_refused("there is no part sources", "--only", "sources", status=2)
        self.assert_refused("PODQOS_BUILT is of ", "--only", "trixie-arm64", PODQOS_BUILT=str(BUILD))

    def test_refuses_a_directory_with_something_in_it(self):
        (self.place / "full").mkdir()
        (self.place / "full/file").touch()
        done, made = self.release("full", "--only", "source")
        self.assertEqual((done.returncode, [path.name for path in made.iterdir()]), (1, ["file"]))
        self.assertIn(f"{made} is not empty", done.stderr)

    def test_source(self):
        """All that git knows of the tag, under one name; the same from another clone."""
        done, made = self.release("source", "--only", "source")
        self.assertEqual((done.returncode, done.stdout), (0, f"{made}\n"), done.stderr)
        with tarfile.open(made / self.tarball) as archive:
            members = archive.getmembers()
        self.assertEqual({member.name for member in members if not member.isdir()},
                         {f"podqos-{VERSION}/{name}" for name in self.git("ls-files").splitlines()})
        self.assertEqual({member.mtime for member in members}, {1767323045})
        self.assertEqual({member.mode & 0o022 for member in members}, {0})
        # RFC 1952: neither a name (FLG.FNAME) nor a time.
        self.assertEqual((made / self.tarball).read_bytes()[3:8], bytes(5))

        clone = self.place / "elsewhere/clone"
        output("git", "clone", "--quiet", self.tree, clone)
        again, other = self.release("source-again", "--only", "source", tree=clone, LC_ALL="C.UTF-8", TZ="Asia/Tokyo",
                                    prefix=("sh", "-c", 'umask 077; exec "$@"', "sh"))
        self.assertEqual(again.returncode, 0, again.stderr)
        for name in (self.tarball, "SHA256SUMS"):
            self.assertEqual((other / name).read_bytes(), (made / name).read_bytes(), name)

    def test_packages(self):
        """Debian's and rpm's, with what they consist of, and sums over everything."""
        guest.require_tools()
        if not shutil.which("rpmbuild"):
            self.skipTest("rpmbuild is not installed")
        if "CMAKE_BUILD_TYPE:STRING=Release\n" not in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"):
            self.skipTest(f"{BUILD} is not a release build, and only that is packaged")
        machine = re.search(r"(?m)^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))[1]
        architecture = output("dpkg", "--print-architecture").strip()
        done, made = self.release("packages", "--only", f"{machine}-{architecture}", tree=harness.REPOSITORY,
                                  PODQOS_BUILT=str(BUILD))
        self.assertEqual(done.returncode, 0, done.stderr)
        debian = {f"podqos_{VERSION}-1_{architecture}", f"podqos-nri_{VERSION}-1_{architecture}"}
        fedora = {f"podqos-{VERSION}-1.{os.uname().machine}.rpm", f"podqos-nri-{VERSION}-1.{os.uname().machine}.rpm"}
        names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
        self.assertLessEqual({*(f"{name}.deb" for name in debian), *fedora,
                              *(f"sbom/{name}.spdx.json" for name in debian | fedora), "SHA256SUMS"}, names)
        sums = dict(reversed(line.split("  ")) for line in (made / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
        self.assertEqual(set(sums), names - {"SHA256SUMS"})
        self.assertEqual(output("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=made), "")
        for path in (made / "sbom").iterdir():
            self.assertIn(f'"versionInfo": "{VERSION}-1"', path.read_text(encoding="utf-8"), path.name)

    def test_manifests(self):
        if not (harness.REPOSITORY / "packaging/kubernetes").is_dir():
            self.assert_refused("this commit has no packaging/kubernetes", "--only", "manifests")
            return
        made = [self.release(folder, "--only", "manifests")[1] / f"podqos-kubernetes-{VERSION}.tar.gz"
                for folder in ("manifests", "manifests-again")]
        self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
        with tarfile.open(made[0]) as archive:
            names = {member.name for member in archive.getmembers() if not member.isdir()}
        self.assertEqual(names, {name.replace("packaging/kubernetes", f"podqos-kubernetes-{VERSION}", 1)
                                 for name in self.git("ls-files", "packaging/kubernetes").splitlines()})


if __name__ == "__main__":
    harness.main(("runc",))
