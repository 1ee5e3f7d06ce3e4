"""Compiles a kernel of each family for several architectures, and looks at what is there.

    device_code_test.py NVCC INCLUDE_FOLDERS SOURCE

A kernel multiplies where the marker of cuda_caps.cu says that there is code for it, in machine
code and in PTX. Everywhere else it ends with an error: it never does nothing. Needs no GPU. Exits
with 77 where cuobjdump or nvdisasm is missing.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from machine_code import ToolsMissing, dump, read_object, tools

SKIPPED = 77
NVCC, INCLUDES, SOURCE = None, [], None
# DeviceCode of gemm/kernel.h.
ANY, SM89, SM90A = range(3)
# The code of each compilation. Code for sm_90 comes from PTX of compute_90. So a list with PTX
# alone has the code of that PTX here.
ARCHITECTURES = {"80": ANY, "90": SM89, "90a": SM90A}
# For each variant in one_kernel_each.cu: the code that its rows ask for (catalogue_test has the
# same table), and its products in machine code and in PTX.
KERNELS = {
    "SimtVariant": (ANY, r"FFMA", r"fma\.rn\.f32"),
    "WmmaVariant": (ANY, r"HMMA", r"wmma\.mma"),
    "MmaVariant": (ANY, r"HMMA", r"mma\.sync"),
    "GroupedVariant": (ANY, r"HMMA|HGMMA", r"mma\.sync|wgmma\.mma_async"),
    "GroupedFp8Variant": (SM89, r"QMMA|HMMA|QGMMA", r"mma\.sync|wgmma\.mma_async"),
    "HopperVariant": (SM90A, r"HGMMA", r"wgmma\.mma_async"),
    "HopperF32Variant": (SM90A, r"FFMA", r"fma\.rn\.f32"),
}
PTX_ENTRY = re.compile(r"^(?:\.visible )?\.entry (\w+)\(", re.MULTILINE)


def variant_of(symbol):
    """The variant of a mangled kernel; None of the marker."""
    return next((name for name in KERNELS if f"{len(name)}{name}E" in symbol), None)


def split_ptx(ptx):
    """By mangled name, the text of each kernel."""
    parts = PTX_ENTRY.split(ptx)
    return dict(zip(parts[1::2], parts[2::2]))


class DeviceCode(unittest.TestCase):
    def compile(self, architecture):
        """(machine code by variant, PTX by variant, what the marker says)."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.fatbin"
            subprocess.run(
                [NVCC, "-std=c++20", "--expt-relaxed-constexpr", "-fatbin", "-o", str(out),
                 *(f"-I{include}" for include in INCLUDES), "-gencode",
                 f"arch=compute_{architecture},code=[sm_{architecture},compute_{architecture}]",
                 SOURCE],
                check=True)
            machine = {variant_of(f.symbol): f for f in read_object(tools(), out)}
            ptx = split_ptx("".join(dump(tools(), "-ptx", out)))
        marker = next(text for symbol, text in ptx.items() if "CodeMarker" in symbol)
        code = int(re.search(r"\.maxntid (\d+)", marker)[1]) // 32 - 1
        return machine, {variant_of(symbol): text for symbol, text in ptx.items()}, code

    def check(self, has, needed, products, traps):
        if has >= needed:
            self.assertTrue(products, "it multiplies nothing")
            self.assertFalse(traps, "it ends with an error")
        else:
            self.assertFalse(products, "the marker denies code that is there")
            self.assertTrue(traps, "it neither multiplies nor ends with an error")

    def test_kernels_multiply_or_end_with_an_error(self):
        for architecture, expected in ARCHITECTURES.items():
            machine, ptx, has = self.compile(architecture)
            self.assertEqual(has, expected, f"the marker for {architecture}")
            for variant, (needed, sass_product, ptx_product) in KERNELS.items():
                with self.subTest(variant, architecture=f"sm_{architecture}"):
                    function = machine[variant]
                    self.check(has, needed, function.opcodes(sass_product),
                               function.opcodes(r"BPT\.TRAP"))
                with self.subTest(variant, architecture=f"compute_{architecture}"):
                    text = ptx[variant]
                    self.check(has, needed, re.search(ptx_product, text),
                               re.search(r"^\s*trap;", text, re.MULTILINE))


if __name__ == "__main__":
    NVCC, SOURCE = sys.argv[1], sys.argv[3]
    INCLUDES = [folder for folder in sys.argv[2].split(",") if folder]
    try:
        tools()
    except ToolsMissing as missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
