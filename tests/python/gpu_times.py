"""Times and memory of the package, beside bare grpcio, gemmctl and a plain Python server.

Everything is measured in turns within one run; what is reported are medians.
"""

import json
import statistics
import subprocess
import sys
import threading
import time

import gemmd
import grpc
import numpy as np
from gemmd import stripes, wire
from gemmd.connection import Connection
from gemmd.contract import MIB, SERVICE, pb
from gemmd.options import Options

CHANNELS = Options().channels
#: What gemmctl takes by default.
GEMMCTL_CHANNELS = 8
IN_FLIGHT = 256


def take_turns(rounds, **kinds):
    """The median seconds of each, after one round that is not counted."""
    seconds = {name: [] for name in kinds}
    for _ in range(rounds + 1):
        for name, run in kinds.items():
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values[1:]) for name, values in seconds.items()}


class BareTransfer:
    """Moves matrices with grpcio's own stubs, a range a channel. What comes is not looked at."""

    def __init__(self, address):
        self._connection = Connection(address, Options(channels=CHANNELS))

    def _messages(self, header, memory, stripe):
        yield header.SerializeToString()
        for offset in range(stripe.start, stripe.end, MIB):
            yield wire.matrix_chunk(offset, memory[offset : min(offset + MIB, stripe.end)])

    def put(self, shape, memory, name):
        """The RPCs that upload it, under way."""
        upload_id, rpcs = stripes.new_id(), []
        for stripe in stripes.plan(len(memory), CHANNELS, MIB, 0):
            header = pb.PutMatrixHeader(shape=shape, upload_id=upload_id)
            header.keep.name = name
            header.range.offset, header.range.length = stripe.start, stripe.end - stripe.start
            messages = self._messages(pb.PutMatrixRequest(header=header), memory, stripe)
            rpcs.append(self._connection.stubs(stripe.channel).put.future(messages))
        return rpcs

    def get(self, name, nbytes):
        def one(stripe):
            request = pb.GetMatrixRequest(matrix=pb.MatrixRef(name=name))
            request.range.offset, request.range.length = stripe.start, stripe.end - stripe.start
            for _ in self._connection.stubs(stripe.channel).get(request):
                pass

        threads = [
            threading.Thread(target=one, args=(stripe,))
            for stripe in stripes.plan(nbytes, CHANNELS, MIB, 0)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def delete(self, name):
        self._connection.stubs().delete(pb.DeleteMatrixRequest(matrix=pb.MatrixRef(name=name)))


def gemmctl_seconds(program, address, extent, rounds):
    """The median latency that the C++ client reports for the same product."""
    answer = subprocess.run(
        [program, "--address", address, "--channels", str(GEMMCTL_CHANNELS), "loadtest",
         "--concurrency", "1", "--requests", str(rounds), "--shape", f"{extent}x{extent}x{extent}", "--dtype", "f16",
         "--source", "sent", "--result", "stream", "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(answer.stdout)["result"]["latency_seconds"]["p50"]


def large(address, torch, gemmctl, extent, rounds):
    """Seconds of an f16 product of numpy arrays."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((extent, extent)).astype(np.float16) for _ in range(2))
    kinds = {}
    with gemmd.connect(address, channels=CHANNELS) as g:
        bare = BareTransfer(address)
        kept = g.keep(a, b, name="bare-result")
        shape = pb.MatrixShape(rows=extent, cols=extent, dtype=pb.DATA_TYPE_F16, layout=1)

        def moved():
            uploads = []
            for name, matrix in (("bare-a", a), ("bare-b", b)):
                uploads += bare.put(shape, matrix.data.cast("B"), name)
            for rpc in uploads:
                rpc.result()
            bare.get("bare-result", kept.nbytes)
            bare.delete("bare-a")
            bare.delete("bare-b")

        kinds = {"ours": lambda: g.matmul(a, b), "bare": moved}
        if torch:
            unlimited = [(f"grpc.max_{way}_message_length", -1) for way in ("send", "receive")]
            channel = grpc.insecure_channel(torch, unlimited)
            multiply = channel.unary_unary("/torch.Matmul/Multiply", None, None)
            sizes = np.array([extent] * 3, np.uint32).tobytes()
            kinds["torch"] = lambda: np.frombuffer(
                multiply(b"".join((sizes, a.data.cast("B"), b.data.cast("B")))), np.float16
            )
        found = take_turns(rounds, **kinds)
        kept.free()
    if gemmctl:
        found["gemmctl"] = gemmctl_seconds(gemmctl, address, extent, rounds)
    return found


def _request(matrix):
    request = pb.MultiplyUnaryRequest()
    for operand in (request.product.a, request.product.b):
        operand.shape.rows = operand.shape.cols = len(matrix)
        operand.shape.dtype = pb.DATA_TYPE_F32
        operand.shape.layout = pb.LAYOUT_ROW_MAJOR
        operand.data = matrix.tobytes()
    return request


def _bare_stream(stub, matrix, count):
    """The same products on a bare stream, at most IN_FLIGHT under way."""
    room = threading.Semaphore(IN_FLIGHT)

    def messages():
        for number in range(count):
            room.acquire()
            header = pb.MultiplyHeader(job_id=number + 1, product=_request(matrix).product)
            yield pb.MultiplyRequest(header=header).SerializeToString()

    for message in stub(messages()):
        response = pb.MultiplyResponse.FromString(message)
        if response.WhichOneof("message") == "result":
            room.release()
        elif response.WhichOneof("message") == "error":
            raise RuntimeError(response.error.message)


def small(address, count, rounds, extent=64):
    """Products a second of small f32 matrices, of one thread on one channel."""
    matrix = np.random.default_rng(1).random((extent, extent), np.float32)
    with gemmd.connect(address, channels=1) as g:
        channel = g._connection._channels[0]
        unary = channel.unary_unary(
            SERVICE + "MultiplyUnary",
            pb.MultiplyUnaryRequest.SerializeToString,
            pb.MultiplyUnaryResponse.FromString,
        )
        stream = channel.stream_stream(SERVICE + "Multiply", None, None)

        def ours():
            for _ in range(count):
                g.matmul(matrix, matrix)

        def bare():
            for _ in range(count):
                response = unary(_request(matrix))
                np.frombuffer(response.data, np.float32).reshape(extent, extent)

        def pipeline():
            with g.pipeline(IN_FLIGHT, collect=False) as p:
                for _ in p.map((matrix, matrix) for _ in range(4 * count)):
                    pass

        seconds = take_turns(
            rounds, ours=ours, bare=bare, pipeline=pipeline,
            bare_stream=lambda: _bare_stream(stream, matrix, 4 * count),
        )  # fmt: skip
    calls = {"ours": count, "bare": count, "pipeline": 4 * count, "bare_stream": 4 * count}
    return {name: calls[name] / value for name, value in seconds.items()}


_PUT = """
import sys, gemmd, numpy as np
def kib(name):
    for line in open("/proc/self/status"):
        if line.startswith(name + ":"):
            return int(line.split()[1])
with gemmd.connect(sys.argv[1]) as g:
    array = np.ones((int(sys.argv[2]) // 4096, 1024), np.float32)
    before = kib("VmRSS")
    with g.put(array):
        print(max(0, kib("VmHWM") - before) * 1024)
"""


def put_memory(address, nbytes):
    """Bytes of memory that a put of so many takes beside the array, at its peak."""
    answer = subprocess.run(
        [sys.executable, "-c", _PUT, address, str(nbytes)], check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return int(answer.stdout)
