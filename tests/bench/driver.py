"""driver.c, from Python."""

import os
import statistics

import scenario


class Driver:
    """Runs syscalls.Program values by the compiled driver; `restore_script` puts the state back after each."""

    def __init__(self, directory):
        self.directory = directory
        self.program = scenario.compile_c(scenario.HERE / "driver.c", directory / "driver")
        self.restore_script = directory / "restore"
        self.idle = [str(directory / "noop")]

    def _write(self, programs):
        lines = []
        for number, (name, program) in enumerate(programs.items()):
            given = self.directory / f"input-{number}"
            given.write_bytes(program.given)
            lines.append("\t".join([name, str(given), str(program.cwd), *map(str, program.argv)]))
        file = self.directory / "programs"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    def time(self, programs, rounds):
        """{name: Timing} of programs that take turns."""
        out = scenario.run([self.program, "time", rounds, self._write(programs), self.restore_script], timeout=600)
        runs = {name: [] for name in programs}
        for line in out.splitlines():
            name, nanoseconds, kilobytes = line.split("\t")
            runs[name].append((int(nanoseconds) / 1e6, int(kilobytes)))
        return {name: Timing(found) for name, found in runs.items()}

    def once(self, programs, at_a_time):
        """Seconds that all programs take together."""
        return int(scenario.run([self.program, "once", at_a_time, self._write(programs)], timeout=600)) / 1e9

    def steps(self, program):
        """Machine instructions that a program executes outside of the kernel. Puts nothing back."""
        return int(scenario.run([self.program, "steps", self._write({"one": program})], timeout=600))

    def restore(self):
        """What follows each timed run."""
        given = self.directory / "nothing"
        given.write_bytes(b"")
        file = self.directory / "idle"
        file.write_text("\t".join(["idle", str(given), "/", *self.idle]) + "\n", encoding="utf-8")
        scenario.run([self.program, "time", 1, file, self.restore_script])


class Timing:
    """Milliseconds and peak memory of one program's runs."""

    def __init__(self, runs):
        times = sorted(time for time, _ in runs)
        self.median = statistics.median(times)
        self.p99 = times[min(len(times) - 1, len(times) * 99 // 100)]
        self.peak = max(size for _, size in runs) * 1024  # bytes


def build_go_hook(directory):
    """The Go hook, built as small and as static as Go can."""
    target = directory / "go-hook"
    environment = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
                   "GOCACHE": str(directory / "go-cache")}
    command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, scenario.HERE / "hook.go"]
    scenario.run(command, env=environment, timeout=600)
    return target
