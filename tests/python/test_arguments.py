"""Arguments that cannot be: one sentence of gemmd's with the field, the value and the bound."""

import asyncio
import copy
import math
import pickle
import subprocess
import sys

import gemmd
import gemmd.aio
import numpy as np
import pytest

from conftest import left_on

A = np.ones((4, 4), np.float32)
INF = math.inf

CALLS = [
    ("ttl", "inf", lambda g: g.put(A, ttl=INF)),
    ("ttl", "1e+300", lambda g: g.put(A, ttl=1e300)),
    ("ttl", "0.0001; it must be 0.001 to 3e+11 seconds", lambda g: g.put(A, ttl=1e-4)),
    ("ttl", "nan", lambda g: g.keep(A, A, ttl=math.nan)),
    ("ttl", "'x'", lambda g: g.put(A, ttl="x")),
    ("name", "''", lambda g: g.put(A, name="")),
    ("name", "''", lambda g: g.keep(A, A, name="")),
    ("name", "''", lambda g: g.random((3, 4), name="")),
    ("name", "''", lambda g: g.matrix("", shape=(4, 4), dtype="f32")),
    ("name", "''", lambda g: g.delete("")),
    ("name", "3", lambda g: g.put(A, name=3)),
    ("name", "1 to 128", lambda g: g.put(A, name="x" * 129)),
    ("if_version", "'x'", lambda g: g.put(A, name="w", replace=True, if_version="x")),
    ("if_version", "-1", lambda g: g.put(A, name="w", replace=True, if_version=-1)),
    ("if_version", "replace=True", lambda g: g.put(A, name="w", if_version=1)),
    ("replace", "'no'", lambda g: g.put(A, name="w", replace="no")),
    ("device", "3", lambda g: g.put(A, device=3)),
    ("version", "'x'", lambda g: g.matrix("w", version="x")),
    ("owner", "3", lambda g: g.matrix("w", owner=3)),
    ("shape", "(3,)", lambda g: g.matrix("w", shape=(3,), dtype="f32")),
    ("seed", "-1", lambda g: g.random((3, 4), seed=-1)),
    ("shape", "3;", lambda g: g.random(3)),
    ("shape", "(3, 4, 5)", lambda g: g.random((3, 4, 5))),
    ("shape", "(3.5, 4)", lambda g: g.random((3.5, 4))),
    ("shape", "(0, 4)", lambda g: g.random((0, 4))),
    ("distribution", "normal", lambda g: g.random((3, 4), distribution="uniforn")),
    ("timeout", "'3'", lambda g: g.matmul(A, A, timeout="3")),
    ("timeout", "nan", lambda g: g.info(timeout=math.nan)),
    ("cancel", "3", lambda g: g.matmul(A, A, cancel=3)),
    ("transpose_a", "'no'", lambda g: g.matmul(A, A, transpose_a="no")),
    ("params", "'x'", lambda g: g.matmul(A, A, kernel="host_openblas", params="x")),
    ("params", str(2**63), lambda g: g.matmul(A, A, params={"x": 2**63})),
    ("alpha", "'2'", lambda g: g.matmul(A, A, alpha="2")),
    ("window", "'x'", lambda g: g.pipeline("x")),
    ("window", "0", lambda g: g.pipeline(0)),
    ("prefix", "3", lambda g: g.matrices(3)),
    ("family", "3", lambda g: g.kernels(3)),
    ("m", "'x'", lambda g: g.explain("x", 1, 1)),
    ("k", "0", lambda g: g.explain(1, 1, 0)),
    ("types", "3", lambda g: g.explain(1, 1, 1, types=3)),
    ("limit", "'x'", lambda g: g.traffic("x")),
    ("shapes", "32", lambda g: g.bench(32)),
    ("shapes[0]", "'32x16x8'", lambda g: g.bench(["32x16x8"])),
    ("shapes[1]", "(32, 16)", lambda g: g.bench([32, (32, 16)])),
    ("kernels", "'host*'", lambda g: g.bench([32], kernels="host*")),
    ("types[0]", "3", lambda g: g.bench([32], types=[3])),
    ("budget", "inf", lambda g: g.bench([32], budget=INF)),
    ("iterations", "2.5", lambda g: g.bench([32], iterations=2.5)),
]

OPTIONS = [
    ("timeout", "x"), ("timeout", 0), ("connect_timeout", None), ("connect_timeout", "1"),
    ("channels", "x"), ("channels", 2.5), ("chunk_bytes", None), ("keepalive_seconds", "x"),
    ("transfer_ttl", INF), ("retry", 3), ("retry.attempts", gemmd.Retry(attempts="x")),
    ("retry.budget", gemmd.Retry(budget=math.nan)), ("token_without_tls", "no"),
    ("server_name", 3), ("ca", 0), ("token_file", 3),
]  # fmt: skip


def test_shapes_of_a_benchmark_may_be_an_array(g):
    measured = g.bench(np.array([[8, 8, 8], [9, 8, 8]]), kernels=["host_reference"])
    assert {(row.m, row.n, row.k) for row in measured.rows} == {(8, 8, 8), (9, 8, 8)}


@pytest.mark.parametrize("field,words,call", CALLS, ids=[f"{c[0]}-{c[1]}" for c in CALLS])
def test_of_calls(g, field, words, call):
    with pytest.raises(gemmd.InvalidArgument) as caught:
        call(g)
    assert caught.value.field == field, str(caught.value)
    assert str(caught.value).startswith(field) and words in str(caught.value)
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("name,value", OPTIONS, ids=[f"{n}-{v!r:.20}" for n, v in OPTIONS])
def test_of_connect(server, name, value):
    with pytest.raises(gemmd.InvalidArgument, match=rf"^{name} is ") as caught:
        gemmd.connect(server.address, **{name.partition(".")[0]: value})
    assert caught.value.field == name


@pytest.mark.parametrize("token", [12345, b"12345"])
def test_a_token_of_another_type_is_not_quoted(server, token):
    with pytest.raises(gemmd.InvalidType, match="token is a (int|bytes)") as caught:
        gemmd.connect(server.address, token=token)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("seconds", [INF, 1e300, 1e10, 9e9, 10**400])
def test_a_timeout_that_no_clock_reaches_is_none(server, seconds):
    with gemmd.connect(server.address, timeout=seconds, connect_timeout=seconds) as g:
        g.info()
        for timeout in (None, seconds):
            np.testing.assert_array_equal(g.matmul(A, A, timeout=timeout), A @ A)
            with g.put(A, timeout=timeout) as w:
                np.testing.assert_array_equal(w.numpy(timeout=timeout), A)
        with g.pipeline() as p:
            np.testing.assert_array_equal(p.matmul(A, A, timeout=seconds).result(60), A @ A)

    async def product():
        async with await gemmd.aio.connect(server.address, timeout=seconds) as g:
            return await g.matmul(A, A, timeout=seconds)

    np.testing.assert_array_equal(asyncio.run(product()), A @ A)
    command = [sys.executable, "-m", "gemmd", "--address", server.address]
    subprocess.run([*command, "--timeout", str(seconds), "info"], check=True, capture_output=True)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_handles_and_clients_have_no_copies(g, copied):
    with g.put(A) as w:
        for owner in (w, g, w.T if copied is not copy.copy else w):
            with pytest.raises(TypeError, match="cannot be copied or pickled") as caught:
                copied(owner)
            assert isinstance(caught.value, gemmd.GemmdError)
        np.testing.assert_array_equal(w.numpy(), A)
