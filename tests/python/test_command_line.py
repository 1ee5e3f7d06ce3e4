"""python -m gemmd multiply: the files it reads, and the sentence about one that it cannot."""

import io
import os
import signal
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

A = np.arange(12).reshape(3, 4) % 4
TYPES = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn,
         "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip


def command(server, *arguments):
    return [sys.executable, "-m", "gemmd", *(a.format(server.address) for a in arguments)]


@pytest.fixture
def multiply(server, tmp_path):
    def run(a, b, *options):
        command = [sys.executable, "-m", "gemmd", "--address", server.address, "multiply"]
        return subprocess.run(
            [*command, str(a), str(b), "-o", str(tmp_path / "d.npy"), *options],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


def header(shape="(3, 4)", descr="'<f4'", order="False", more=""):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {more}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def save(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("name", TYPES)
def test_types_that_numpy_has_no_name_for(multiply, tmp_path, name):
    a = save(tmp_path / "a.npy", A.astype(TYPES[name]))
    b = save(tmp_path / "b.npy", np.asfortranarray(A.T.astype(TYPES[name])))
    hint = ["--npy-dtype", "e4m3"] if name == "e4m3" else []
    done = multiply(a, b, "--dtype", "f32", *hint)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), A @ A.T)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "int4", "float8_e8m0fnu"])
def test_a_type_that_many_share_is_asked_for(multiply, tmp_path, name):
    """All of these have the same descr, whatever a 2.0 is."""
    a = save(tmp_path / "a.npy", np.full((2, 2), 2).astype(getattr(ml_dtypes, name)))
    done = multiply(a, a)
    assert done.returncode == 1
    assert "a.npy: descr is '" in done.stderr and "say which it is, e4m3, e5m2 or s8 (--npy-dtype)" in done.stderr


def test_the_type_of_files_that_leave_it_open(multiply, tmp_path):
    a = save(tmp_path / "a.npy", A.astype(ml_dtypes.float8_e5m2).view("V1"))
    b = save(tmp_path / "b.npy", A.T.astype(ml_dtypes.float8_e5m2))
    done = multiply(a, b, "--dtype", "f32", "--npy-dtype", "e5m2")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), A @ A.T)
    other = multiply(a, b, "--npy-dtype", "bf16")
    assert other.returncode == 1
    assert "a.npy: descr is '|V1', which is written for every type of one byte that numpy does not know and cannot be read as bf16" in other.stderr
    # A type that the file does say stays.
    a, b = save(a, A.astype("f4")), save(b, A.T.astype("f4"))
    assert multiply(a, b, "--npy-dtype", "e5m2").returncode == 0


@pytest.mark.parametrize("descr", [
    "'>f8'", "'>f4'", "'>f2'", "'=f4'", "'f4'", "'|i1'", "'float32'", "'<d'", "u'<f4'",
])  # fmt: skip
def test_types_by_their_other_names_and_orders(multiply, tmp_path, descr):
    kind = np.dtype(descr.strip("u'"))
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    a.write_bytes(header(descr=descr) + A.astype(kind).tobytes())
    b.write_bytes(header(descr=descr, order="True", shape="(4, 3)") + A.astype(kind).tobytes())
    done = multiply(a, b)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), A @ A.T)


@pytest.mark.parametrize("descr", ["<V2", "|V2", "=V2", "V2"])
def test_bf16_with_any_order_but_the_other_one(multiply, tmp_path, descr):
    path = tmp_path / "a.npy"
    ones = np.ones((3, 3), ml_dtypes.bfloat16)
    path.write_bytes(header(descr=f"'{descr}'", shape="(3, 3)") + ones.tobytes())
    done = multiply(path, path, "--dtype", "f32")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), np.full((3, 3), 3.0))


def test_a_vector_is_a_row_and_a_scalar_one_element(multiply, tmp_path):
    row = save(tmp_path / "row.npy", np.arange(3.0))
    scalar = save(tmp_path / "scalar.npy", np.array(2.0))
    done = multiply(scalar, row)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), [[0, 2, 4]])
    wrong = multiply(save(tmp_path / "a.npy", np.ones((2, 3))), row)
    assert "row.npy has one dimension and is read as 1 x 3, which --transpose-b makes 3 x 1" in wrong.stderr
    assert multiply(row, row, "--transpose-b").returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), [[5]])


@pytest.mark.parametrize("content,words", [
    (header(shape=f"({10**30}, 4)") + b"x" * 48, f"its header asks for {16 * 10**30}"),
    (header() + b"x" * 47, "the file has 47 bytes of elements; its header asks for 48"),
    (header(shape="(3, -4)"), "shape is (3, -4); it must be"),
    (header(shape="7"), "shape is 7; it must be"),
    (header(shape="(3, 4, True)") + b"x" * 48, "shape is (3, 4, True); it must be"),
    (header(order="'no'") + b"x" * 48, "fortran_order is 'no'; it must be True or False"),
    (header(order="0") + b"x" * 48, "fortran_order is 0; it must be True or False"),
    (header(order="1") + b"x" * 48, "fortran_order is 1; it must be True or False"),
    (header(more="'x': 1") + b"x" * 48, "the header has the key 'x'; it must have descr, fortran_order"),
    (header(descr="b'<f4'") + b"x" * 48, "descr is b'<f4'; it must be one of float64"),
    (header(descr="'xV2'") + b"x" * 24, "descr is 'xV2'; it must be one of float64"),
    (header(descr="'>V2'") + b"x" * 24, "descr is '>V2', which is big-endian; bf16 must be <V2"),
    (header(descr="''") + b"x" * 24, "descr is ''; it must be one of float64"),
    (header(descr="'(a,f4'"), "descr is '(a,f4'; it must be one of float64"),
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


@pytest.fixture
def files(tmp_path):
    """Two operands, as the arguments of `multiply`."""
    a, b = (save(tmp_path / name, x.astype("f4")) for name, x in (("a.npy", A), ("b.npy", A.T)))
    return str(a), str(b)


@pytest.mark.parametrize("mode", ["ab", "wb"], ids=[">>", ">"])
@pytest.mark.parametrize("path", ["/dev/stdout", "{}"], ids=["its name", "its path"])
def test_a_redirected_output_keeps_what_it_has(server, files, tmp_path, path, mode):
    log = tmp_path / "log"
    log.write_bytes(b"kept\n")
    with open(log, mode) as output:
        if mode == "wb":
            output.write(b"kept\n")
            output.flush()
        done = subprocess.run(
            command(server, "--address={}", "multiply", *files, "-o", path.format(log)),
            stdout=output, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "TFLOPS" in done.stderr
    with open(log, "rb") as file:
        assert file.readline() == b"kept\n"
        np.testing.assert_array_equal(np.load(file), A @ A.T)
        assert file.read() == b""


def test_the_output_may_be_a_pipe_or_the_standard_error(server, files, tmp_path):
    arguments = command(server, "--address={}", "multiply", *files, "-o")
    for name in ("-", "/dev/stdout"):
        piped = subprocess.run([*arguments, name], capture_output=True, timeout=60, cwd=tmp_path)
        assert piped.returncode == 0 and b"TFLOPS" in piped.stderr
        np.testing.assert_array_equal(np.load(io.BytesIO(piped.stdout)), A @ A.T)
    errors = tmp_path / "errors"
    errors.write_text("kept\n")
    with open(errors, "ab") as file:
        done = subprocess.run([*arguments, str(errors)], stdout=subprocess.PIPE, stderr=file)
    assert done.returncode == 0 and b"TFLOPS" in done.stdout
    assert errors.read_bytes().startswith(b"kept\n\x93NUMPY")


def test_an_output_that_cannot_be_written_is_named(multiply, files):
    done = multiply(*files, "-o", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == "gemmd: [Errno 28] No space left on device: '/dev/full'\n"


def test_a_file_of_before_is_replaced(multiply, files, tmp_path):
    (tmp_path / "d.npy").write_bytes(b"x" * 10000)
    done = multiply(*files)
    assert done.returncode == 0 and "TFLOPS" in done.stdout
    assert (tmp_path / "d.npy").stat().st_size < 1000


@pytest.mark.parametrize("arguments", [
    ("--address={}", "info"), ("info", "--address", "{}"), ("info", "--address={}", "--timeout=20"),
    ("--address=127.0.0.1:1", "info", "--address={}"), ("--address={}", "kernels", "host", "--timeout=20"),
    ("kernels", "--address={}", "host"), ("--timeout=20", "info", "--address={}"),
])  # fmt: skip
def test_options_of_every_command_stand_on_either_side(server, arguments):
    done = subprocess.run(command(server, *arguments), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "host" in done.stdout


def test_an_option_before_the_command_counts_also_where_others_follow(server):
    done = subprocess.run(
        command(server, "--timeout=0", "info", "--address={}"), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "gemmd: timeout is 0.0; it must be above 0 seconds\n"


def test_an_output_that_cannot_be_written_costs_no_work(multiply, tmp_path):
    nowhere = str(tmp_path / "none" / "d.npy")
    done = multiply("no.npy", "no.npy", "-o", nowhere, "--address", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr == f"gemmd: [Errno 2] No such file or directory: {nowhere!r}\n"


def test_an_error_leaves_the_file_of_before(multiply, files, tmp_path):
    (tmp_path / "d.npy").write_bytes(b"kept")
    assert multiply(files[0], files[0]).returncode == 1  # 3 x 4 and 3 x 4
    assert (tmp_path / "d.npy").read_bytes() == b"kept"
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy", "d.npy"]


def test_an_operand_may_be_the_output(multiply, files, tmp_path):
    done = multiply(*files, "-o", files[0])
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(files[0]), A @ A.T)


def test_the_file_that_a_link_names_is_written(multiply, files, tmp_path):
    (tmp_path / "d.npy").symlink_to("target.npy")
    assert multiply(*files).returncode == 0
    assert (tmp_path / "d.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "target.npy"), A @ A.T)


def test_a_reader_that_has_seen_enough_is_no_error(server):
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as output:
        done = subprocess.run(
            command(server, "--address={}", "kernels"), stdout=output, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")
