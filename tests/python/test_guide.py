"""The Python blocks of the guide and the README, as somebody pastes them one after the other."""

import ast
import contextlib
import doctest
import io
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "client/python"
# Behind an expression, or a print: what it shows.
SHOWN = re.compile(r"  # (.+)$")


def blocks(page):
    text = (PACKAGE / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def promised(statement, lines):
    """What the comments of a statement say that it shows."""
    own = lines[statement.lineno - 1 : statement.end_lineno]
    if not isinstance(statement, ast.Expr):
        own = [line for line in own if line.lstrip().startswith("print(")]
    return "".join(f"{found.group(1)}\n" for line in own if (found := SHOWN.search(line)))


@pytest.mark.parametrize("page,fewest", [("docs/guide.md", 30), ("README.md", 0)])
def test_the_blocks_show_what_they_say(server, monkeypatch, page, fewest):
    monkeypatch.setenv("GEMMD_ADDRESS", server.address)
    names, compared = {"__name__": "__main__"}, 0
    assert blocks(page)
    for block in blocks(page):
        block = block.replace("127.0.0.1:50051", server.address)
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                exec(compile(ast.Interactive([statement]), page, "single"), names)
            want = promised(statement, lines)
            if want:
                assert doctest.OutputChecker().check_output(
                    want, shown.getvalue(), doctest.ELLIPSIS
                ), f"{ast.unparse(statement)}\nshows {shown.getvalue()}and says {want}"
                compared += 1
    assert compared >= fewest
