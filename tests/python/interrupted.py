"""Has a signal handler raise at random moments of calls: interrupted.py ADDRESS WAY ROUNDS SIGNAL

SIGINT is Ctrl-C; SIGTERM has a handler that calls sys.exit, as containers want it. After each
signal, the client must be usable; at the end nothing of it may be left on the server. Where
it hangs, the stacks of all threads are printed. A process of its own sends the signals: a
thread's would share locks with what is tested.
"""

import faulthandler
import os
import signal
import subprocess
import sys
import time

import gemmd
import numpy as np

POKER = """
import os, random, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
while os.read(0, 1):
    time.sleep(random.uniform(0, float(sys.argv[2])))
    os.kill(int(sys.argv[1]), int(sys.argv[3]))
"""
# The extent of the matrices, and within how many seconds the signal comes.
WAYS = {"unary": (40, 0.05), "stream": (300, 0.05), "striped": (1100, 0.25), "put": (1100, 0.25),
        "keep": (60, 0.05), "pipeline": (60, 0.1)}  # fmt: skip


def call(g, way, matrix):
    if way == "put":
        with g.put(matrix) as w:
            w.numpy()
    elif way == "keep":
        g.keep(matrix, matrix).free()
    elif way == "pipeline":
        with g.pipeline(16) as p:
            for _ in range(60):
                p.matmul(matrix, matrix)
    else:
        g.matmul(matrix, matrix)


def main(address, way, rounds, number):
    # A shell's background jobs ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    extent, within = WAYS[way]
    matrix, one = np.ones((extent, extent)), np.eye(2)
    with gemmd.connect(address) as g:
        poker = subprocess.Popen(
            [sys.executable, "-c", POKER, str(os.getpid()), str(within), str(number)],
            stdin=subprocess.PIPE,
        )
        for _ in range(rounds):
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                os.write(poker.stdin.fileno(), b"x")
                # Python loses the exception where it comes in a destructor.
                until = time.monotonic() + 10
                while time.monotonic() < until:
                    call(g, way, matrix)
            except (KeyboardInterrupt, SystemExit):
                pass
            assert np.array_equal(g.matmul(one, one), one)
        poker.stdin.close()
        poker.wait()
        deadline = time.monotonic() + 20
        while (left := g.matrices()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left, left
    print("usable")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
