"""Tensors in shared memory, by tritonclient as it is."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

KILLS = int(os.environ.get("GEMMD_KILLS", "20"))
RNG = np.random.default_rng(7)


@pytest.fixture
def client(near):
    with grpcclient.InferenceServerClient(near.address) as connected:
        yield connected
        connected.unregister_system_shared_memory()


@contextlib.contextmanager
def region(client, name, size):
    memory = shm.create_shared_memory_region(name, f"/gemmd-{os.getpid()}-{name}", size)
    try:
        client.register_system_shared_memory(name, f"/gemmd-{os.getpid()}-{name}", size)
        yield memory
    finally:
        shm.destroy_shared_memory_region(memory)


def tensors(name, a, b, result_bytes):
    """Of a product whose operands and result lie one after the other in a region."""
    inputs, at = [], 0
    for tensor, array in (("A", a), ("B", b)):
        inputs.append(grpcclient.InferInput(tensor, array.shape, np_to_triton_dtype(array.dtype)))
        inputs[-1].set_shared_memory(name, array.nbytes, offset=at)
        at += array.nbytes
    output = grpcclient.InferRequestedOutput("D")
    output.set_shared_memory(name, result_bytes, offset=at)
    return inputs, [output], at


@pytest.mark.parametrize(("dtype", "result"), [(np.float64, np.float64), (np.float32, np.float32),
                                               (np.float16, np.float16), (np.int8, np.int32)])  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 5, 4), (400, 300, 500)])
def test_a_product(client, dtype, result, shape):
    m, k, n = shape
    a, b = RNG.integers(-2, 3, (m, k)).astype(dtype), RNG.integers(-2, 3, (k, n)).astype(dtype)
    expected = (a.astype(np.float64) @ b).astype(result)
    with region(client, "r", a.nbytes + b.nbytes + expected.nbytes) as memory:
        shm.set_shared_memory_region(memory, [a, b])
        inputs, outputs, at = tensors("r", a, b, expected.nbytes)
        client.infer("matmul", inputs, outputs=outputs)
        found = shm.get_contents_as_numpy(memory, result, [m, n], offset=at)
        assert np.array_equal(found, expected)
        del found


def test_the_status_of_regions(near, client):
    with region(client, "one", 100), region(client, "two", 200):
        regions = client.get_system_shared_memory_status().regions
        assert {name: one.byte_size for name, one in regions.items()} == {"one": 100, "two": 200}
        assert near.metric("gemmd_shared_memory_regions") == 2
        assert near.metric("gemmd_shared_memory_regions_limit") == 4096
        with pytest.raises(InferenceServerException, match="unregister it first"):
            client.register_system_shared_memory("one", f"/gemmd-{os.getpid()}-two", 100)
        client.unregister_system_shared_memory("one")
        with pytest.raises(InferenceServerException, match="no region"):
            client.get_system_shared_memory_status("one")
        assert list(client.get_system_shared_memory_status("two").regions) == ["two"]
    assert "system_shared_memory" in client.get_server_metadata().extensions


def test_two_callers(near, client, tmp_path_factory):
    """Regions of one are not those of another."""
    import hashlib

    from conftest import Server

    folder = tmp_path_factory.mktemp("callers")
    callers = folder / "callers"
    callers.write_text("".join(f"{name} call sha256:{hashlib.sha256(name.encode()).hexdigest()}\n"
                               for name in ("anna", "mia")))  # fmt: skip
    callers.chmod(0o600)
    server = Server("--client-shared-memory=on", f"--callers-file={callers}",
                    address=f"unix:{folder / 'gemmd.sock'}")  # fmt: skip
    anna, mia = ({"authorization": f"Bearer {name}"} for name in ("anna", "mia"))
    memory = shm.create_shared_memory_region("r", f"/gemmd-{os.getpid()}-two", 100)
    try:
        with grpcclient.InferenceServerClient(server.address) as client:
            client.register_system_shared_memory(
                "r", f"/gemmd-{os.getpid()}-two", 100, headers=anna
            )
            client.unregister_system_shared_memory(headers=mia)
            assert len(client.get_system_shared_memory_status(headers=mia).regions) == 0
            assert len(client.get_system_shared_memory_status(headers=anna).regions) == 1
            x = grpcclient.InferInput("A", (5, 5), "FP32")
            x.set_shared_memory("r", 100)
            y = grpcclient.InferInput("B", (5, 5), "FP32")
            y.set_shared_memory("r", 100)
            with pytest.raises(InferenceServerException, match='no region "r" is registered'):
                client.infer("matmul", [x, y], headers=mia)
            client.infer("matmul", [x, y], headers=anna)
    finally:
        shm.destroy_shared_memory_region(memory)
        server.kill()


CLIENT = """
    import sys
    import tritonclient.grpc as grpcclient
    import tritonclient.utils.shared_memory as shm
    address, key = sys.argv[1:]
    memory = shm.create_shared_memory_region("k", key, 3 * 4 * 1000 * 1000)
    client = grpcclient.InferenceServerClient(address)
    client.unregister_system_shared_memory("k")
    client.register_system_shared_memory("k", key, 3 * 4 * 1000 * 1000)
    inputs = [grpcclient.InferInput(name, (1000, 1000), "FP32") for name in "AB"]
    for i, one in enumerate(inputs):
        one.set_shared_memory("k", 4_000_000, offset=i * 4_000_000)
    output = grpcclient.InferRequestedOutput("D")
    output.set_shared_memory("k", 4_000_000, offset=8_000_000)
    for _ in range(1000):
        print("go", flush=True)
        client.infer("matmul", inputs, outputs=[output])
"""


def test_clients_that_are_killed_leave_nothing(near, client):
    key = f"/gemmd-{os.getpid()}-killed"
    for i in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(CLIENT), near.address, key],
                              stdout=subprocess.PIPE, text=True) as killed:  # fmt: skip
            for _ in range(1 + i % 4):
                assert killed.stdout.readline() == "go\n"
            killed.send_signal(signal.SIGKILL)
    os.unlink(f"/dev/shm{key}")
    test_a_product(client, np.float32, np.float32, (400, 300, 500))
    deadline = time.monotonic() + 20
    while (left := held(near)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def held(server):
    """The files of regions that the server has open, and its jobs."""
    folder = f"/proc/{server.process.pid}/fd"
    files = []
    for one in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f"{folder}/{one}"))
    jobs = server.metric("gemmd_jobs_in_flight")
    return [file for file in files if file.startswith("/dev/shm/gemmd-")] + ["a job"] * int(jobs)
