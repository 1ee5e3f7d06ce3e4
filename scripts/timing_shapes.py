#!/usr/bin/env python3
"""Prints the shapes on which the estimates of kernels are fitted, or further ones to judge them on.

    scripts/timing_shapes.py fit 400       400 shapes, MxNxK,MxNxK,... for gemm_bench --shapes
    scripts/timing_shapes.py judge 100     100 of another distribution, none of them for a fit
    scripts/timing_shapes.py layers 100    100 of layers that no fit sees, with any number of rows

Shapes to fit are of three kinds: any sizes of 1 to 16,384; sizes such as layers have, with few or
many rows; and powers of two with their halves between. Linear layers of public models (the suite
"layers", and others) and the shapes to judge on are left out. The same arguments give the same shapes.
"""

import argparse
import random
import sys

# n x k of layers that shapes to fit must not have: those of the models that the suite has, and of
# others that are kept to judge on.
HELD_BACK = {
    (256, 512), (512, 13), (512, 256), (512, 415), (768, 768), (768, 3072), (1000, 1280),
    (1000, 2048), (1000, 4096), (1024, 479), (1024, 1024), (1024, 1479), (1024, 4096),
    (1280, 588), (1280, 1280), (1280, 5120), (1536, 7168), (2304, 768), (2560, 8192), (3072, 768),
    (3072, 1024), (3072, 3072), (3072, 8192), (3584, 3584), (3584, 18944), (4096, 1024),
    (4096, 4096), (4096, 7168), (4096, 14336), (4096, 25088), (4608, 3584), (5120, 1280),
    (6144, 4096), (7168, 2048), (8192, 2048), (8192, 7168), (8192, 8192), (8192, 28672),
    (9216, 3072), (10240, 8192), (14336, 4096), (14336, 8192), (16384, 3072), (24576, 1536),
    (28672, 4096), (28672, 8192), (30522, 768), (32000, 4096), (32064, 3072), (37888, 3584),
    (50257, 768), (50257, 1024), (51866, 1280), (57344, 8192), (128256, 4096), (152064, 3584),
}  # fmt: skip


def log_uniform(draw, least, most):
    return max(least, min(most, round(least * (most / least) ** draw.random())))


def aligned(draw, size):
    """The size, or one beside it that is a multiple of 8, 32 or 128: as many of each."""
    step = draw.choice([1, 1, 8, 8, 32, 128])
    return max(step, round(size / step) * step)


def any_sizes(draw, most):
    return tuple(aligned(draw, log_uniform(draw, 1, most)) for _ in "mnk")


def layer(draw):
    width = draw.choice([64, 128, 128, 256, 512]) * draw.randint(2, 40)
    n = draw.choice(
        [
            width,
            width * draw.choice([2, 3, 4]),
            draw.randint(4000, 60000) if draw.random() < 0.5 else 128 * draw.randint(50, 600),
        ]
    )
    rows = [1, 2, 4, 8, 12, 16, 20, 32, 40, 64, 80, 96, 128, 160, 192, 224, 256, 320, 512, 768]
    m = draw.choice(rows) if draw.random() < 0.5 else log_uniform(draw, 1, 4096)
    n, k = (n, width) if draw.random() < 0.6 else (width, min(n, 30000))
    return m, n, k


def powers(draw, most):
    sizes = [s for p in range(6, 15) for s in (1 << p, 3 << (p - 1)) if s <= most]
    return tuple(draw.choice(sizes) for _ in "mnk")


def fits(shape, most_flops):
    m, n, k = shape
    bytes_ = 4 * (m * k + k * n + m * n)
    return 2 * m * n * k <= most_flops and bytes_ <= 4e9 and (n, k) not in HELD_BACK


def shapes_to_fit(count, seed, most_flops):
    draw = random.Random(seed)
    kinds = [lambda: any_sizes(draw, 16384), lambda: layer(draw), lambda: powers(draw, 16384)]
    shapes = []
    while len(shapes) < count:
        shape = draw.choices(kinds, [4, 4, 2])[0]()
        # Most products are small ones. Large ones take long to measure, and differ less.
        if 2 * shape[0] * shape[1] * shape[2] > 2e11 and draw.random() < 0.5:
            continue
        if fits(shape, most_flops) and shape not in shapes:
            shapes.append(shape)
    return shapes


def shapes_to_judge(count, seed, most_flops):
    draw = random.Random(f"judge {seed}")
    shapes = []
    while len(shapes) < count:
        shape = tuple(log_uniform(draw, 16, 6000) for _ in "mnk")
        if fits(shape, most_flops) and shape not in shapes:
            shapes.append(shape)
    return shapes


def layers_to_judge(count, seed, most_flops):
    draw = random.Random(f"layers {seed}")
    shapes = []
    while len(shapes) < count:
        n, k = draw.choice(sorted(HELD_BACK))
        shape = log_uniform(draw, 1, 4096), n, k
        if 2 * shape[0] * n * k <= most_flops and shape not in shapes:
            shapes.append(shape)
    return shapes


MAKERS = {"fit": shapes_to_fit, "judge": shapes_to_judge, "layers": layers_to_judge}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("purpose", choices=list(MAKERS))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-flops", type=float, default=2e12, help="of a product")
    words = parser.parse_args()
    shapes = MAKERS[words.purpose](words.count, words.seed, words.most_flops)
    sys.stdout.write(",".join("x".join(map(str, shape)) for shape in shapes) + "\n")


if __name__ == "__main__":
    main()
