#!/usr/bin/env python3
"""Checks that docs/dependencies.md has the packages of scripts/install-deps.sh, and no others.

Each group of the script is a section of the page, with a row for each of its packages: those
of apt by every name that they have, those of PyPI with their version too. Exits with 1 and a
sentence for each difference.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/install-deps.sh"
PAGE = ROOT / "docs/dependencies.md"
# The files of pins for PyPI, by the group that takes them.
PINS = {
    "cuda": ROOT / "scripts/cuda-wheels.txt",
    "lint": ROOT / "scripts/requirements-lint.txt",
    "test": ROOT / "scripts/requirements-test.txt",
}


def apt_packages(script):
    """{group: names} of the lists in the script's packages_of."""
    groups = re.findall(r"^ +(\w+)\) cat <<'LIST' ;;\n(.*?)^LIST$", script, re.MULTILINE | re.DOTALL)
    return {
        group: {
            name for line in lines.splitlines() if line.strip() for name in line.split()[0].split("|")
        }
        for group, lines in groups
    }


def pinned(text):
    """{name: version} of a file of pins."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))


def page_rows(page):
    """{section: {name: version}} of the page's tables."""
    sections = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        rows = sections.setdefault(title, {})
        for names, version in re.findall(r"^\| (`.*?) \| (.*?) \|", text, re.MULTILINE):
            rows.update(dict.fromkeys(re.findall(r"`([^`]+)`", names), version))
    return sections


def problems(script, pins, page):
    """Every difference, a sentence each. `pins` are {group: {name: version}}."""
    groups = apt_packages(script)
    if not groups:
        yield f"{SCRIPT.name}: no lists of packages found"
    rows = page_rows(page)
    for group, names in groups.items():
        wanted = names | set(pins.get(group, {}))
        have = rows.get(group, {})
        for name in sorted(wanted - set(have)):
            yield f"{PAGE.name}: section {group} lacks {name}"
        for name in sorted(set(have) - wanted):
            yield f"{PAGE.name}: section {group} has {name}, which nothing installs"
        for name, version in pins.get(group, {}).items():
            if name in have and have[name] != version:
                yield f"{PAGE.name}: {name} is {have[name]}, but pinned at {version}"


def main():
    pins = {group: pinned(path.read_text()) for group, path in PINS.items()}
    found = list(problems(SCRIPT.read_text(), pins, PAGE.read_text()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
