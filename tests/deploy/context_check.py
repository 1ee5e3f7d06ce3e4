#!/usr/bin/env python3
"""Checks that an image's build context holds what its build reads.

Every folder that the CMake files add, but for the tests, which no image builds, and
every file that the Dockerfile copies from the context must survive .dockerignore.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
# Images are built with this option off.
LEFT_OUT = "GEMMD_BUILD_TESTS"


def as_regex(pattern):
    """A pattern of .dockerignore as a regular expression over a whole path."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern.strip("/"))
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts))


def read_rules(text):
    """(regex, whether it lets in) of each line of .dockerignore."""
    lines = (line.strip() for line in text.splitlines())
    for line in lines:
        if line and not line.startswith("#"):
            yield as_regex(line.removeprefix("!")), line.startswith("!")


def in_context(path, rules):
    """Whether the path, relative to the root, is in the context: the last rule counts."""
    names = [name.as_posix() for name in (path, *path.parents) if name.name]
    kept = True
    for regex, lets_in in rules:
        if any(regex.fullmatch(name) for name in names):
            kept = lets_in
    return kept


def added_folders(folder):
    """The folders that an image's build adds, from this one down."""
    conditions = []
    for line in (ROOT / folder / "CMakeLists.txt").read_text().splitlines():
        command = re.match(r"\s*(if|else|elseif|endif|add_subdirectory)\s*\(([^)]*)", line)
        if command is None:
            continue
        name, arguments = command.groups()
        if name == "if":
            conditions.append(arguments)
        elif name == "endif":
            conditions.pop()
        elif name == "add_subdirectory" and LEFT_OUT not in conditions:
            added = folder / arguments.split()[0]
            yield added
            yield from added_folders(added)


def copied_paths():
    """The sources of every COPY from the context."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    for line in re.findall(r"^COPY\s+(.*)$", text, re.MULTILINE):
        if "--from=" not in line:
            yield from (pathlib.Path(name) for name in line.split()[:-1] if name != ".")


def problems():
    """Everything that the context lacks, a sentence each."""
    rules = list(read_rules((ROOT / ".dockerignore").read_text()))
    for folder in added_folders(pathlib.Path()):
        if not in_context(folder / "CMakeLists.txt", rules):
            yield f"leaves out {folder}, which CMakeLists.txt adds"
    for path in copied_paths():
        if not in_context(path, rules):
            yield f"leaves out {path}, which {DOCKERFILE.relative_to(ROOT)} copies"


def main():
    found = list(problems())
    for problem in found:
        print(f".dockerignore: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
