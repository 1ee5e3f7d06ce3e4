"""Options that there are not: the error names the function that was called, and what is near."""

import asyncio

import gemmd
import gemmd.aio
import numpy as np
import pytest

from conftest import left_on

A = np.ones((4, 4), np.float32)


def through(pipeline, call):
    with pipeline:
        call(pipeline)


CALLS = [
    ("connect", "chanels", "channels", lambda g: gemmd.connect("127.0.0.1:1", chanels=2)),
    ("connect", "bogus", None, lambda g: gemmd.connect("127.0.0.1:1", bogus=2)),
    ("Client.matmul", "kernal", "kernel", lambda g: g.matmul(A, A, kernal="x")),
    ("Client.grouped_matmul", "bogus", None, lambda g: g.grouped_matmul(A, A, [4], bogus=1)),
    ("Client.put", "tll", "ttl", lambda g: g.put(A, tll=1)),
    ("Client.random", "sead", "seed", lambda g: g.random((2, 2), sead=1)),
    ("Client.matrix", "bogus", None, lambda g: g.matrix("w", bogus=1)),
    ("Client.bench", "kernel", "kernels", lambda g: g.bench([4], kernel=["x"])),
    ("Client.pipeline", "colect", "collect", lambda g: g.pipeline(colect=False)),
    ("Client.keep", "bogus", None, lambda g: g.keep(A, A, bogus=1)),
    ("Client.keep", "tll", "ttl", lambda g: g.keep(A, A, tll=1)),
    ("Client.keep", "activaton", "activation", lambda g: g.keep(A, A, activaton="relu")),
    ("Pipeline.matmul", "bogus", None,
     lambda g: through(g.pipeline(), lambda p: p.matmul(A, A, bogus=1))),
    ("Pipeline.matmul", "kernal", "kernel",
     lambda g: through(g.pipeline(), lambda p: p.matmul(A, A, kernal="x"))),
    ("Pipeline.map", "bogus", None,
     lambda g: through(g.pipeline(), lambda p: list(p.map([(A, A)], bogus=1)))),
]  # fmt: skip


@pytest.mark.parametrize("function,name,near,call", CALLS, ids=[f"{c[0]}-{c[1]}" for c in CALLS])
def test_an_unknown_option_is_named(g, function, name, near, call):
    with pytest.raises(TypeError) as caught:
        call(g)
    assert isinstance(caught.value, gemmd.InvalidType) and caught.value.field == name
    said = f"{function}() got an unexpected keyword argument '{name}'"
    assert str(caught.value) == said + (f". Did you mean '{near}'?" if near else "")
    assert left_on(g) == (0, 0)


def test_with_asyncio_too(server):
    async def keep():
        async with await gemmd.aio.connect(server.address) as g:
            await g.keep(A, A, bogus=1)

    with pytest.raises(gemmd.InvalidType, match=r"^Client.keep\(\) got .* 'bogus'"):
        asyncio.run(keep())
