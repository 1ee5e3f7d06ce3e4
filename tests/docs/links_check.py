#!/usr/bin/env python3
"""Checks that what the Markdown files link to in this repository is there: files and headings.

And that every file that a page names in code, by its path or the end of one, is there; but for
pages of what was: the changelog and recorded results. Exits with 1 and a sentence for each that
is not. Addresses elsewhere are not asked for.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(
    r"`([\w./*-]+\.(?:binpb|cc|cmake|cu|cuh|csv|h|in|json|md|proto|py|sh|supp|toml|txt|ya?ml))`"
)
# What stands for a name.
PLACEHOLDER = re.compile(r"NAME|FAMILY|FILE")
OF_THE_PAST = ("CHANGELOG.md", "docs/results/")


def slug(heading):
    """The anchor that a heading's text gets."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    """Every anchor of a page; of equal headings the second ends in -1, and so on."""
    found = set()
    for heading in re.findall(r"^#{1,6} +(.*?) *$", FENCE.sub("", text), re.MULTILINE):
        name, number = slug(heading), 0
        while name in found:
            number += 1
            name = f"{slug(heading)}-{number}"
        found.add(name)
    return found


def links(text):
    """(line number, target) of each link outside code."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    for number, line in enumerate(CODE.sub(blank, FENCE.sub(blank, text)).splitlines(), 1):
        for target in LINK.findall(line):
            yield number, target


def files():
    """Tracked and new files, as paths relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
    return [path for path in sorted(set(listed)) if (ROOT / path).is_file()]


def broken_links(page, text):
    """(line number, what is wrong) of each link that leads nowhere."""
    for line, target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield line, f"{target}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield line, f"{target}: the page has no such heading"


def unknown_names(text, paths):
    """(line number, what is wrong) of each file named in code that no path ends in."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in NAME.findall(line):
            if PLACEHOLDER.search(name):
                continue
            if not fnmatch.filter(paths, name) and not fnmatch.filter(paths, f"*/{name}"):
                yield number, f"{name}: no file has this name"


def problems():
    paths = files()
    for path in fnmatch.filter(paths, "*.md"):
        text = (ROOT / path).read_text()
        found = list(broken_links(ROOT / path, text))
        if not path.startswith(OF_THE_PAST):
            found += unknown_names(FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text), paths)
        for line, problem in sorted(found):
            yield f"{path}:{line}: {problem}"


def main():
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
