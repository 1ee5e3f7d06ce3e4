#!/usr/bin/env python3
"""ModelInfer of the Open Inference Protocol beside MultiplyUnary, on one server.

  inference_cost.py --address 127.0.0.1:50051 --stubs DIR

DIR has the Python modules of gemm/v1/gemm.proto and inference/inference.proto. The server needs
--max-message-bytes=256MiB. Both send the same f16 operands, and get D back. Requests are made
before and answers stay bytes, so that the two clients cost the same. They take turns.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time

import grpc

OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
]
# Extent, processes, and callers in each.
LOADS = [(64, 1, 1), (64, 4, 16), (1024, 4, 4), (4096, 1, 1)]
UNARY, INFER = "MultiplyUnary", "ModelInfer"
PATHS = {
    UNARY: "/gemm.v1.GemmService/MultiplyUnary",
    INFER: "/inference.GRPCInferenceService/ModelInfer",
}


def requests(stubs, extent):
    """The serialized request of each method."""
    sys.path.insert(0, stubs)
    from gemm.v1 import gemm_pb2  # pylint: disable=import-outside-toplevel
    from inference import inference_pb2  # pylint: disable=import-outside-toplevel

    a, b = (os.urandom(extent * extent) * 2 for _ in range(2))  # only the time counts
    shape = gemm_pb2.MatrixShape(rows=extent, cols=extent, dtype=gemm_pb2.DATA_TYPE_F16)
    product = gemm_pb2.Product(
        a=gemm_pb2.Operand(shape=shape, data=a), b=gemm_pb2.Operand(shape=shape, data=b)
    )
    infer = inference_pb2.ModelInferRequest(model_name="matmul", raw_input_contents=[a, b])
    for name in "AB":
        infer.inputs.add(name=name, datatype="FP16", shape=[extent, extent])
    unary = gemm_pb2.MultiplyUnaryRequest(product=product)
    return {UNARY: unary.SerializeToString(), INFER: infer.SerializeToString()}


def call_for(duration, address, path, request, ready, seconds):
    with grpc.insecure_channel(address, OPTIONS) as channel:
        call = channel.unary_unary(path)  # bytes in, bytes out
        call(request)
        ready.wait()
        end = time.monotonic() + duration
        while (begin := time.monotonic()) < end:
            call(request)
            seconds.append(time.monotonic() - begin)


def run_callers(callers, latencies, *arguments):
    seconds = []
    threads = [
        threading.Thread(target=call_for, args=(*arguments, seconds)) for _ in range(callers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies.put(seconds)


def measure(processes, callers, duration, address, path, request):
    """Calls a second, and the median latency in seconds."""
    ready = multiprocessing.Barrier(processes * callers)
    latencies = multiprocessing.Queue()
    arguments = (callers, latencies, duration, address, path, request, ready)
    running = [
        multiprocessing.Process(target=run_callers, args=arguments) for _ in range(processes)
    ]
    for process in running:
        process.start()
    seconds = [x for _ in running for x in latencies.get()]
    for process in running:
        process.join()
    return processes * callers / statistics.mean(seconds), statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", required=True)
    parser.add_argument("--stubs", required=True)
    parser.add_argument("--largest", type=int, default=4096, help="extent that is sent")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round of one method")
    parser.add_argument("--json", help="write the results here")
    arguments = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    results = []
    print(f"{'extent':>6} {'callers':>7} {'method':14} {'calls/s':>10} {'p50 us':>10} {'of unary':>9}")
    for extent, processes, callers in LOADS:
        if extent > arguments.largest:
            continue
        bodies = requests(arguments.stubs, extent)
        rounds = {UNARY: [], INFER: []}
        for turn in range(arguments.rounds):
            for method in (UNARY, INFER) if turn % 2 == 0 else (INFER, UNARY):
                rounds[method].append(
                    measure(processes, callers, arguments.seconds, arguments.address,
                            PATHS[method], bodies[method])
                )  # fmt: skip
        unary = statistics.median(rate for rate, _ in rounds[UNARY])
        for method, figures in rounds.items():
            rate, p50 = (statistics.median(column) for column in zip(*figures))
            results.append({"extent": extent, "callers": processes * callers, "method": method,
                            "calls_per_second": rate, "p50_seconds": p50})  # fmt: skip
            print(f"{extent:6} {processes * callers:7} {method:14} {rate:10,.0f} {p50 * 1e6:10,.0f} "
                  f"{rate / unary:9.3f}")  # fmt: skip
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
