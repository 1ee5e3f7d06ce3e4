#!/usr/bin/env python3
"""Fits the trees of kernels/tuning/data/hopper.estimates to measured times.

    scripts/fit_estimates.py FEATURES [--out FILE]

FEATURES is the program gemm_features of a build with CUDA (cmake --build --preset dev --target
gemm_features); it needs no GPU. The times are docs/results/timings/*-fit (scripts/
measure-timings.sh, scripts/pack_timings.py). Needs numpy and lightgbm, both from PyPI.

For each kernel of a class, the logarithm of measured over computed time is fitted by small trees
(gemm/estimates.h). A shape counts the more the nearer the kernel is to the fastest there: only
those are ever mistaken for it. Both GPUs are fitted together: they differ in the feature of the
device.
"""

import argparse
import csv
import pathlib
import subprocess
import sys

import lightgbm
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMINGS = ROOT / "docs/results/timings"
DEVICES = {"h200": "NVIDIA H200", "h100": "NVIDIA H100 80GB HBM3"}
# The files of a class, by the types' name in those of kernels: A, B, D and the compute mode.
CLASSES = [
    {"f16": "f16:f16:f16:f32", "bf16": "bf16:bf16:bf16:f32"},
    {"e4m3": "e4m3:e4m3:f16:f32", "e5m2": "e5m2:e5m2:f16:f32"},
    {"tf32": "f32:f32:f32:tf32"},
    {"s8": "s8:s8:s32:s32"},
    {"f64": "f64:f64:f64:f64"},
    {"f32x3": "f32:f32:f32:f32x3"},
    {"f32": "f32:f32:f32:f32"},
]
LAYOUTS = ("nn", "nt", "tn", "tt")
FIT = {
    "n_estimators": 80,
    "learning_rate": 0.12,
    "max_depth": 4,
    "num_leaves": 16,
    "min_child_samples": 6,
    "reg_lambda": 1.0,
    "subsample": 0.8,
    "subsample_freq": 1,
    "colsample_bytree": 0.7,
    "random_state": 1,
    "deterministic": True,
    "n_jobs": 1,
    "verbose": -1,
}


def read_times(path):
    """Shapes and, for each, microseconds by kernel; of cuBLASLt the first algorithm."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            shape = tuple(int(row[key]) for key in "mnk")
            times = {
                name.removesuffix(":0"): float(text)
                for name, text in row.items()
                if name not in "mnk" and text and not (":" in name and not name.endswith(":0"))
            }
            yield shape, times


def measured(names, kind):
    """Input lines of gemm_features, and the times that belong to them."""
    lines, times = [], []
    for place, (name, types) in enumerate(names.items()):
        for device, prefix in enumerate(DEVICES):
            for layout in LAYOUTS:
                for path in sorted(TIMINGS.glob(f"{prefix}-{kind}*/{name}-{layout}.csv")):
                    for (m, n, k), by_kernel in read_times(path):
                        lines.append(f"{types} {layout} {place} {device} {m} {n} {k}")
                        times.append({kernel_pattern(x, name): t for x, t in by_kernel.items()})
    return lines, times


def kernel_pattern(kernel, name):
    parts = kernel.split("_")
    if parts[1] != name:
        return kernel  # a baseline in another mode
    return "_".join([parts[0], "*", *parts[2:]])


def features_of(program, names, lines):
    """For each input line: by kernel's pattern, the formula's seconds and the features."""
    run = subprocess.run(
        [program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    out = [{} for _ in lines]
    list_of_names = list(names)
    for text in run.stdout.splitlines():
        words = text.split()
        number = int(words[0])
        name = list_of_names[int(lines[number].split()[2])]
        values = numpy.array(words[2:], dtype=float)
        out[number][kernel_pattern(words[1], name)] = values[0], values[1:]
    return out


def fit_class(names, program):
    lines, times = measured(names, "fit")
    features = features_of(program, names, lines)
    patterns = dict.fromkeys(
        kernel for by_kernel in times for kernel in by_kernel if "*" in kernel
    )
    models = {}
    for kernel in patterns:
        x, y, weight = [], [], []
        for by_kernel, of_kernel in zip(times, features, strict=True):
            if kernel not in by_kernel or kernel not in of_kernel:
                continue
            seconds, values = of_kernel[kernel]
            x.append(values)
            y.append(numpy.log(by_kernel[kernel] * 1e-6 / seconds))
            weight.append(min(by_kernel.values()) / by_kernel[kernel])
        model = lightgbm.LGBMRegressor(**FIT)
        model.fit(numpy.array(x), numpy.array(y), sample_weight=numpy.array(weight))
        models[kernel] = model
    print(f"{' '.join(names)}: {len(lines)} shapes, {len(models)} kernels", file=sys.stderr)
    return models


def tree_line(tree):
    """A tree as gemm/estimates.h has it: complete, with four levels of nodes."""
    level, nodes = [tree], []
    for _ in range(FIT["max_depth"]):
        below = []
        for part in level:
            if "split_feature" in part:
                nodes.append(f"{part['split_feature']}:{part['threshold']:.6g}")
                below += [part["left_child"], part["right_child"]]
            else:  # a leaf: both sides have its value
                nodes.append("0:0")
                below += [part, part]
        level = below
    return " ".join(["tree", *nodes, "=", *(f"{part['leaf_value']:.4g}" for part in level)])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", help="the program gemm_features")
    parser.add_argument("--out", default=ROOT / "kernels/tuning/data/hopper.estimates")
    words = parser.parse_args()
    text = ["gemmd estimates 1"]
    text.append("# By scripts/fit_estimates.py, from docs/results/timings. The form: gemm/estimates.h.")
    text.extend(f"device {name}" for name in DEVICES.values())
    for names in CLASSES:
        parts = {name: types.split(":") for name, types in names.items()}
        text.append("class " + " ".join(f"{t[0]}:{t[1]}:{t[3]}={name}" for name, t in parts.items()))
        for kernel, model in fit_class(names, words.features).items():
            text.append(f"kernel {kernel}")
            trees = model.booster_.dump_model()["tree_info"]
            text.extend(tree_line(tree["tree_structure"]) for tree in trees)
    pathlib.Path(words.out).write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
