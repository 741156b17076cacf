"""The table in Markdown that the benches print; docs/performance.md carries parts of it."""


class Table:
    """Rows of (what, figure, target); `limit` decides the mark."""

    def __init__(self):
        self.rows = [("measured", "figure", "target", "")]

    def add(self, what, figure, target="", met=None):
        mark = "" if met is None else ("met" if met else "**missed**")
        self.rows.append((what, figure, target, mark))

    def ratio(self, what, value, limit=None):
        if limit is None:
            self.add(what, f"{value:.2f}")
        else:
            self.add(what, f"{value:.2f}", f"≤ {limit}", value <= limit)

    def markdown(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(4)]
        lines = ["| " + " | ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)) + " |" for row in self.rows]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join(lines)
