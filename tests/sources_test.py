#!/usr/bin/env python3
"""Every source file is compiled: a CMakeLists.txt, or a function of cmake/, names it.

A test in no list is never run, and nothing else says so.

    tests/sources_test.py [ROOT]
"""
import pathlib
import re
import sys

FOLDERS = ("client", "examples", "files", "kernels", "server", "tests")
SUFFIXES = {".cc", ".cu"}


def listed(cmake, root):
    """The source files that a file of CMake names, as paths."""
    text = re.sub(r"#.*", "", cmake.read_text()).replace("${PROJECT_SOURCE_DIR}", str(root))
    names = re.findall(r"[\w./-]+\.(?:cc|cu)\b", text)
    names += [f"{name}.cc" for name in re.findall(r"gemmd_fuzz_target\((\w+) ", text)]
    return {cmake.parent / name for name in names}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if root.is_dir() else root.parents[1]
    lists = [path for folder in FOLDERS for path in (root / folder).rglob("CMakeLists.txt")]
    lists += (root / "cmake").glob("*.cmake")
    named = {path.resolve() for cmake in lists for path in listed(cmake, root)}
    sources = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES]
    if not sources:
        print(f"{root}: no source files found", file=sys.stderr)
        return 1
    forgotten = sorted(set(sources) - named)
    for path in forgotten:
        print(f"{path.relative_to(root)}: in no CMakeLists.txt, so nothing compiles it", file=sys.stderr)
    return 1 if forgotten else 0


if __name__ == "__main__":
    sys.exit(main())
