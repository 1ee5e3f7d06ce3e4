#!/usr/bin/env python3
"""Checks that docs/errors.md explains every error code that the server gives.

A code counts as given where a source of FOLDERS makes a status of it. Codes that the table has
and no source makes are found, too. Exits with 1 and a sentence for each.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/errors.md"
HEADING = "## Error codes"
# Whose statuses reach callers; of kernels/, what a product runs.
FOLDERS = ("server/rpc", "server/engine", "server/identity", "server/benchmark", "kernels")
NOT_SERVED = ("kernels/bench/",)
SOURCES = (".cc", ".cu", ".cuh", ".h")
# absl::NotFoundError(...), absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND
MADE = re.compile(r"absl::(\w+)Error\(|absl::StatusCode::k(\w+)|grpc::StatusCode::([A-Z_]+)\b")
ROW = re.compile(r"^\| `([A-Z_]+)`", re.MULTILINE)


def canonical(words):
    """NOT_FOUND of NotFound."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).upper()


def made():
    """{code: a source that makes it}."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in SOURCES or name.startswith(NOT_SERVED):
                continue
            for groups in MADE.findall(path.read_text(encoding="utf-8")):
                found.setdefault(canonical(next(filter(None, groups))), name)
    found.pop("OK", None)
    return found


def explained():
    """The codes of the page's table."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    _, _, chapter = text.partition(f"\n{HEADING}\n")
    return set(ROW.findall(re.split(r"^#", chapter, maxsplit=1, flags=re.MULTILINE)[0]))


def main():
    given, told = made(), explained()
    found = [f"{PAGE}: '{HEADING}' lacks {code}, which {given[code]} makes"
             for code in sorted(set(given) - told)]
    found += [f"{PAGE}: '{HEADING}' has {code}, which no source makes"
              for code in sorted(told - set(given))]
    for line in found:
        print(line, file=sys.stderr)
    # Codes that this program does not see would pass.
    return 1 if found or not given else 0


if __name__ == "__main__":
    sys.exit(main())
