"""Writes the .npy files of this folder, with numpy and ml_dtypes.

    python3 tests/client/data/make_fixtures.py

Every array is 3 x 4 with element (i, j) = (i * 4 + j) / 4 - 1, which all the
float types here hold exactly, or i * 4 + j - 5 for the integers.
"""
import pathlib

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).parent
VALUES = np.arange(12).reshape(3, 4)
FLOATS = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}


def main():
    for name, dtype in FLOATS.items():
        np.save(HERE / f"{name}.npy", (VALUES / 4 - 1).astype(dtype))
    np.save(HERE / "s8.npy", (VALUES - 5).astype(np.int8))
    np.save(HERE / "s32.npy", (VALUES - 5).astype(np.int32))
    np.save(HERE / "fortran.npy", np.asfortranarray((VALUES / 4 - 1).astype(np.float32)))
    np.save(HERE / "vector.npy", (np.arange(4) / 4 - 1).astype(np.float32))
    np.save(HERE / "scalar.npy", np.float64(-1))
    np.save(HERE / "cube.npy", np.zeros((2, 2, 2), np.float32))
    for name, dtype in {"f64": ">f8", "f32": ">f4", "f16": ">f2"}.items():
        np.save(HERE / f"big_endian_{name}.npy", (VALUES / 4 - 1).astype(dtype))
    np.save(HERE / "big_endian_s32.npy", (VALUES - 5).astype(">i4"))
    np.save(HERE / "complex.npy", np.zeros((2, 2), np.complex64))
    for version in (1, 2, 3):
        with open(HERE / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, (VALUES / 4 - 1).astype(np.float32), (version, 0))


main()
