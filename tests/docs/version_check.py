#!/usr/bin/env python3
"""Checks that the project's version stands in one place: project() in CMakeLists.txt.

CHANGELOG.md begins with that version, and the Helm chart has it; no other file has it or an
earlier one. Recorded results keep the version that they were measured with. Exits with 1 and a sentence for each
place that disagrees.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that may have a version of the project.
CHART = "deploy/helm/gemmd/Chart.yaml"
PLACES = ("CMakeLists.txt", "CHANGELOG.md", "docs/results/", CHART)
VERSION = r"\d+\.\d+\.\d+"


def project_version(cmake):
    """The version in the text of CMakeLists.txt; None where there is none."""
    match = re.search(rf"^project\(\w+ VERSION ({VERSION})\b", cmake, re.MULTILINE)
    return match and match.group(1)


def releases(changelog):
    """(version, date or "unreleased") of each heading of the changelog, newest first."""
    return re.findall(
        rf"^## \[({VERSION})\] - (unreleased|\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE
    )


def files():
    """Tracked and new files outside PLACES, as paths relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
    return [p for p in sorted(set(listed)) if not p.startswith(PLACES) and (ROOT / p).is_file()]


def literals(text, versions):
    """(line number, version) of each of the versions in a text."""
    pattern = re.compile(rf"(?<![\d.])({'|'.join(map(re.escape, versions))})(?![\d.]*\d)")
    for number, line in enumerate(text.splitlines(), 1):
        for match in pattern.finditer(line):
            yield number, match.group(1)


def problems():
    version = project_version((ROOT / "CMakeLists.txt").read_text())
    if version is None:
        yield "CMakeLists.txt: project() has no VERSION"
        return
    listed = releases((ROOT / "CHANGELOG.md").read_text())
    newest = listed[0][0] if listed else "none"
    if newest != version:
        yield f"CHANGELOG.md: the newest version is {newest}, but CMakeLists.txt has {version}"
    for older, date in listed[1:]:
        if date == "unreleased":
            yield f"CHANGELOG.md: {older} is unreleased, though {newest} follows it"
    for key in "version", "appVersion":
        chart = re.search(rf'^{key}: "?(.+?)"?$', (ROOT / CHART).read_text(), re.MULTILINE)
        if chart is None or chart[1] != version:
            yield f"{CHART}: {key} is {chart and chart[1]}, but CMakeLists.txt has {version}"
    known = {version, *(each for each, _ in listed)}
    for path in files():
        # What is not UTF-8 has no version to read, but ASCII beside it is found all the same.
        text = (ROOT / path).read_text(errors="replace")
        for line, literal in literals(text, known):
            yield (f"{path}:{line}: has {literal}; the version stands in CMakeLists.txt alone: "
                   f"take PROJECT_VERSION, or another number as an example")


def main():
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
