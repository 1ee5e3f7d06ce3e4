#!/usr/bin/env python3
"""Checks that no name goes away that scripts, dashboards and programs of users may have.

    tests/docs/frozen_check.py [--write]

tests/docs/frozen.txt lists them: flags, metrics and alerts of the reference page, exit codes of
docs/operations/run.md, and the public names and parameters of the Python package. The contract has a
check of its own (buf breaking), and so have kernel names (tests/kernels/kernel_names.txt).

--write adds what is new. A name leaves the list by hand, as docs/operations/upgrades.md says.
Exits with 1 and a sentence for each name that is missing, and for each that is new.
"""

import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = "tests/docs/frozen.txt"
REFERENCE = "docs/reference.md"
RUN = "docs/operations/run.md"
PACKAGE = "client/python/src/gemmd"
MODULES = {"gemmd": "__init__.py", "gemmd.aio": "aio.py", "gemmd.dask": "dask/__init__.py"}
# Where the methods of public classes stand: module, class, its public name.
CLASSES = (
    ("client", "Client", "Client"),
    ("matrices", "Matrices", "Client"),
    ("queries", "Queries", "Client"),
    ("handle", "Handle", "Handle"),
)
HEADER = "# Names that users may rely on (tests/docs/frozen_check.py).\n"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rows(page, pattern):
    return re.findall(pattern, page, re.MULTILINE)


def exit_codes():
    return rows(read(RUN), r"^\| (\d+) \| ")


def public(name):
    return not name.startswith("_")


def parameters(function):
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one.arg for one in every if one.arg not in ("self", "cls") and public(one.arg)]


def python_names():
    for module, file in MODULES.items():
        for node in ast.parse(read(f"{PACKAGE}/{file}")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                yield from (f"{module}.{name}" for name in ast.literal_eval(node.value))
    for module, wanted, name in CLASSES:
        for node in ast.parse(read(f"{PACKAGE}/{module}.py")).body:
            if isinstance(node, ast.ClassDef) and node.name == wanted:
                yield from functions(node.body, f"gemmd.{name}")
    for node in ast.parse(read(f"{PACKAGE}/options.py")).body:
        if isinstance(node, ast.ClassDef) and node.name == "Options":
            fields = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign)]
            yield from (f"gemmd.connect({field})" for field in fields if public(field))


def functions(nodes, prefix):
    """The names of functions, and of their parameters."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and public(node.name):
            yield f"{prefix}.{node.name}"
            yield from (f"{prefix}.{node.name}({parameter})" for parameter in parameters(node))


def names():
    page = read(REFERENCE)
    found = {
        "flag": rows(page, r"^\| `(--[a-z-]+)` \|"),
        "metric": rows(page, r"^\| `((?:gemmd|process)_\w+)` \|"),
        "alert": rows(page, r"^\| `(Gemmd\w+)` \|"),
        "exit code": exit_codes(),
        "python": list(python_names()),
    }
    for kind, some in found.items():
        if not some:
            raise SystemExit(
                f"no {kind} found: does {pathlib.Path(__file__).name} read the page right?"
            )
    return {f"{kind} {name}" for kind, some in found.items() for name in some}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="add what is new")
    args = parser.parse_args()
    have = names()
    path = ROOT / LIST
    frozen = set(path.read_text(encoding="utf-8").splitlines()[1:]) if path.exists() else set()
    if args.write:
        path.write_text(
            HEADER + "".join(f"{name}\n" for name in sorted(frozen | have)), encoding="utf-8"
        )
        frozen |= have
    wrong = [f"{name} is in {LIST}, and nowhere else any more" for name in sorted(frozen - have)]
    wrong += [
        f"{name} is not in {LIST}: run {pathlib.Path(__file__).name} --write"
        for name in sorted(have - frozen)
    ]
    for sentence in wrong:
        print(sentence)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
