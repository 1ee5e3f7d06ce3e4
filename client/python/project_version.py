"""The version of the package: the project's, from project() in CMakeLists.txt."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


def outside(path: str) -> pathlib.Path:
    """A file of the repository: beside this one in an sdist, else two folders up."""
    for root in (HERE, HERE.parents[1]):
        if (root / path).is_file():
            return root / path
    raise FileNotFoundError(f"{path} is neither in {HERE} nor in {HERE.parents[1]}")


def project_version() -> str:
    text = outside("CMakeLists.txt").read_text()
    match = re.search(r"^project\(\w+ VERSION (\d+\.\d+\.\d+)\b", text, re.MULTILINE)
    if match is None:
        raise ValueError("CMakeLists.txt: project() has no VERSION")
    return match.group(1)
