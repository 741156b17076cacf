"""The table in Markdown that the benches print; docs/performance.md carries parts of it."""


class Table:
    """Rows of a figure, what it is compared with, their ratio, and the bound of the ratio or of the figure."""

    def __init__(self):
        self.rows = [("measured", "figure", "baseline", "ratio", "bound")]

    def add(self, what, figure, baseline="", ratio="", bound=""):
        ratio = f"{ratio:.2f}" if isinstance(ratio, float) else ratio
        self.rows.append((what, figure, baseline, ratio, bound))

    def compare(self, what, figure, baseline, unit, bound=None):
        """Two numbers of one unit, and how often the second is in the first; "≤ bound" is what was promised for that."""
        self.add(what, f"{figure:,.4g} {unit}".strip(), f"{baseline:,.4g} {unit}".strip(), figure / baseline,
                 f"≤ {bound}" if bound else "")

    def markdown(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(5)]
        lines = ["| " + " | ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)) + " |" for row in self.rows]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join(lines)
