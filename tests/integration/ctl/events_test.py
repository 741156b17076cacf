"""podqosctl events: what happened to pods, from the journal of events."""

import json
import os
import pathlib
import select
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import terminal  # noqa: E402
from harness import container, pod  # noqa: E402

FIRST = pod("events-1", container("app", requests={"cpu": "100m"}), container("log", requests={"cpu": "50m"}))
SECOND = pod("events-2", container("app", requests={"cpu": "100m"}))


@harness.runc_only
class Events(harness.TestCase):
    """All that the wrapper, the hook and podqosctl have recorded."""

    def setUp(self):
        super().setUp()
        for manifest, name in ((FIRST, "app"), (FIRST, "log"), (SECOND, "app")):
            made, _ = self.launch(manifest, name)
            self.ids = [*getattr(self, "ids", []), made]

    def shown(self, *options):
        lines = self.podqos.ctl("events", "-o", "json", *options).stdout.splitlines()
        return [(event["event"], event["uid"]) for event in map(json.loads, lines)]

    def follow(self, *options):
        command = [harness.CTL, "--config", self.podqos.config(self.kind), "events", "-f", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # pylint: disable=R1732
        self.addCleanup(process.kill)
        return process

    def test_story_of_a_node(self):
        placed = [("placed", "events-1"), ("placed", "events-1"), ("placed", "events-2")]
        self.assertEqual(self.shown(), placed)
        self.wrapper.delete(self.ids[2])
        whole = [*placed, ("released", "events-2")]
        self.assertEqual(self.shown(), whole)
        # What has ended is known to the journal alone.
        done = self.podqos.ctl("describe", "events-2", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("; podqosctl why also knows what has ended", done.stderr)
        self.podqos.ctl("why", "events-2")
        for options, wanted in ((["--pod", "events-1"], placed[:2]), (["--pod", "events-1/log"], placed[1:2]),
                                (["-n", "1"], whole[-1:]), (["--since", "1h"], whole),
                                (["--since", "@9999999999"], [])):
            with self.subTest(options):
                self.assertEqual(self.shown(*options), wanted)
        for options, status, said in ((["--pod", "other"], 1, "other"),
                                      (["--since", "soon"], 2, "--since: expected a time")):
            done = self.podqos.ctl("events", *options, check=False)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(said, done.stderr)

    def test_on_a_terminal(self):
        config = str(self.podqos.config(self.kind))
        status, text = terminal.run([str(harness.CTL), "--config", config, "events"], 80)
        lines = terminal.plain(text).splitlines()
        self.assertEqual((status, [line for line in lines if len(line) > 80]), (0, []))
        self.assertRegex(lines[1], r"^\w{3} \d\d \d\d:\d\d:\d\d  placed +events-1/app  Burstable, cpu 150m, memory 0 ")

    def test_follows_over_a_rename_until_its_reader_goes(self):
        process = self.follow("-n", "1")
        self.assertRegex(process.stdout.readline(), "^TIME +EVENT +POD +WHAT")
        self.assertRegex(process.stdout.readline(), "placed +events-2/app")
        os.rename(self.podqos.state / "events", self.podqos.state / "events.1")
        self.wrapper.delete(self.ids[2])
        self.assertRegex(process.stdout.readline(), "released +events-2 ")
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(process.stderr.read(), "")
        process.stderr.close()

    def test_follows_before_there_is_any(self):
        """As tail -F does. The state directory is podqos's own here."""
        state = self.podqos.state.rename(self.tmp / "later")
        process = self.follow("-n", "1")
        self.assertFalse(select.select([process.stdout, process.stderr], [], [], 0.5)[0])
        state.rename(self.podqos.state)
        self.assertRegex(process.stdout.readline(), "^TIME +EVENT +POD +WHAT")
        process.kill()
        process.communicate()

    def test_what_is_damaged_is_skipped(self):
        with open(self.podqos.state / "events", "ab") as file:
            file.write(b'{"time":"garbage\x1b[2J\n')
        done = self.podqos.ctl("events")
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertEqual(done.stderr, "podqosctl: skipped 1 damaged line of the journal of events\n")


if __name__ == "__main__":
    harness.main()
