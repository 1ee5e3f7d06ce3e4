"""A process that gevent has patched. Each test has one of its own."""

import subprocess
import sys

import gemmd

PATCHED = """
import sys, gevent.monkey
gevent.monkey.patch_all()
{init}
import gemmd, numpy as np
with gemmd.connect(sys.argv[1]) as g:
    with g.pipeline() as p:
        futures = [p.matmul(np.eye(3), np.eye(3)) for _ in range(20)]
        assert all(future.result(60)[1, 1] == 1 for future in futures)
print("done")
"""


def run(server, init=""):
    code = PATCHED.format(init=init)
    return subprocess.run(
        [sys.executable, "-c", code, server.address], capture_output=True, text=True, timeout=120
    )


def test_connect_says_what_grpc_needs(server):
    done = run(server)
    assert done.returncode == 1
    assert f"{gemmd.FailedPrecondition.__name__}: gevent has patched" in done.stderr
    assert "grpc.experimental.gevent.init_gevent()" in done.stderr


def test_then_it_works(server):
    done = run(server, "import grpc.experimental.gevent; grpc.experimental.gevent.init_gevent()")
    assert done.stdout == "done\n", done.stderr
