"""What a document shows of a command's output, beside what the command prints now.

    shown.difference(text_of_the_document, text_of_the_command)   # None, or the first line that differs

Both must agree to the letter, but for what changes from one run to the next in the tables of `podqosctl tree` and
`podqosctl status`: process ids, numbers of processes, and memory in use, which may differ by a few MiB; and for
percentages outside of tables, which may differ by a few hundredths.
"""

import itertools
import re

HEADER = re.compile(r"(CGROUP|NODE|POD|TIER)  ")
TITLE = re.compile(r"\S+(?: \S+)*")
COUNTS = {"PID", "PIDS"}
AMOUNTS = re.compile("MEM now/")  # what is in use, then what the pod requests and may have
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
TOLERANCE = 8 << 20  # bytes
PERCENTAGE = re.compile(r"\b(\d+)%")
POINTS = 3  # by which percentages may differ


def rows(text):
    """Of each line the cells as {title: text}, or the line itself where it is not part of a table."""
    columns = []
    for line in text.splitlines():
        if HEADER.match(line):
            titles = list(TITLE.finditer(line))
            ends = [title.start() for title in titles[1:]] + [None]
            columns = [(title[0], title.start(), end) for title, end in zip(titles, ends)]
        elif not line or line.startswith("warning: "):
            columns = []
        yield {title: line[start:end].rstrip() for title, start, end in columns} if columns else line


def amount(cell):
    """Bytes of "~1.5Mi"; None for anything else."""
    found = re.fullmatch(r"~?([\d.]+)(Ki|Mi|Gi|)", cell)
    return float(found[1]) * UNITS[found[2]] if found else None


def _alike(title, shown, found):
    if title in COUNTS and shown.isdigit() and found.isdigit():
        return True
    if AMOUNTS.match(title):
        (used, *shown), (uses, *found) = shown.split("/"), found.split("/")
        alike = used == uses or None not in (amount(used), amount(uses))
        return shown == found and alike and abs((amount(used) or 0) - (amount(uses) or 0)) <= TOLERANCE
    return shown == found


def _same(shown, found):
    if isinstance(shown, str) and isinstance(found, str):
        pairs = zip(PERCENTAGE.findall(shown), PERCENTAGE.findall(found))
        return (PERCENTAGE.sub("%", shown) == PERCENTAGE.sub("%", found)
                and all(abs(int(one) - int(other)) <= POINTS for one, other in pairs))
    if isinstance(shown, str) or isinstance(found, str):
        return False
    return list(shown) == list(found) and all(_alike(title, cell, found[title]) for title, cell in shown.items())


def difference(shown, found):
    """A sentence about the first line in which they differ; None where there is none."""
    pairs = itertools.zip_longest(rows(shown), rows(found), fillvalue="<nothing>")
    for number, (wanted, line) in enumerate(pairs, 1):
        if not _same(wanted, line):
            return f"line {number}: shown is {wanted}, printed is {line}"
    return None
