"""A result for memory that an operand has too, where the call is tried again in mid-result."""

import dataclasses

import gemmd
import grpc
import numpy as np
import pytest

from conftest import SMALL

RNG = np.random.default_rng(5)


class Gone(grpc.RpcError):
    def __init__(self, code):
        super().__init__()
        self._code = code

    def code(self):
        return self._code

    def details(self):
        return "cut in mid-result"


class CutOnce:
    """A streaming method whose first call ends behind a message with payload."""

    def __init__(self, method, code):
        self._method = method
        self._code = code
        self.cut = False

    def __call__(self, request, timeout=None):
        rpc = self._method(request, timeout=timeout)
        return rpc if self.cut else _Cut(self, rpc)


class _Cut:
    def __init__(self, owner, rpc):
        self._owner = owner
        self._rpc = rpc

    def cancel(self):
        self._rpc.cancel()

    def __iter__(self):
        for message in self._rpc:
            yield message
            if len(message) > 1000:
                self._owner.cut = True
                self._rpc.cancel()
                raise Gone(self._owner._code)


def cut(client, way, code):
    stubs = client._connection.stubs(0)
    cutting = CutOnce(getattr(stubs, way), code)
    client._connection._all = [dataclasses.replace(stubs, **{way: cutting})] * 3
    return cutting


# How large, which method brings the result, and what ends its first call.
WAYS = {
    "stream": (36, "multiply", grpc.StatusCode.UNAVAILABLE),
    "striped": (64, "get", grpc.StatusCode.UNAVAILABLE),
    "striped, then one stream": (64, "get", grpc.StatusCode.RESOURCE_EXHAUSTED),
}


def square(n):
    return RNG.integers(-4, 5, (n, n)).astype(float)


def overlapping(n):
    """A matrix and an out that begins one row behind it."""
    memory = np.zeros((n + 1, n))
    memory[:n] = square(n)
    return memory[:n], memory[1:]


def of_a(n):
    a, b = square(n), square(n)
    return a @ b, a, {"a": a, "b": b}


def of_b_transposed(n):
    a, b = square(n), square(n)
    return a @ b.T, b.T, {"a": a, "b": b.T}


def of_c(n):
    a, b, c = square(n), square(n), square(n)
    return a @ b + c, c, {"a": a, "b": b, "c": c, "beta": 1}


def of_the_bias(n):
    a, b, out = square(n), square(n), square(n)
    return a @ b + out[3], out, {"a": a, "b": b, "bias": out[3]}


def of_a_part(n):
    b = square(n)
    a, out = overlapping(n)
    return a @ b, out, {"a": a, "b": b}


def of_a_batch(n):
    a, b = square(n).reshape(2, n // 2, n), square(n)
    return a @ b, a, {"a": a, "b": b}


def of_a_tensor(n):
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(square(n)) for _ in range(2))
    return (a @ b).numpy(), a, {"a": a, "b": b}


def of_an_array_and_a_tensor(n):
    torch = pytest.importorskip("torch")
    a, b = square(n), square(n)
    return a @ b, torch.from_numpy(a), {"a": a, "b": b}


CASES = [of_a, of_b_transposed, of_c, of_the_bias, of_a_part, of_a_batch, of_a_tensor,
         of_an_array_and_a_tensor]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_the_product_is_right(server, way, case):
    size, method, code = WAYS[way]
    options = SMALL | ({"channels": 1} if way == "stream" else {})
    with gemmd.connect(server.address, **options) as client:
        cutting = cut(client, method, code)
        exact, out, given = case(size)
        result = client.matmul(**given, out=out)
        assert cutting.cut
        np.testing.assert_array_equal(np.asarray(out), exact)
        np.testing.assert_array_equal(np.asarray(result), exact)


def test_an_operand_is_as_before_where_the_product_fails(server):
    with gemmd.connect(server.address, **SMALL, retry=gemmd.Retry(attempts=1)) as client:
        cut(client, "get", grpc.StatusCode.UNAVAILABLE)
        a = square(64)
        before = a.copy()
        with pytest.raises(gemmd.Unavailable):
            client.matmul(a, a, out=a)
        np.testing.assert_array_equal(a, before)


def test_memory_that_nothing_else_has_is_received_into_in_place(server):
    """Of a failed product, a part has come."""
    with gemmd.connect(server.address, **SMALL, retry=gemmd.Retry(attempts=1)) as client:
        cut(client, "get", grpc.StatusCode.UNAVAILABLE)
        out = np.zeros((64, 64))
        with pytest.raises(gemmd.Unavailable):
            client.matmul(square(64) + 10, square(64) + 10, out=out)
        assert out.any()


def test_a_pipeline_receives_beside_operands_too(g):
    """Its products are tried again where the server refuses them."""
    a, b = square(40), square(40)
    exact = a @ b
    with g.pipeline() as p:
        for out, shared in ((a, True), (np.empty((40, 40)), False)):
            memory = p._plan(a, b, None, {"out": out}).target().memory
            assert np.may_share_memory(np.frombuffer(memory, np.uint8), out) is not shared
        p.matmul(a, b, out=a).result()
    np.testing.assert_array_equal(a, exact)
