#!/usr/bin/env python3
"""The grouped family's peer: the product that Triton's matrix multiplication tutorial builds.

Reads the CSV of a gemm_bench run, measures Triton on each of its shapes on the same GPU, and
prints the grouped rows beside it. As gemm_bench measures: operands N(0, 1), row-major, in so
many sets that no launch finds its own in the L2 cache; samples of at least a millisecond; the
median. Triton's launches are replayed from a CUDA graph, so that Python's own time is not in
them. For each shape the fastest of the tutorial's configurations is taken; one that does not
compile or does not fit the GPU is left out.

Two runs find the GPU at different clocks, as it is warmer after one than after the other. So
torch's product, which is cuBLAS's, takes turns with Triton's, and beside the ratio of the two
figures stands that of their shares of cuBLAS, each in its own run.

  gemm_bench --suite triton-31 --family grouped,cublas --types f16:f16:f16:f32 --csv rows.csv
  kernels/bench/triton_peer.py rows.csv --csv triton.csv
"""

import argparse
import collections
import csv
import gc
import math
import statistics
import sys

import torch
import triton
import triton.language as tl

# Tile m, n, k, stages, warps: the tutorial's list, those for fp8 last.
CONFIGS = [
    (128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2),
    (128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4),
    (128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4),
]
GROUP_M = 8
TYPES = {"f16:f16:f16:f32": torch.float16, "bf16:bf16:bf16:f32": torch.bfloat16}
VENDOR = {"f16:f16:f16:f32": "cublas_f16", "bf16:bf16:bf16:f32": "cublas_bf16"}
SAMPLE_SECONDS = 1e-3
MOST_LAUNCHES = 256  # of a sample, and sets of operands
CACHE_TIMES = 3  # of the L2's size, the bytes between two uses of a set


@triton.jit
def product(a, b, d, m, n, k, lda, ldb, ldd, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
            TILE_K: tl.constexpr, GROUP: tl.constexpr):
    """D = A B, sums in f32. A tile a program; tiles in groups of GROUP tile rows."""
    tiles_m = tl.cdiv(m, TILE_M)
    tiles_n = tl.cdiv(n, TILE_N)
    index = tl.program_id(0)
    first = index // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    tile_m = first + index % (GROUP * tiles_n) % height
    tile_n = index % (GROUP * tiles_n) // height

    # Past an edge it reads from the other one on, which the store leaves out.
    rows = (tile_m * TILE_M + tl.arange(0, TILE_M)) % m
    cols = (tile_n * TILE_N + tl.arange(0, TILE_N)) % n
    ks = tl.arange(0, TILE_K)
    from_a = a + rows[:, None] * lda + ks[None, :]
    from_b = b + ks[:, None] * ldb + cols[None, :]
    sums = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, TILE_K)):
        left = k - step * TILE_K
        tile_a = tl.load(from_a, mask=ks[None, :] < left, other=0.0)
        tile_b = tl.load(from_b, mask=ks[:, None] < left, other=0.0)
        sums = tl.dot(tile_a, tile_b, sums)
        from_a += TILE_K
        from_b += TILE_K * ldb

    rows = tile_m * TILE_M + tl.arange(0, TILE_M)
    cols = tile_n * TILE_N + tl.arange(0, TILE_N)
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    to = d + rows[:, None] * ldd + cols[None, :]
    tl.store(to, sums.to(d.dtype.element_ty), mask=inside)


def launch(config, a, b, d):
    """Enqueues D = A B with a configuration of CONFIGS; without one through cuBLAS."""
    if config is None:
        torch.mm(a, b, out=d)
        return
    tile_m, tile_n, tile_k, stages, warps = config
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    product[grid](a, b, d, m, n, k, a.stride(0), b.stride(0), d.stride(0), TILE_M=tile_m,
                  TILE_N=tile_n, TILE_K=tile_k, GROUP=GROUP_M, num_stages=stages,
                  num_warps=warps)


def make_sets(shape, dtype):
    """A, B and D, so often that a set has left the L2 when its turn comes again."""
    m, n, k = shape
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    set_bytes = 2 * (m * k + k * n + m * n)
    count = min(max(2, CACHE_TIMES * cache // set_bytes + 1), MOST_LAUNCHES)

    def random(rows, cols):
        return torch.randn(rows, cols, dtype=dtype, device="cuda")

    return [(random(m, k), random(k, n), torch.empty(m, n, dtype=dtype, device="cuda"))
            for _ in range(count)]


def check(config, operands):
    """An error unless D is within the rounding of a sum in f32 and of D's type."""
    a, b, d = operands
    d.fill_(float("nan"))
    launch(config, a, b, d)
    lines = torch.randperm(a.shape[0], device="cuda")[:64]
    exact = a[lines].double() @ b.double()
    magnitude = a[lines].double().abs() @ b.double().abs()
    bound = (a.shape[1] * 2.0**-24 * magnitude + torch.finfo(d.dtype).eps * exact.abs()
             + torch.finfo(d.dtype).tiny)
    worst = ((d[lines].double() - exact).abs() / bound).nan_to_num(nan=math.inf).max().item()
    if worst > 1:
        raise SystemExit(f"{config} on {tuple(a.shape)} x {tuple(b.shape)}: the error is {worst:.3g}"
                         " of its bound")


class Timer:
    """Times a configuration on sets of operands."""

    def __init__(self, config, sets):
        self.launches = len(sets)
        self.graph = self._capture(config, sets)
        once = self.sample()
        if once * self.launches < SAMPLE_SECONDS:
            self.launches = min(math.ceil(SAMPLE_SECONDS / once), MOST_LAUNCHES)
            self.graph = self._capture(config, sets)

    def _capture(self, config, sets):
        graph = torch.cuda.CUDAGraph()
        # No graph that is no longer used may be destroyed while another is captured.
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph):
                for i in range(self.launches):
                    launch(config, *sets[i % len(sets)])
        finally:
            gc.enable()
        graph.replay()
        return graph

    def sample(self):
        """Seconds of a launch."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.launches


def measure(shape, dtype, samples):
    """The fastest configuration of a shape; the medians of its samples and cuBLAS's in seconds."""
    sets = make_sets(shape, dtype)
    best = None
    for config in CONFIGS:
        try:
            check(config, sets[0])
            timer = Timer(config, sets)
        except triton.runtime.errors.OutOfResources:
            continue
        seconds = min(timer.sample() for _ in range(3))
        if best is None or seconds < best[0]:
            best = (seconds, config, timer)
    _, config, timer = best
    launch(None, *sets[0])  # cuBLAS gets ready, which it cannot while a graph is captured
    vendor = Timer(None, sets)
    taken = [(timer.sample(), vendor.sample()) for _ in range(samples)]
    return config, *map(statistics.median, zip(*taken))


def read_rows(path, types):
    """Of a gemm_bench CSV: the grouped rows' TFLOPS by shape and kernel, cuBLAS's by shape."""
    grouped, vendor = collections.defaultdict(dict), {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["types"] != types or row["layout"] != "nn":
                continue
            shape = tuple(int(row[name]) for name in "mnk")
            if row["family"] == "grouped" and row["tflops"]:
                grouped[shape][row["kernel"]] = float(row["tflops"])
            if row["kernel"] == VENDOR[types] and row["tflops"]:
                vendor[shape] = float(row["tflops"])
    if not grouped:
        raise SystemExit(f"{path} has no figures of grouped kernels for {types} in layout nn")
    for shape in set(grouped) - set(vendor):
        print(f"left out: {'x'.join(map(str, shape))} has no figure of {VENDOR[types]}")
        del grouped[shape]
    if not grouped:
        raise SystemExit(f"{path} has no figures of {VENDOR[types]}: measure --family "
                         "grouped,cublas")
    return grouped, vendor


def report(grouped, triton_tflops, clocks):
    """Prints the geometric mean of each row's ratio to Triton, the best last. `clocks` has by shape
    the factor that makes ratios of shares of cuBLAS of them."""
    kernels, best = collections.defaultdict(list), []
    for shape, rows in grouped.items():
        ratios = {kernel: tflops / triton_tflops[shape] for kernel, tflops in rows.items()}
        for kernel, ratio in ratios.items():
            kernels[kernel].append((ratio, ratio * clocks[shape]))
        ratio = max(ratios.values())
        best.append((ratio, ratio * clocks[shape]))
    print(f"\n{'of Triton, geometric means':44}{'ratio':>8}{'by cuBLAS':>11}{'shapes':>8}")

    def line(name, ratios):
        ratio, by_vendor = map(statistics.geometric_mean, zip(*ratios))
        return ratio, f"{name:44}{ratio:8.3f}{by_vendor:11.3f}{len(ratios):8}"

    for _, text in sorted(line(*item) for item in kernels.items()):
        print(text)
    print(line("the best grouped row of each shape", best)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", help="CSV of a gemm_bench run with the grouped family")
    parser.add_argument("--types", choices=TYPES, default="f16:f16:f16:f32")
    parser.add_argument("--iterations", type=int, default=10, help="samples of a shape")
    parser.add_argument("--csv", help="file for Triton's figures")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("there is no GPU")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    grouped, vendor = read_rows(arguments.rows, arguments.types)
    print(f"triton {triton.__version__}, torch {torch.__version__} on "
          f"{torch.cuda.get_device_name(0)}, {arguments.types}")
    print(f"{'m x n x k':20}{'configuration':>20}{'ms':>10}{'TFLOPS':>9}{'of cuBLAS':>11}"
          f"{'best grouped':>14}{'by cuBLAS':>11}")
    tflops, clocks, lines = {}, {}, []
    for shape in grouped:
        config, seconds, vendor_seconds = measure(shape, TYPES[arguments.types],
                                                  arguments.iterations)
        tflops[shape] = 2.0 * math.prod(shape) / seconds * 1e-12
        vendor_tflops = 2.0 * math.prod(shape) / vendor_seconds * 1e-12
        clocks[shape] = vendor_tflops / vendor[shape]
        ratio = max(grouped[shape].values()) / tflops[shape]
        name = "{}x{}x{}_s{}_w{}".format(*config)
        print(f"{'x'.join(map(str, shape)):20}{name:>20}{seconds * 1e3:10.4f}"
              f"{tflops[shape]:9.2f}{tflops[shape] / vendor_tflops:11.3f}{ratio:14.3f}"
              f"{ratio * clocks[shape]:11.3f}", flush=True)
        lines.append([*shape, name, seconds * 1e3, tflops[shape], vendor_tflops])
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["m", "n", "k", "configuration", "ms", "tflops",
                                         "cublas_tflops"], *lines])
    report(grouped, tflops, clocks)


if __name__ == "__main__":
    sys.exit(main())
