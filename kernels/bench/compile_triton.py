#!/usr/bin/env python3
"""Compiles the grouped family's baseline, the product of Triton's matrix multiplication tutorial.

Leaves the cubins of the tutorial's configurations in a folder, and a list of them, from where
gemm_bench --triton runs them: on the same operands as the catalogue's kernels, in turns with
them. For sm_90, less the configurations that need more shared memory than there is. Needs Triton,
but no GPU.

  kernels/bench/compile_triton.py triton/
  gemm_bench --suite triton-31 --family grouped,cublas --types f16:f16:f16:f32 --triton triton/
"""

import argparse
import json
import pathlib
import sys
from typing import NamedTuple

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


class Config(NamedTuple):
    """A configuration of the tutorial: the tile of D, its depth, pipeline stages and warps."""

    tile_m: int
    tile_n: int
    tile_k: int
    stages: int
    warps: int


# The tutorial's list, those for fp8 last.
CONFIGS = [
    Config(tile_m=128, tile_n=256, tile_k=64, stages=3, warps=8),
    Config(tile_m=64, tile_n=256, tile_k=32, stages=4, warps=4),
    Config(tile_m=128, tile_n=128, tile_k=32, stages=4, warps=4),
    Config(tile_m=128, tile_n=64, tile_k=32, stages=4, warps=4),
    Config(tile_m=64, tile_n=128, tile_k=32, stages=4, warps=4),
    Config(tile_m=128, tile_n=32, tile_k=32, stages=4, warps=4),
    Config(tile_m=64, tile_n=32, tile_k=32, stages=5, warps=2),
    Config(tile_m=32, tile_n=64, tile_k=32, stages=5, warps=2),
    Config(tile_m=128, tile_n=256, tile_k=128, stages=3, warps=8),
    Config(tile_m=256, tile_n=128, tile_k=128, stages=3, warps=8),
    Config(tile_m=256, tile_n=64, tile_k=128, stages=4, warps=4),
    Config(tile_m=64, tile_n=256, tile_k=128, stages=4, warps=4),
    Config(tile_m=128, tile_n=128, tile_k=128, stages=4, warps=4),
    Config(tile_m=128, tile_n=64, tile_k=64, stages=4, warps=4),
    Config(tile_m=64, tile_n=128, tile_k=64, stages=4, warps=4),
    Config(tile_m=128, tile_n=32, tile_k=64, stages=4, warps=4),
]
GROUP_M = 8
POINTERS = {"f16": "*fp16", "bf16": "*bf16"}
MOST_SHARED_BYTES = 227 * 1024  # of a thread block on sm_90


@triton.jit
def product(a, b, d, m, n, k, lda, ldb, ldd, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
            TILE_K: tl.constexpr, GROUP: tl.constexpr):
    """D = A B, accumulators in f32. A tile a program; tiles in groups of GROUP tile rows."""
    tiles_m = tl.cdiv(m, TILE_M)
    tiles_n = tl.cdiv(n, TILE_N)
    index = tl.program_id(0)
    first = index // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    tile_m = first + index % (GROUP * tiles_n) % height
    tile_n = index % (GROUP * tiles_n) // height

    # Beyond an edge it wraps around. The store leaves these elements out.
    rows = (tile_m * TILE_M + tl.arange(0, TILE_M)) % m
    cols = (tile_n * TILE_N + tl.arange(0, TILE_N)) % n
    ks = tl.arange(0, TILE_K)
    from_a = a + rows[:, None] * lda + ks[None, :]
    from_b = b + ks[:, None] * ldb + cols[None, :]
    accumulators = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, TILE_K)):
        left = k - step * TILE_K
        tile_a = tl.load(from_a, mask=ks[None, :] < left, other=0.0)
        tile_b = tl.load(from_b, mask=ks[:, None] < left, other=0.0)
        accumulators = tl.dot(tile_a, tile_b, accumulators)
        from_a += TILE_K
        from_b += TILE_K * ldb

    rows = tile_m * TILE_M + tl.arange(0, TILE_M)
    cols = tile_n * TILE_N + tl.arange(0, TILE_N)
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    to = d + rows[:, None] * ldd + cols[None, :]
    tl.store(to, accumulators.to(d.dtype.element_ty), mask=inside)


def compile_config(config, dtype):
    """The kernel of a configuration as Triton compiles it for arguments that are all multiples
    of 16, which is how it finds them where they are."""
    pointers = dict.fromkeys(("a", "b", "d"), POINTERS[dtype])
    sizes = dict.fromkeys(("m", "n", "k", "lda", "ldb", "ldd"), "i32")
    tile = {"TILE_M": config.tile_m, "TILE_N": config.tile_n, "TILE_K": config.tile_k,
            "GROUP": GROUP_M}
    signature = {**pointers, **sizes, **dict.fromkeys(tile, "constexpr")}
    multiples = {(i,): [["tt.divisibility", 16]] for i in range(len(pointers) + len(sizes))}
    source = ASTSource(product, signature, constexprs=tile, attrs=multiples)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={"num_stages": config.stages, "num_warps": config.warps})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="for the cubins; made where it is not")
    parser.add_argument("--type", choices=POINTERS, default="f16", help="of A, B and D")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for config in CONFIGS:
        tile_m, tile_n, tile_k, stages, warps = config
        name = f"triton_{arguments.type}_{tile_m}x{tile_n}x{tile_k}_s{stages}_w{warps}"
        compiled = compile_config(config, arguments.type)
        shared_bytes = compiled.metadata.shared
        if shared_bytes > MOST_SHARED_BYTES:
            print(f"{name}: left out, {shared_bytes} bytes of shared memory", flush=True)
            continue
        (arguments.folder / f"{name}.cubin").write_bytes(compiled.asm["cubin"])
        kernels.append({"name": name, "cubin": f"{name}.cubin", "entry": compiled.metadata.name,
                        "type": arguments.type, "tile_m": tile_m, "tile_n": tile_n,
                        "threads": 32 * warps, "shared_bytes": shared_bytes})
        print(f"{name}: {shared_bytes} bytes of shared memory", flush=True)
    (arguments.folder / "kernels.json").write_text(json.dumps(kernels, indent=1), encoding="utf-8")
    print(f"{len(kernels)} kernels of triton {triton.__version__} in {arguments.folder}")


if __name__ == "__main__":
    sys.exit(main())
