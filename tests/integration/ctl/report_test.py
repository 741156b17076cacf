#!/usr/bin/env python3
"""podqosctl report: one page of HTML with what is wrong, what pods use, and events, which runs and loads nothing."""

import html.parser
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
from harness import MI, container, pod  # noqa: E402

WEB = pod("report-web", container("app", requests={"cpu": "100m"}, limits={"cpu": "200m", "memory": "64Mi"}))
HOSTILE = "\"'><script>alert(1)</script>\x1b[2J"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
VOID = ("meta", "br")
# A page that says how wide the report needs to be in frames of some widths, and the colour behind it. It is the test's.
WIDTHS = (1280, 400)
FRAMES = "".join(f'<iframe src="node.html" style="width: {width}px; height: 4000px; border: 0"></iframe>'
                 for width in WIDTHS)
SCRIPT = """<script>addEventListener("load", () => {
  document.body.textContent = Array.from(document.querySelectorAll("iframe"), (frame) => {
    const page = frame.contentDocument;
    const behind = page.defaultView.getComputedStyle(page.body).backgroundColor;
    return "measured " + page.documentElement.scrollWidth + " " + behind;
  }).join(" ");
});</script>"""


class Page(html.parser.HTMLParser):
    """The tags of a page with their attributes, and its text; each element is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


@harness.runc_only
class Report(harness.TestCase):
    """A pod, a value that was changed behind podqos's back, and an event with a hostile text."""

    def setUp(self):
        super().setUp()
        self.launch(WEB, "app")
        self.machine.write(self.pod_path("burstable", "report-web"), "memory", 32 * MI)
        event = {"time": "2026-01-31T23:59:59.000Z", "event": "failed", "program": "podqos-hook", "uid": "u",
                 "name": HOSTILE, "text": HOSTILE}
        with open(self.podqos.state / "events", "a", encoding="utf-8") as journal:
            journal.write(json.dumps(event, separators=(",", ":")) + "\n")
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="podqos-test-")))
        self.file = self.place / "node.html"

    def assert_whole(self, text):
        page = Page(text)
        self.assertEqual({tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "a", "form"}, set())
        names = {name for _, attributes in page.tags for name in attributes}
        self.assertEqual([name for name in names if name.startswith("on") or name in ("src", "href", "style")], [])
        for part in ("pods: values", "memory", "fix: podqosctl reconcile", "report-web", "app", "Burstable",
                     "placed", "failed", "<script>alert(1)</script>\\x1b[2J"):
            self.assertIn(part, page.text)
        self.assertRegex(page.text, r"\d+m / 100m / 200m")

    def test_file(self):
        """Replaced as a whole; its writer's alone; nothing else is left in its directory."""
        self.file.write_text("earlier")
        self.file.chmod(0o644)
        self.podqos.ctl("report", "--output", self.file)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual(list(self.place.iterdir()), [self.file])
        self.assert_whole(self.file.read_text(encoding="utf-8"))

    def test_standard_output_and_refusals(self):
        self.assert_whole(self.podqos.ctl("report", "--output", "-").stdout)
        other = self.place / "other"
        os.mkfifo(other)
        (self.place / "link").symlink_to("other")
        for path, said in ((other, "is not a regular file"), (self.place / "link", "is not a regular file"),
                           (self.place, "is not a regular file"), (self.place / "none" / "x", "No such file")):
            with self.subTest(path):
                done = self.podqos.ctl("report", "--output", path, check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(said, done.stderr)
        self.assertEqual(sorted(file.name for file in self.place.iterdir()), ["link", "other"])

    def test_in_a_browser(self):
        """It fits 1280 and 400 pixels, and is dark where the reader's programs are."""
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            self.skipTest("no Chromium is installed (Debian: chromium-headless-shell, which tests/run --all installs)")
        self.podqos.ctl("report", "--output", self.file)
        (self.place / "frames.html").write_text(f"<!DOCTYPE html><body>{FRAMES}{SCRIPT}</body>", encoding="utf-8")
        for scheme, colour in (("1", "rgb(255, 255, 255)"), ("0", "rgb(20, 24, 28)")):
            with self.subTest(scheme=scheme):
                shown = subprocess.run(
                    [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                     f"--user-data-dir={self.place}/profile", f"--blink-settings=preferredColorScheme={scheme}",
                     "--dump-dom", (self.place / "frames.html").as_uri()],
                    capture_output=True, text=True, check=True).stdout
                measured = re.findall(r"measured (\d+) (rgb\(.*?\))", shown)
                self.assertEqual([behind for _, behind in measured], [colour] * len(WIDTHS), shown[-2000:])
                for (needed, _), width in zip(measured, WIDTHS, strict=True):
                    self.assertLessEqual(int(needed), width)  # less by a scroll bar beside a long page


if __name__ == "__main__":
    harness.main()
