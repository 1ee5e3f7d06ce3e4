#!/usr/bin/env python3
"""Checks that what the Markdown files link to in this repository is there: files and headings.

Exits with 1 and a sentence for each link that leads nowhere. Addresses elsewhere are not asked
for.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


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


def pages():
    """Tracked and new Markdown files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
    return [ROOT / path for path in sorted(set(listed)) if (ROOT / path).is_file()]


def problems():
    for page in pages():
        for line, target in links(page.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            where = f"{page.relative_to(ROOT)}:{line}: {target}"
            if not file.exists():
                yield f"{where}: there is no such file"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                yield f"{where}: the page has no such heading"


def main():
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
