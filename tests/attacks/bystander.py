#!/usr/bin/env python3
"""Somebody else who uses the server meanwhile: small calls at a steady rate, every answer checked.

  bystander.py --access FILE --metrics HOST:PORT --stubs FOLDER --rate N

A call begins when it is planned, however long those before it take, and its latency counts from
there. Each ended call is a line of JSON on standard output: its kind, its begin on the clock of
time.monotonic, its seconds, its status and, where the answer was wrong, how. Kinds:

  product  64 x 64 x 64 by MultiplyUnary, on a connection that stays
  read     GetMatrix of a resident 64 x 64 matrix, on the same connection
  write    PutMatrix of such a matrix, and DeleteMatrix
  connect  a new connection, GetServerInfo on it, and its end
  scrape   GET /metrics on a new connection

It ends when its standard input does, once the calls under way have ended or timed out.
"""

import argparse
import concurrent.futures
import http.client
import json
import sys
import threading
import time

import grpc
import numpy as np

import access
import wire

CALL_SECONDS = 20
EXTENT = 64
MATRIX = "bystander"
# Kinds, and how many of `rate` calls a second each gets.
SHARES = {"product": 1.0, "read": 1.0, "write": 0.5, "connect": 0.3, "scrape": 0.3}


class Bystander:
    def __init__(self, own, metrics):
        self.access, self.metrics = own, metrics
        self.pb = wire.messages()
        self.channel = wire.channel(own)
        self.stub = wire.stub(self.channel)
        rng = np.random.default_rng(7)
        self.a, self.b = (rng.integers(-4, 5, (EXTENT, EXTENT)).astype("f4") for _ in range(2))
        self.product = (self.a @ self.b).tobytes()  # of small integers: exact
        self.request = self.pb.MultiplyUnaryRequest(product=self.pb.Product(
            a=self._operand(self.a), b=self._operand(self.b)))
        self.lock = threading.Lock()

    def _operand(self, elements):
        return self.pb.Operand(shape=wire.shape(EXTENT, EXTENT), data=elements.tobytes())

    def prepare(self):
        """Puts the matrix that `read` reads."""
        wire.delete(self.stub, MATRIX)
        self._put(MATRIX)

    def _put(self, name):
        """The matrix's id."""
        pb = self.pb
        header = pb.PutMatrixHeader(shape=wire.shape(EXTENT, EXTENT), keep=pb.Keep(name=name))
        return self.stub.PutMatrix(iter([
            pb.PutMatrixRequest(header=header),
            pb.PutMatrixRequest(chunk=pb.MatrixChunk(offset=0, data=self.a.tobytes()))]),
            timeout=CALL_SECONDS).matrix.id

    def call_product(self):
        answer = self.stub.MultiplyUnary(self.request, timeout=CALL_SECONDS)
        return "" if answer.data == self.product else "a product with other bits"

    def call_read(self):
        request = self.pb.GetMatrixRequest(matrix=self.pb.MatrixRef(name=MATRIX))
        data = b"".join(m.data for m in self.stub.GetMatrix(request, timeout=CALL_SECONDS))
        return "" if data == self.a.tobytes() else "a matrix with other bits"

    def call_write(self):
        reference = self.pb.MatrixRef(id=self._put(""))
        self.stub.DeleteMatrix(self.pb.DeleteMatrixRequest(matrix=reference),
                               timeout=CALL_SECONDS)
        return ""

    def call_connect(self):
        with wire.channel(self.access) as channel:
            # A refused connection is an answer, too: no waiting for a better one.
            info = wire.stub(channel).GetServerInfo(self.pb.GetServerInfoRequest(),
                                                    timeout=CALL_SECONDS)
        return "" if info.version else "no version"

    def call_scrape(self):
        host, port = self.metrics.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=CALL_SECONDS)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise ConnectionError(f"HTTP {answer.status}")
        return "" if b"gemmd_jobs_in_flight" in body else "a scrape without gemmd_jobs_in_flight"

    def one(self, kind, planned):
        """One call, and its line."""
        line = {"kind": kind, "begin": planned, "status": "OK", "wrong": ""}
        try:
            line["wrong"] = getattr(self, "call_" + kind)()
        except grpc.RpcError as error:
            line["status"], line["text"] = error.code().name, error.details()[:300]
        except TimeoutError as error:
            line["status"], line["text"] = "DEADLINE_EXCEEDED", str(error)
        except (OSError, http.client.HTTPException) as error:
            line["status"], line["text"] = "UNAVAILABLE", repr(error)
        line["seconds"] = time.monotonic() - planned
        with self.lock:
            print(json.dumps(line), flush=True)


def run(bystander, rate):
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    # Enough for every call that may be under way at once: each ends at CALL_SECONDS.
    threads = int(rate * sum(SHARES.values()) * (CALL_SECONDS + 5)) + 8
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        begin = time.monotonic()
        planned = {kind: begin + i * 0.07 for i, kind in enumerate(SHARES)}
        while not ended.is_set():
            kind = min(planned, key=planned.get)
            if ended.wait(max(0.0, planned[kind] - time.monotonic())):
                break
            pool.submit(bystander.one, kind, planned[kind])
            planned[kind] += 1 / (rate * SHARES[kind])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--access", required=True, help="a file of access.save")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--stubs", default="")
    parser.add_argument("--rate", type=float, default=5, help="products a second")
    arguments = parser.parse_args()
    wire.load_stubs(arguments.stubs)
    bystander = Bystander(access.load(arguments.access)[0], arguments.metrics)
    bystander.prepare()
    print(json.dumps({"kind": "ready"}), flush=True)
    run(bystander, arguments.rate)


if __name__ == "__main__":
    main()
