#!/usr/bin/env python3
"""The server one would write in an afternoon: gRPC in Python around torch.matmul.

torch.Matmul/Multiply takes m, n, k (three little-endian uint32) and the f16 elements of A and B,
row-major, and answers the elements of D. What gemmd is compared with; not a part of it.
"""

import argparse
from concurrent import futures

import grpc
import numpy as np
import torch


def multiply(request, _context):
    m, n, k = (int(x) for x in np.frombuffer(request, np.uint32, 3))
    elements = np.frombuffer(request, np.float16, offset=12)
    a = torch.from_numpy(elements[:m * k].reshape(m, k).copy()).to(DEVICE)
    b = torch.from_numpy(elements[m * k:].reshape(k, n).copy()).to(DEVICE)
    return torch.matmul(a, b).cpu().numpy().tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:50099")
    arguments = parser.parse_args()
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(16), options=unlimited)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
        "torch.Matmul", {"Multiply": grpc.unary_unary_rpc_method_handler(multiply)})])
    if server.add_insecure_port(arguments.listen) == 0:
        raise SystemExit(f"--listen: cannot listen on {arguments.listen}")
    server.start()
    print(f"torch server listening on {arguments.listen}, torch {torch.__version__} on {DEVICE}",
          flush=True)
    server.wait_for_termination()


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

if __name__ == "__main__":
    main()
