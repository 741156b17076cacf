"""What the programs of a build tree are made of, and whose packages it came from.

Read from what the build itself has written down: the linker's maps (link/<program>.map) say which archives and objects
were linked, and ninja's log of dependencies says which headers they were compiled from.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess

MEMBER = re.compile(r"^(\S+\.a)\(.*\)$")
LOADED = re.compile(r"^LOAD (\S+)$", re.MULTILINE)
# gcc's temporary files: what is optimised at link time, of objects that are named beside it.
TEMPORARY = re.compile(r"/cc\w{6}(\.\w+)*\.o$")
# Packages of interfaces in C: from their headers nothing gets into a program, and their libraries are in the map.
INTERFACES = re.compile(r"(libc6-dev|linux-libc-dev)(-\w+-cross)?|libdbus-1-dev|libseccomp-dev|"
                        r"glibc-(devel|headers)(-\w+)?|kernel-headers|dbus-devel|libseccomp-devel")


class Unknown(Exception):
    """Something that a program was made of belongs to no package, or to one that cannot be described."""


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    """An installed package of the machine that built the programs, and the source package that it was built from."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def _names_of(path):
    """A file's names in the database of packages, which may have it from before /lib became a link to /usr/lib."""
    real = str(pathlib.Path(path).resolve())
    return [real, real.removeprefix("/usr")] if real.startswith("/usr/lib") else [real]


def _dpkg_packages(names):
    """{file: package} of those of these files that dpkg knows."""
    found = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True, check=False, timeout=120)
    owners = {name: owner.partition(", ")[0] for owner, _, name in
              (line.partition(": ") for line in found.stdout.splitlines())}
    if not owners:
        return {}
    form = "${binary:Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
    shown = _output("dpkg-query", "--show", f"--showformat={form}", *sorted(set(owners.values())))
    packages = {}
    for line in shown.splitlines():
        name, *fields = line.split("\t")
        packages[name] = Package(name.partition(":")[0], *fields)
    return {name: packages[owner] for name, owner in owners.items()}


def _rpm_packages(names):
    """The same of those that rpm knows."""
    packages = {}
    for name in names:
        found = subprocess.run(["rpm", "--query", "--file", "--queryformat",
                                "%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\t%{SOURCERPM}", name],
                               capture_output=True, text=True, check=False, timeout=60)
        if found.returncode == 0:
            *fields, source = found.stdout.split("\t")
            source, version, release = source.removesuffix(".src.rpm").rsplit("-", 2)
            packages[name] = Package(*fields, source, f"{version}-{release}")
    return packages


def packages_of(paths):
    """The packages that files of this machine belong to. Raises Unknown."""
    names = {path: _names_of(path) for path in paths}
    sought = sorted({name for alternatives in names.values() for name in alternatives})
    known = {}
    if sought and shutil.which("dpkg-query"):
        known = _dpkg_packages(sought)
    if sought and not known and shutil.which("rpm"):
        known = _rpm_packages(sought)
    found = set()
    for path, alternatives in names.items():
        owners = [known[name] for name in alternatives if name in known]
        if not owners:
            raise Unknown(f"{path} belongs to no package")
        found.add(owners[0])
    return found


class Program:
    """A program of a build tree: bin/<name>, as it was linked."""

    def __init__(self, build, name):
        self.build, self.name = pathlib.Path(build), name
        written = self.build / "link" / f"{name}.map"
        if not written.exists():
            raise Unknown(f"{written} is missing: build {name} again")
        self.map = written.read_text(encoding="utf-8", errors="replace")

    def _linked(self):
        """Archives of which it has something, and objects: paths as the linker was given them."""
        head, _, rest = self.map.partition("\nLinker script and memory map\n")
        archives = {found[1] for line in head.splitlines() if (found := MEMBER.match(line))}
        return archives | {path for path in LOADED.findall(rest) if path.endswith(".o") and not TEMPORARY.search(path)}

    def _headers(self, linked):
        """What its own objects were compiled from outside the project."""
        places = set()
        for path in linked:
            folder, name = pathlib.PurePath(path).parent, pathlib.PurePath(path).name
            if name.endswith(".a"):
                places.add(str(folder / "CMakeFiles" / f"{name.removeprefix('lib').removesuffix('.a')}.dir") + "/")
            else:
                places.add(path + ":")
        chosen, found = False, set()
        for line in _output("ninja", "-C", str(self.build), "-t", "deps").splitlines():
            if line.startswith("    "):
                if chosen and line.strip().startswith("/usr/"):
                    found.add(line.strip())
            else:
                chosen = line.startswith(tuple(places))
        return found

    def static_packages(self):
        """The packages whose code is in it, sorted."""
        linked = self._linked()
        own = {path for path in linked if not path.startswith("/")}
        found, headers = packages_of(linked - own), packages_of(self._headers(own))
        return sorted(found | {package for package in headers if not INTERFACES.fullmatch(package.name)})
