"""python -m gemmd multiply: the files it reads, and the sentence about one that it cannot."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

A = np.arange(12).reshape(3, 4) % 4
TYPES = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn,
         "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip


@pytest.fixture
def multiply(server, tmp_path):
    def run(a, b, *options):
        command = [sys.executable, "-m", "gemmd", "--address", server.address, "multiply"]
        return subprocess.run(
            [*command, str(a), str(b), "-o", str(tmp_path / "d.npy"), *options],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


def header(shape="(3, 4)", descr="'<f4'"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def save(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("name", TYPES)
def test_types_that_numpy_has_no_name_for(multiply, tmp_path, name):
    a = save(tmp_path / "a.npy", A.astype(TYPES[name]))
    b = save(tmp_path / "b.npy", np.asfortranarray(A.T.astype(TYPES[name])))
    done = multiply(a, b, "--dtype", "f32")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), A @ A.T)


def test_the_type_of_files_that_leave_it_open(multiply, tmp_path):
    a = save(tmp_path / "a.npy", A.astype(ml_dtypes.float8_e5m2).view("V1"))
    b = save(tmp_path / "b.npy", A.T.astype(ml_dtypes.float8_e5m2))
    done = multiply(a, b, "--dtype", "f32", "--npy-dtype", "e5m2")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), A @ A.T)
    other = multiply(a, b, "--npy-dtype", "bf16")
    assert other.returncode == 1
    assert "a.npy: descr is '|V1', which is e4m3 and cannot be read as bf16" in other.stderr
    # A type that the file does say stays.
    a, b = save(a, A.astype("f4")), save(b, A.T.astype("f4"))
    assert multiply(a, b, "--npy-dtype", "e5m2").returncode == 0


@pytest.mark.parametrize("content,words", [
    (header(shape=f"({10**30}, 4)") + b"x" * 48, f"its header asks for {16 * 10**30}"),
    (header() + b"x" * 47, "the file has 47 bytes of elements; its header asks for 48"),
    (header(shape="(3, -4)"), "shape is (3, -4); it must be"),
    (header(shape="7"), "shape is 7; it must be"),
    (header(descr="'|O'"), "descr is '|O'; it must be one of float64"),
    (header(descr="'<U1'"), "descr is '<U1'; it must be one of float64"),
    (header(descr="[('x', '<f4')]"), "descr is [('x', '<f4')]; it must be one of"),
    (header()[:40], "the file ends inside its header"),
    (header()[:9], "the file ends inside its header"),
    (b"\x93NUMPY\x01\x00\x02\x00[]", "no dictionary"),
    (b"\x93NUMPY\x01\x00\x02\x00{}", "has no 'descr'"),
    (b"\x93NUMPY\x01\x00\x07\x00{[]: 1}", "the header is no dictionary"),
    (b"\x93NUMPY\x09\x00", "format version 9.0"),
    (b"PK\x03\x04 and the rest of a .npz", "a .npz archive"),
    (b"text", "not a .npy file"),
    (None, "not a regular file"),
])  # fmt: skip
def test_a_file_that_cannot_be_is_named(multiply, tmp_path, content, words):
    wrong = tmp_path / "wrong.npy"
    if content is None:
        os.mkfifo(wrong)
    else:
        wrong.write_bytes(content)
    done = multiply(save(tmp_path / "a.npy", A.astype("f4")), wrong)
    assert done.returncode == 1
    assert done.stderr.startswith(f"gemmd: {wrong}: ") and words in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
