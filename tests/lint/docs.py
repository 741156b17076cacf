"""The documents hold together: each link, anchor and path of the tree leads somewhere, and no page is forgotten.

mkdocs knows the pages below docs and looks after links between them, but neither README.md nor anchors, nor files of the
tree that a page names. Those stand in backquotes, without a link, for the site does not have them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
SITE = ROOT / "mkdocs.yml"
MAX_COLUMNS, MAX_README = 120, 140

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(?! *[-*|]).*$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
NAVIGATION = re.compile(r"^ +- .+: (\S+\.md)$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# What a path of the tree begins with; a placeholder or a pattern is none.
TOP = ("common/", "hook/", "nri/", "ctl/", "tests/", "packaging/", "examples/", "docs/", "cmake/", ".ci/")
TREE_PATH = re.compile(rf"(?:{'|'.join(map(re.escape, TOP))})[\w./-]+")


def anchor(heading):
    """As mkdocs and most views of a repository make it."""
    plain = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def prose(text):
    """The text without its blocks of code, each line where it was."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    return INDENTED.sub("", text)


def anchors(path):
    return {anchor(heading) for heading in HEADING.findall(prose(path.read_text(encoding="utf-8")))}


def link_fault(page, target):
    """What is wrong with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, fragment = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.is_file():
        return f"no such file: {target}"
    if DOCS in page.parents and DOCS not in file.parents:
        return f"the site does not have {target}: name it in backquotes"
    if fragment and fragment not in anchors(file):
        return f"no such heading: {target}"
    return None


def faults_in(page):
    """(line number, what is wrong) of a page."""
    text = page.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        # A row of a table cannot be broken.
        if len(line) > MAX_COLUMNS and not line.startswith("|") and page != CONTRIBUTING:
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"
    text = prose(text)
    for link in LINK.finditer(text):
        if fault := link_fault(page, link[1]):
            yield text.count("\n", 0, link.start()) + 1, fault
    for code in CODE.finditer(text):
        if TREE_PATH.fullmatch(code[1]) and not (ROOT / code[1]).exists():
            yield text.count("\n", 0, code.start()) + 1, f"no such path: {code[1]}"


def faults():
    pages = [README, CONTRIBUTING, *sorted(DOCS.rglob("*.md"))]
    for page in pages:
        yield from ((page, number, fault) for number, fault in faults_in(page))
    lines = README.read_text(encoding="utf-8").count("\n")
    if lines > MAX_README:
        yield README, lines, f"{lines} lines, at most {MAX_README}"
    for index in (README, DOCS / "index.md"):
        listed = {(index.parent / target.partition("#")[0]).resolve()
                  for target in LINK.findall(index.read_text(encoding="utf-8"))}
        for page in pages:
            if DOCS in page.parents and page.name != "index.md" and page not in listed:
                yield index, 1, f"does not link {page.relative_to(ROOT)}"
    # Of a page that the navigation leaves out mkdocs 1.4 makes no warning.
    navigation = set(NAVIGATION.findall(SITE.read_text(encoding="utf-8")))
    for page in sorted(DOCS.rglob("*.md")):
        if str(page.relative_to(DOCS)) not in navigation:
            yield SITE, 1, f"no {page.relative_to(DOCS)} in nav"


def main():
    found = list(faults())
    for page, number, fault in found:
        print(f"{page.relative_to(ROOT)}:{number}: {fault}")
    print(f"{len(found)} faults in README.md, CONTRIBUTING.md and docs")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
