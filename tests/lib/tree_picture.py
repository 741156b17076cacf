"""Draws docs/tree.svg: each cgroup that `podqosctl tree` prints is a box within that of its parent.

    podqosctl tree | python3 tests/lib/tree_picture.py >tree.svg

What else stands before and behind the tree in its input is passed over, as in the demo's output. The picture in docs is of
the demo on a host with cgroup v2, and tests/integration/ctl/docs_test.py draws it anew:

    python3 tests/lib/guest.py v2 tests/lib/demo.py crun | python3 tests/lib/tree_picture.py >docs/tree.svg
"""

import dataclasses
import re
import sys
from xml.sax.saxutils import escape

import shown

BRANCH = re.compile(r"^(?:[│ ] {2})*[├└]─ ")
INDENT = 3  # characters a level
FILLS = {"root": "#f6f8fa", "guaranteed": "#d8f0dc", "burstable": "#fdf0c8", "besteffort": "#dcebfa", "": "#ffffff"}
STROKE, INK, FAINT = "#57606a", "#1f2328", "#57606a"
WIDTH, LINE, GAP = 104, 16, 8  # of a container's box, of a line of text, between boxes
LEGEND = "CPU weight (the shares behind it) · CPU limit · memory limit · OOM score of a container's processes"


@dataclasses.dataclass
class Box:
    """A cgroup: its lines of text, the first of them its name, and the boxes in it."""

    lines: list
    kind: str = ""
    children: list = dataclasses.field(default_factory=list)

    @property
    def head(self):
        """Height of the text."""
        return LINE * len(self.lines) + GAP

    @property
    def width(self):
        inside = sum(child.width for child in self.children) + GAP * (len(self.children) + 1)
        return max(WIDTH, inside) if self.children else WIDTH

    @property
    def height(self):
        return self.head + (max(child.height for child in self.children) + GAP if self.children else GAP)


def tables(text):
    """The rows of the tree in a longer text."""
    return [row for row in shown.rows(text) if isinstance(row, dict) and "CGROUP" in row and row["CGROUP"] != "CGROUP"]


def values(row):
    """The lines about a cgroup; what is not limited has none."""
    weight = next(cell for title, cell in row.items() if title.startswith("WEIGHT"))
    limits = (("cpu", row["CPU limit"]), ("memory", row["MEM now/limit"].partition("/")[2]))
    lines = [f"weight {weight}", *(f"{word} {limit}" for word, limit in limits if limit != "-")]
    return lines + [f"OOM {row['OOM']}"] * bool(row["OOM"])


def kind_of(name, level):
    if level == 0:
        return "root"
    if level > 1:
        return ""
    return name if name in ("burstable", "besteffort") else "guaranteed"


def parse(text):
    """The outermost box."""
    path = []
    for row in tables(text):
        branch = BRANCH.match(row["CGROUP"])
        level = len(branch[0]) // INDENT if branch else 0
        name = row["CGROUP"][len(branch[0]):] if branch else row["CGROUP"].rpartition("/")[2]
        name = name.partition("  ")[0]  # the pod's own name stands behind it
        box = Box([name, *values(row)], kind_of(name, level))
        path = [*path[:level], box]
        if level:
            path[-2].children.append(box)
    return path[0]


def elements(box, x, y, height):
    """The SVG of a box of this height, line by line; boxes that hold others are as high as their neighbours."""
    yield (f'<rect x="{x}" y="{y}" width="{box.width}" height="{height}" rx="6" fill="{FILLS[box.kind]}" '
           f'stroke="{STROKE}"/>')
    for number, line in enumerate(box.lines):
        style = 'font-weight="bold"' if number == 0 else f'fill="{FAINT}"'
        yield f'<text x="{x + GAP}" y="{y + LINE * (number + 1)}" {style}>{escape(line)}</text>'
    at = x + GAP
    for child in box.children:
        room = height - box.head - GAP
        yield from elements(child, at, y + box.head, room if child.children else child.height)
        at += child.width + GAP


def draw(text):
    """The picture of the tree in this text."""
    root = parse(text)
    width, height = root.width + 2 * GAP, root.height + 3 * GAP + LINE
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif" font-size="12" fill="{INK}">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             *elements(root, GAP, GAP, root.height),
             f'<text x="{GAP}" y="{height - GAP}" fill="{FAINT}">{escape(LEGEND)}</text>',
             "</svg>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read()))
