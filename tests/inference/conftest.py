"""A host server for the tests, with matrices put by gemmctl, and tritonclient connected to it.

GEMMD_SERVER is the server program, GEMMCTL the client's.
"""

import hashlib
import os
import pathlib
import re
import socket
import subprocess
import time
import urllib.request

import pytest
import tritonclient.grpc as grpcclient

SERVER = pathlib.Path(os.environ["GEMMD_SERVER"])
GEMMCTL = os.environ["GEMMCTL"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, *flags, address=None):
        self.address = address or f"127.0.0.1:{free_port()}"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [SERVER, "--devices=host", f"--address={self.address}", f"--metrics-address={self.metrics}",
             "--log-level=error", "--rpc-cpus=2", "--max-queue-wait=1h", *flags],
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://{self.metrics}/readyz", timeout=2).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def put(self, name, file, *options, **environment):
        """A matrix from a .npy file."""
        subprocess.run([GEMMCTL, "--address", self.address, "matrix", "put", file, "--name", name, *options],
                       check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)  # fmt: skip

    def metric(self, name, **labels):
        """The sum of the series of a metric that have these labels. Only where nobody needs a token."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if re.match(rf"{name}(\{{| )", line) and all(label in line for label in wanted)
        )

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    running.kill()


@pytest.fixture
def client(server):
    with grpcclient.InferenceServerClient(server.address) as connected:
        yield connected


@pytest.fixture(scope="session")
def near(tmp_path_factory):
    """A server on a Unix socket that takes tensors in shared memory."""
    socket_file = tmp_path_factory.mktemp("near") / "gemmd.sock"
    running = Server("--client-shared-memory=on", address=f"unix:{socket_file}")
    yield running
    running.kill()


@pytest.fixture
def guarded(tmp_path):
    """A server with callers: anna may call, mia also has matrices; anna has 64 KiB of jobs."""

    def line(name, roles):
        return f"{name} {roles} sha256:{hashlib.sha256(f'{name}-token'.encode()).hexdigest()}\n"

    callers, quotas = tmp_path / "callers", tmp_path / "quotas"
    callers.write_text(line("anna", "call") + line("mia", "call,matrices"))
    callers.chmod(0o600)
    quotas.write_text("anna admitted-bytes=64KiB\n")
    running = Server(f"--callers-file={callers}", f"--quotas-file={quotas}")
    yield running
    running.kill()
