"""A host server for the tests, and clients of it.

The program is GEMMD_SERVER, or the one in build/dev or build/host.
"""

import asyncio
import os
import pathlib
import signal
import socket
import subprocess
import time

import gemmd
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program():
    places = [os.environ.get("GEMMD_SERVER"), ROOT / "build/dev/server/gemmd",
              ROOT / "build/host/server/gemmd"]  # fmt: skip
    for place in places:
        if place and pathlib.Path(place).is_file():
            return str(place)
    pytest.exit("no server program: build one, or name it with GEMMD_SERVER", 2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process on one port, which can be killed and started again.

    `options` are what a client needs to be let in.
    """

    def __init__(self, *flags, **options):
        self.flags = flags
        self.options = options
        self.address = f"127.0.0.1:{free_port()}"
        self.process = None
        self.start()

    def start(self):
        # The queue's bound on waits is as wide as can be: no test depends on how fast the host is.
        self.process = subprocess.Popen(
            [program(), "--devices=host", f"--address={self.address}", "--metrics-address=",
             "--log-level=error", "--rpc-cpus=2", "--max-queue-wait=1h", *self.flags],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while True:
            try:
                gemmd.connect(self.address, channels=1, connect_timeout=2, **self.options).close()
                return
            except gemmd.GemmdError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self):
        """Until `go_on` it answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    running.kill()


@pytest.fixture
def own_server():
    """A server of the test's own, to be killed."""
    running = Server()
    yield running
    running.kill()


@pytest.fixture(scope="session")
def g(server):
    with gemmd.connect(server.address) as client:
        yield client


# Small thresholds, so that small matrices go every way.
SMALL = {"chunk_bytes": 4096, "unary_bytes": 2048, "stripe_bytes": 12288, "channels": 3}


@pytest.fixture(scope="session")
def small(server):
    """A client that streams above 2 KiB and stripes from 12 KiB."""
    with gemmd.connect(server.address, **SMALL) as client:
        yield client


@pytest.fixture
def held(g):
    """A pipeline that has had its first report, and whose products wait until `go`."""
    with g.pipeline() as p:
        p.matmul(np.eye(2), np.eye(2)).result(60)
        list(p.results())
        may_go = p._may_go
        p._may_go = lambda job: False

        def go():
            p._may_go = may_go
            p._send()

        p.go = go
        yield p


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def left_on(client):
    """How many matrices and jobs the server has, once it has had time to end them."""
    deadline = time.monotonic() + 20
    while True:
        info = client.info()
        left = (len(client.matrices()), info.jobs)
        if left == (0, 0) or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
