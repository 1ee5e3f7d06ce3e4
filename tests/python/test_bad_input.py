"""Bad input is one sentence: typed, with the field, nothing left, and the client goes on."""

import os
import threading

import gemmd
import ml_dtypes
import numpy as np
import pytest

from conftest import left_on

A = np.ones((4, 6), np.float32)
B = np.ones((6, 5), np.float32)
READ_ONLY = np.zeros((4, 5), np.float32)
READ_ONLY.flags.writeable = False
ROWS_IN_ONE = np.lib.stride_tricks.as_strided(np.zeros(5, "f4"), (4, 5), (0, 4))
ROWS_IN_ROWS = np.lib.stride_tricks.as_strided(np.zeros(20, "f4"), (4, 5), (16, 4))

LARGE = np.full((4, 6), 2**30)
LARGER = np.full((6, 5), 2**30)
INTS = A.astype(int)
WIDE = np.ones((4, 6), np.longdouble)
INVALID, TYPE = gemmd.InvalidArgument, gemmd.InvalidType

# What is given, the error, its field, and words of the sentence: what to write instead.
CASES = [
    ("inner dimensions", (A, A), {}, INVALID, "b", "6 columns and op(b) has 4 rows"),
    ("inner of a vector", (A, A[:, 0]), {}, INVALID, "b", "6 columns and op(b) has 4 rows"),
    ("inner of transposed", (A, B), {"transpose_b": True}, INVALID, "b", "op(b) has 5 rows"),
    ("a scalar", (2.0, B), {}, INVALID, "a", "multiply with * instead"),
    ("a scalar array", (A, np.array(3.0)), {}, INVALID, "b", "multiply with * instead"),
    ("batches", (A[None].repeat(2, 0), B[None].repeat(3, 0)), {}, INVALID, "b", "or 1"),
    ("object", (A.astype(object), B), {}, TYPE, "a", "a.astype(np.float64)"),
    ("complex", (A, B.astype(complex)), {}, TYPE, "b", "b.real and b.imag apart"),
    ("long double", (WIDE, B), {}, TYPE, "a", "a.astype(np.float64)"),
    ("texts", (A, np.full((6, 5), "x")), {}, TYPE, "b", "b.astype(np.float64)"),
    ("dates", (A, np.zeros((6, 5), "M8[s]")), {}, TYPE, "b", "datetime64"),
    ("records", (np.zeros((4, 6), "f4,f4"), B), {}, TYPE, "a", "must be one of float64"),
    ("strings", ("matrix", B), {}, TYPE, "a", "a numpy array, a torch tensor or a handle"),
    ("bytes", (A, b"matrix"), {}, TYPE, "b", "a numpy array, a torch tensor or a handle"),
    ("None", (None, B), {}, TYPE, "a", "a is a NoneType"),
    ("ragged", ([[1.0, 2.0], [3.0]], B), {}, TYPE, "a", "list"),
    ("integers that need more than 53 bits", (LARGE, LARGER), {}, INVALID, "a", "a.astype(np.float64)"),
    ("integers beyond f64", (np.full((4, 6), 2**53 + 1), B), {}, INVALID, "a", "a.astype(np.float64)"),
    ("integers with alpha", (INTS, LARGER), {"alpha": 0.5}, INVALID, "alpha", "a.astype(np.float64)"),
    ("integers with beta", (INTS, LARGER), {"c": np.ones(5, int), "beta": 3}, INVALID, "beta", "astype"),
    ("integers with dtype", (INTS, LARGER), {"dtype": "f32"}, INVALID, "dtype", "a.astype(np.float64)"),
    ("integers with gelu", (INTS, LARGER), {"activation": "gelu"}, INVALID, "activation", "astype"),
    ("integers in tf32", (INTS, LARGER), {"compute": "tf32"}, INVALID, "compute", "a.astype(np.float64)"),
    ("integers and c of floats", (INTS, LARGER), {"c": np.ones(5)}, TYPE, "c", "c.astype(np.int64)"),
    ("integers into a small out", (INTS, B.astype(int)), {"out": np.zeros((4, 5), "u1")}, TYPE, "out", "int64"),
    ("alpha", (A, B), {"alpha": float("nan")}, INVALID, "alpha", "nan"),
    ("alpha's type", (A, B), {"alpha": "one"}, TYPE, "alpha", "must be a number"),
    ("alpha of f32", (A, B), {"alpha": 1e300}, INVALID, None, "alpha"),
    ("beta alone", (A, B), {"beta": 2.0}, INVALID, "beta", "c is not given"),
    ("c's shape", (A, B), {"c": A}, INVALID, "c", "(4, 5), or broadcast to it"),
    ("c's many shapes", (A, B), {"c": np.ones((2, 4, 5), "f4")}, INVALID, "c", "(4, 5), or broadcast"),
    ("c's type", (A, B), {"c": np.ones((4, 5))}, TYPE, "c", "give c.astype(...)"),
    ("c of text", (A, B), {"c": "zero"}, TYPE, "c", "a numpy array, a torch tensor or a handle"),
    ("bias", (A, B), {"bias": A[0]}, INVALID, "bias", "(4, 5), or broadcast to it"),
    ("bias's type", (A, B), {"bias": np.ones(5)}, TYPE, "bias", "give bias.astype(...)"),
    ("bias of columns and c", (A, B), {"bias": A[:, :1], "c": A @ B}, INVALID, "bias", "add the two"),
    ("scale", (A, B), {"scale_a": -1.0}, INVALID, None, "scale_a"),
    ("scales", (A, B), {"scales_a": A}, INVALID, "scales_b", "both or neither"),
    ("activation", (A, B), {"activation": "tanh"}, INVALID, "activation", "gelu"),
    ("compute", (A, B), {"compute": "f8"}, INVALID, "compute", "tf32"),
    ("dtype", (A, B), {"dtype": "f17"}, TYPE, "dtype", "must be one of float64"),
    ("a keyword", (A, B), {"transposeb": True}, TYPE, "transposeb", "Did you mean 'transpose_b'"),
    ("a flag", (A, B), {"transpose_a": 1}, TYPE, "transpose_a", "True or False"),
    ("report", (A, B), {"return_report": "yes"}, TYPE, "return_report", "True or False"),
    ("kernel", (A, B), {"kernel": "host_openblass"}, gemmd.NotFound, None, "host_openblas"),
    ("family", (A, B), {"family": "hosts"}, gemmd.NotFound, None, "hosts"),
    ("both", (A, B), {"kernel": "k", "family": "f"}, INVALID, "kernel", "most one"),
    ("params", (A, B), {"params": {"x": "y"}}, TYPE, "params", "integer"),
    ("verify", (A, B), {"verify": True}, INVALID, "verify", "sampled"),
    ("timeout", (A, B), {"timeout": 0}, INVALID, "timeout", "above 0"),
    ("read-only out", (A, B), {"out": READ_ONLY}, INVALID, "out", "must be writable"),
    ("out's shape", (A, B), {"out": np.zeros((5, 4), "f4")}, INVALID, "out", "the result has (4, 5)"),
    ("out's type", (A, B), {"out": np.zeros((4, 5)), "dtype": "f32"}, TYPE, "out", "float32"),
    ("out of integers", (A, B), {"out": np.zeros((4, 5), int)}, TYPE, "out", "the result has float32"),
    ("beta", (A, B), {"c": A @ B, "beta": float("nan")}, INVALID, "beta", "nan"),
    ("out's kind", (A, B), {"out": [0.0]}, TYPE, "out", "a numpy array or a torch tensor"),
    ("out of c's type", (A, B), {"out": np.zeros((4, 5), complex)}, TYPE, "out", "complex"),
    ("out's dimensions", (A, B), {"out": np.zeros(20, "f4")}, INVALID, "out", "the result has (4, 5)"),
    ("a mask", (np.ma.masked_less(A, 0), B), {}, TYPE, "a", "give a.filled(...)"),
    ("a mask of c", (A, B), {"c": np.ma.array(A @ B)}, TYPE, "c", "give c.filled(...)"),
    ("a mask of out", (A, B), {"out": np.ma.zeros((4, 5), "f4")}, TYPE, "out", "masked"),
    ("out of one row", (A, B), {"out": ROWS_IN_ONE}, INVALID, "out", "strides (0, 4)"),
    ("out of rows in rows", (A, B), {"out": ROWS_IN_ROWS}, INVALID, "out", "share"),
    ("fp8 and f32", (A.astype(ml_dtypes.float8_e5m2), np.zeros((6, 5), "M8[s]")), {}, TYPE, "b", "must be one"),
    ("int8 and gelu", (A.astype("i1"), B.astype("i1")), {"activation": "gelu"}, INVALID, None, "gelu"),
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


def test_there_are_sixty():
    assert len(CASES) >= 60


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
