"""Every block of the guide does what it says."""

import doctest
import pathlib

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "client/python/docs/guide.md"


def test_the_guide(server):
    text = GUIDE.read_text()
    parser = doctest.DocTestParser()
    # A closing fence is no output of the line before.
    test = parser.get_doctest(
        text.replace("```", ""), {"address": server.address}, "guide", str(GUIDE), 0
    )
    assert len(test.examples) > 30
    said = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert results.failed == 0, "".join(said)
