#!/usr/bin/env python3
"""What idle tuning costs callers: latency of small products that come after pauses.

  idle_tuning_delay.py --address 127.0.0.1:50051 --bursts 20

Gives the server many products that are worth tuning, and then sends bursts of small ones. Between
bursts it pauses for longer than a server with --idle-tuning waits before it measures, so that each
burst comes in the middle of a measurement. Run it against a server with and one without, one after
the other: the two tables are to be the same within noise. Says how many measurements the server
ended for these callers, so that it shows whether there was one to disturb.
"""

import argparse
import json
import re
import sys
import time
import urllib.request

import grpc
import numpy as np
from gemm.v1 import gemm_pb2 as pb
from gemm.v1 import gemm_pb2_grpc


def generated(extent, seed):
    operand = pb.Operand(shape=pb.MatrixShape(rows=extent, cols=extent, dtype=pb.DATA_TYPE_F16))
    operand.generator.seed = seed
    operand.generator.normal.SetInParent()
    return operand


def give_traffic(stub, extents):
    """Products whose kernels are worth measuring."""
    for extent in extents:
        product = pb.Product(a=generated(extent, 1), b=generated(extent, 2))
        product.result.keep.ttl.nanos = 1_000_000
        stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product))


def small_product(extent):
    rng = np.random.default_rng(1)
    operands = [pb.Operand(shape=pb.MatrixShape(rows=extent, cols=extent, dtype=pb.DATA_TYPE_F16),
                           data=rng.standard_normal((extent, extent)).astype("f2").tobytes())
                for _ in range(2)]
    return pb.MultiplyUnaryRequest(product=pb.Product(a=operands[0], b=operands[1]))


def outcomes(metrics):
    """gemmd_idle_tuning_products_total by outcome."""
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    found = re.findall(r'^gemmd_idle_tuning_products_total\{outcome="(\w+)"\} (\d+)', text, re.M)
    return {name: int(count) for name, count in found}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True)
    parser.add_argument("--metrics", help="address of the server's metrics")
    parser.add_argument("--bursts", type=int, default=20)
    parser.add_argument("--calls", type=int, default=100, help="in a burst")
    parser.add_argument("--pause", type=float, default=2.6, help="seconds between bursts")
    parser.add_argument("--extent", type=int, default=64, help="of the small products")
    parser.add_argument("--traffic", default="1536,1792,2304,2560,2816,3072,3328,3584,3840,4352",
                        help="extents of the products that are worth tuning")
    parser.add_argument("--json", help="write the results here")
    arguments = parser.parse_args()
    channel = grpc.insecure_channel(arguments.address)
    grpc.channel_ready_future(channel).result(timeout=30)
    stub = gemm_pb2_grpc.GemmServiceStub(channel)
    give_traffic(stub, map(int, arguments.traffic.split(",")))
    request = small_product(arguments.extent)
    for _ in range(arguments.calls):
        stub.MultiplyUnary(request)  # warms up
    first, rest = [], []
    for _ in range(arguments.bursts):
        time.sleep(arguments.pause)
        for call in range(arguments.calls):
            begin = time.perf_counter()
            stub.MultiplyUnary(request)
            (rest if call else first).append((time.perf_counter() - begin) * 1e3)
    rows = {"first of a burst": first, "others": rest, "all": first + rest}
    print(f"{'ms':18} {'calls':>6} {'p50':>8} {'p90':>8} {'p99':>8} {'max':>8}")
    for name, values in rows.items():
        print(f"{name:18} {len(values):6} " +
              " ".join(f"{percentile(values, share):8.3f}" for share in (0.5, 0.9, 0.99, 1)))
    ended = outcomes(arguments.metrics) if arguments.metrics else {}
    print(f"measurements of the server, by how they ended: {ended or 'not asked for'}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"ms": rows, "outcomes": ended}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
