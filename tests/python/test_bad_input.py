"""Bad input is one sentence: typed, with the field, nothing left, and the client goes on."""

import os
import threading

import gemmd
import numpy as np
import pytest

from conftest import left_on

A = np.ones((4, 6), np.float32)
B = np.ones((6, 5), np.float32)
READ_ONLY = np.zeros((4, 5), np.float32)
READ_ONLY.flags.writeable = False
ROWS_IN_ONE = np.lib.stride_tricks.as_strided(np.zeros(5, "f4"), (4, 5), (0, 4))
ROWS_IN_ROWS = np.lib.stride_tricks.as_strided(np.zeros(20, "f4"), (4, 5), (16, 4))

CASES = [
    ("inner dimensions", (A, A), {}, gemmd.InvalidArgument, "b", "6 columns and op(b) has 4 rows"),
    ("object", (A.astype(object), B), {}, gemmd.InvalidType, "a", "object"),
    ("complex", (A, B.astype(complex)), {}, gemmd.InvalidType, "b", "complex128"),
    ("integers", (A.astype(int), B), {}, gemmd.InvalidType, "a", "int64"),
    ("strings", ("matrix", B), {}, gemmd.InvalidType, "a", "str"),
    ("None", (None, B), {}, gemmd.InvalidType, "a", "NoneType"),
    ("ragged", ([[1.0, 2.0], [3.0]], B), {}, gemmd.InvalidType, "a", "list"),
    ("four dimensions", (A[None, None], B), {}, gemmd.InvalidArgument, "a", "(1, 1, 4, 6)"),
    ("one dimension", (A, B[:, 0]), {}, gemmd.InvalidArgument, "b", "(6,)"),
    ("nothing in it", (A[:0], B), {}, gemmd.InvalidArgument, "a", "at least 1"),
    ("alpha", (A, B), {"alpha": float("nan")}, gemmd.InvalidArgument, "alpha", "nan"),
    ("alpha's type", (A, B), {"alpha": "one"}, gemmd.InvalidType, "alpha", "str"),
    ("alpha of f32", (A, B), {"alpha": 1e300}, gemmd.InvalidArgument, None, "alpha"),
    ("beta alone", (A, B), {"beta": 2.0}, gemmd.InvalidArgument, "beta", "c is not given"),
    ("c's shape", (A, B), {"c": A}, gemmd.InvalidArgument, "c", "(4, 5)"),
    ("c's type", (A, B), {"c": np.ones((4, 5))}, gemmd.InvalidType, "c", "f64"),
    ("bias", (A, B), {"bias": A[0]}, gemmd.InvalidArgument, "bias", "(1, 5)"),
    ("scale", (A, B), {"scale_a": -1.0}, gemmd.InvalidArgument, None, "scale_a"),
    ("activation", (A, B), {"activation": "tanh"}, gemmd.InvalidArgument, "activation", "gelu"),
    ("compute", (A, B), {"compute": "f8"}, gemmd.InvalidArgument, "compute", "tf32"),
    ("dtype", (A, B), {"dtype": "f17"}, gemmd.InvalidType, "dtype", "f17"),
    ("kernel", (A, B), {"kernel": "host_openblass"}, gemmd.NotFound, None, "host_openblas"),
    ("family", (A, B), {"family": "hosts"}, gemmd.NotFound, None, "hosts"),
    ("both", (A, B), {"kernel": "k", "family": "f"}, gemmd.InvalidArgument, "kernel", "most one"),
    ("params", (A, B), {"params": {"x": "y"}}, gemmd.InvalidType, "params", "integer"),
    ("timeout", (A, B), {"timeout": 0}, gemmd.InvalidArgument, "timeout", "above 0"),
    ("read-only out", (A, B), {"out": READ_ONLY}, gemmd.InvalidArgument, "out", "read-only"),
    ("out's shape", (A, B), {"out": np.zeros((5, 4), "f4")}, gemmd.InvalidArgument, "out", "(4, 5)"),
    ("out's type", (A, B), {"out": np.zeros((4, 5)), "dtype": "f32"}, gemmd.InvalidType, "out", "f32"),
    ("beta", (A, B), {"c": A @ B, "beta": float("nan")}, gemmd.InvalidArgument, "beta", "nan"),
    ("out's kind", (A, B), {"out": [0.0]}, gemmd.InvalidType, "out", "list"),
    ("out of c's type", (A, B), {"out": np.zeros((4, 5), complex)}, gemmd.InvalidType, "out", "c"),
    ("out's dimensions", (A, B), {"out": np.zeros(20, "f4")}, gemmd.InvalidArgument, "out", "(20,)"),
    ("a mask", (np.ma.masked_less(A, 0), B), {}, gemmd.InvalidType, "a", "masked array"),
    ("a mask of c", (A, B), {"c": np.ma.array(A @ B)}, gemmd.InvalidType, "c", "masked array"),
    ("a mask of out", (A, B), {"out": np.ma.zeros((4, 5), "f4")}, gemmd.InvalidType, "out", "masked"),
    ("out of one row", (A, B), {"out": ROWS_IN_ONE}, gemmd.InvalidArgument, "out", "strides (0, 4)"),
    ("out of rows in rows", (A, B), {"out": ROWS_IN_ROWS}, gemmd.InvalidArgument, "out", "share"),
    ("mixed types", (A, B.astype(np.float64)), {}, gemmd.InvalidArgument, None, "F64"),
]  # fmt: skip


@pytest.mark.parametrize("way", ["g", "small", "pipeline"])
@pytest.mark.parametrize("name,operands,options,kind,field,words", CASES, ids=[c[0] for c in CASES])
def test_refused(g, small, way, name, operands, options, kind, field, words):
    with pytest.raises(kind) as caught:
        if way == "pipeline":
            with g.pipeline() as p:
                p.matmul(*operands, **options).result(30)
        else:
            {"g": g, "small": small}[way].matmul(*operands, **options)
    error = caught.value
    assert words.lower() in str(error).lower(), str(error)
    assert error.code in ("INVALID_ARGUMENT", "NOT_FOUND")
    if field is not None:
        assert error.field == field
    np.testing.assert_allclose(g.matmul(A, B), A @ B)


@pytest.mark.parametrize("cut", [
    np.s_[:4, :5], np.s_[::2, :5], np.s_[:4, ::2], np.s_[3::-1, 4::-1], np.s_[1:8:2, 9::-2],
])  # fmt: skip
@pytest.mark.parametrize("order", ["C", "F"])
def test_out_of_any_strides_that_share_no_memory(g, order, cut):
    whole = np.zeros((8, 10), np.float32, order=order)
    g.matmul(A, B, out=whole[cut])
    np.testing.assert_array_equal(whole[cut], A @ B)
    whole[cut] = 0
    assert not whole.any()


def test_a_batch_with_a_mask_is_refused(g):
    masked = np.ma.array(np.ones((2, 4, 6), np.float32))
    with pytest.raises(gemmd.InvalidType, match="^a is a masked array"):
        g.matmul(masked, B)
    with pytest.raises(gemmd.InvalidType, match="^b is a masked array"):
        g.grouped_matmul(A[:3, :4], masked, [1, 2])


@pytest.mark.parametrize("options,words", [
    ({"name": "not a name!"}, "name"),
    ({"ttl": 0}, "ttl"),
    ({"device": "cuda:99"}, "cuda:99"),
])  # fmt: skip
def test_put_is_refused(g, options, words):
    with pytest.raises(gemmd.InvalidArgument, match=words):
        g.put(A, **options)


def test_a_name_is_taken_once(g):
    g.put(A, name="taken")
    with pytest.raises(gemmd.AlreadyExists):
        g.put(B, name="taken")
    assert g.matrix("taken").shape == A.shape
    g.delete("taken")


def test_options_of_connect(server):
    for options in ({"channels": 0}, {"chunk_bytes": 1}, {"connect_timeout": -1}, {"no": 1}):
        with pytest.raises(gemmd.InvalidArgument, match=next(iter(options))):
            gemmd.connect(server.address, **options)
    with pytest.raises(gemmd.InvalidArgument, match="address"):
        gemmd.connect("")


def test_handles_that_cannot_be_used(server, g):
    w = g.put(B)
    with gemmd.connect(server.address) as other:
        with pytest.raises(gemmd.HandleError, match="another client"):
            other.matmul(A, w)
    w.free()
    w.free()
    for use in (lambda: A @ w, lambda: w.numpy(), lambda: g.keep(A, w)):
        with pytest.raises(gemmd.HandleError, match="freed"):
            use()
    expired = g.put(B, ttl=0.05)
    deadline = threading.Event()
    deadline.wait(1.5)
    with pytest.raises(gemmd.LostHandle, match="expired, or was deleted or replaced"):
        A @ expired
    assert left_on(g) == (0, 0)


def test_a_closed_client_says_so(server):
    client = gemmd.connect(server.address)
    w = client.put(B)
    client.close()
    client.close()
    for use in (lambda: client.matmul(A, B), lambda: A @ w, client.info, client.pipeline):
        with pytest.raises(gemmd.GemmdError, match="closed|freed"):
            use()


def test_errors_can_be_pickled_and_are_pythons():
    import pickle

    error = pickle.loads(pickle.dumps(gemmd.Unavailable("gone")))
    assert str(error) == "gone" and error.code == "UNAVAILABLE"
    assert isinstance(error, ConnectionError)
    assert isinstance(gemmd.DeadlineExceeded("x"), TimeoutError)
    assert isinstance(gemmd.InvalidType("x"), (TypeError, ValueError))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_after_a_fork_the_client_says_so(server, g):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            g.matmul(A, B)
        except gemmd.ClientClosed as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 4096).decode()
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert "before this process was forked" in said
    np.testing.assert_allclose(g.matmul(A, B), A @ B)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_every_forked_child_connects(server, g):
    children = []
    for _ in range(30):
        child = os.fork()
        if child == 0:
            try:
                right = np.array_equal(gemmd.connect(server.address).matmul(A, B), A @ B)
                os._exit(0 if right else 1)
            finally:
                os._exit(2)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 30


@pytest.mark.parametrize("number, code, kind", [
    (14, "UNAVAILABLE", gemmd.Unavailable),
    (15, "DATA_LOSS", gemmd.DataLoss),
    (16, "UNAUTHENTICATED", gemmd.Unauthenticated),
])  # fmt: skip
def test_a_jobs_error_has_the_class_of_its_code(number, code, kind):
    error = gemmd.errors.from_number(number, "the device is lost")
    assert type(error) is kind
    assert error.code == code
    assert str(error) == "the device is lost"
