#!/usr/bin/env python3
"""Many different products on a server that checks all of them: none may be called wrong.

  clean_jobs.py --address 127.0.0.1:50051 --jobs 1000000

For a server with --verify=always and --max-queue-wait=1h. Every product has operands of its own, which the server
generates: types, sizes, transposes, scalars and distributions are drawn. Several processes send
them, so that the server and not Python is the limit. Prints how the checks ended; exit code 1
where one says anything but passed or partial, or a product failed.
"""

import argparse
import collections
import multiprocessing
import random
import sys
import threading
import time

import grpc
from gemm.v1 import gemm_pb2 as pb
from gemm.v1 import gemm_pb2_grpc

# Operand types, with the types of results and compute modes that they may have.
TYPES = [
    (pb.DATA_TYPE_F16, [pb.DATA_TYPE_F16, pb.DATA_TYPE_F32], [pb.COMPUTE_MODE_F32]),
    (pb.DATA_TYPE_BF16, [pb.DATA_TYPE_BF16, pb.DATA_TYPE_F32], [pb.COMPUTE_MODE_F32]),
    (pb.DATA_TYPE_F32, [pb.DATA_TYPE_F32],
     [pb.COMPUTE_MODE_F32, pb.COMPUTE_MODE_TF32, pb.COMPUTE_MODE_F32X3]),
    (pb.DATA_TYPE_F64, [pb.DATA_TYPE_F64], [pb.COMPUTE_MODE_F64]),
    (pb.DATA_TYPE_F8E4M3, [pb.DATA_TYPE_F16, pb.DATA_TYPE_BF16], [pb.COMPUTE_MODE_F32]),
    (pb.DATA_TYPE_S8, [pb.DATA_TYPE_F32, pb.DATA_TYPE_BF16], [pb.COMPUTE_MODE_S32]),
]
NAMES = {pb.CHECK_RESULT_UNSPECIFIED: "not checked", pb.CHECK_RESULT_PASSED: "passed",
         pb.CHECK_RESULT_PARTIAL: "partial", pb.CHECK_RESULT_UNUSUAL: "unusual",
         pb.CHECK_RESULT_SUSPECT: "suspect", pb.CHECK_RESULT_WRONG: "wrong"}


def operand(rng, rows, cols, dtype):
    result = pb.Operand(shape=pb.MatrixShape(rows=rows, cols=cols, dtype=dtype))
    result.generator.seed = rng.getrandbits(63)
    if rng.random() < 0.5:
        result.generator.normal.SetInParent()
    else:
        result.generator.uniform.low, result.generator.uniform.high = -1, 1
    return result


def draw(rng, host):
    """A product of up to 130 x 130 x 700, as check_trial has them."""
    dtype, outputs, computes = rng.choice(TYPES[2:4] if host else TYPES)
    m, n = rng.randint(1, 130), rng.randint(1, 130)
    k = rng.choice([1, 7, 33, 64, 100, 257, 700])
    transpose_a, transpose_b = rng.random() < 0.5, rng.random() < 0.5
    product = pb.Product(
        a=operand(rng, *((k, m) if transpose_a else (m, k)), dtype),
        b=operand(rng, *((n, k) if transpose_b else (k, n)), dtype),
        transpose_a=transpose_a, transpose_b=transpose_b, output_dtype=rng.choice(outputs),
        compute=computes[0] if host else rng.choice(computes))
    if rng.random() < 0.3:
        product.alpha = rng.choice([0.5, -1, 2])
    if rng.random() < 0.2:
        product.beta = rng.choice([1, -0.75])
        product.c.CopyFrom(operand(rng, m, n, product.output_dtype))
    product.result.keep.ttl.nanos = 1_000_000
    return product


def send(address, jobs, seed, in_flight, host, results):
    """Keeps jobs under way on one stream, and counts how their checks ended."""
    rng, room = random.Random(seed), threading.Semaphore(in_flight)
    ends, worst = collections.Counter(), 0.0

    def requests():
        for job in range(jobs):
            room.acquire()
            yield pb.MultiplyRequest(header=pb.MultiplyHeader(job_id=job, product=draw(rng, host)))

    try:
        with grpc.insecure_channel(address, [("gemm.channel", seed)]) as channel:
            for answer in gemm_pb2_grpc.GemmServiceStub(channel).Multiply(requests()):
                room.release()
                if answer.HasField("error"):
                    ends[f"error: {answer.error.message}"] += 1
                    continue
                check = answer.result.report.check
                ends[NAMES[check.result]] += 1
                worst = max(worst, check.of_bound)
    except grpc.RpcError as error:
        ends[f"the stream ended: {error.code().name}: {error.details()}"] += 1
    results.put((ends, worst))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--in-flight", type=int, default=48, help="of each process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", action="store_true", help="only what a host device takes")
    arguments = parser.parse_args()
    results, begin = multiprocessing.Queue(), time.monotonic()
    shares = [len(range(i, arguments.jobs, arguments.processes))
              for i in range(arguments.processes)]
    senders = [multiprocessing.Process(
        target=send, args=(arguments.address, share, arguments.seed * 1000 + i,
                           arguments.in_flight, arguments.host, results))
        for i, share in enumerate(shares)]
    for sender in senders:
        sender.start()
    ends, worst = collections.Counter(), 0.0
    for _ in senders:
        counted, most = results.get()
        ends += counted
        worst = max(worst, most)
    for sender in senders:
        sender.join()
    took = time.monotonic() - begin
    done = sum(ends.values())
    print(f"{done} products in {took:.1f} s, {done / took:.0f} a second")
    for name, count in sorted(ends.items(), key=lambda end: -end[1]):
        print(f"{count:9}  {name}")
    print(f"largest residual: {worst:.3f} of the bound")
    good = ends["passed"] + ends["partial"]
    return 0 if good == done == arguments.jobs else 1


if __name__ == "__main__":
    sys.exit(main())
