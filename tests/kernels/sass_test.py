"""Holds the names of the catalogue's rows against their machine code. Needs no GPU.

    sass_test.py KERNEL_SYMBOLS OBJECT...

Exits with 77 where cuobjdump or nvdisasm is missing.
"""

import re
import sys
import unittest

from machine_code import ToolsMissing, read_rows

SKIPPED = 77
ROWS = []


def is_multiplication(opcode, operands):
    """The arithmetic of a product: HFMA2 with RZ only moves constants."""
    if opcode.startswith("HFMA2"):
        return operands.count("RZ") < 2
    return opcode.split(".")[0] in {"FFMA", "DFMA", "HMUL2", "HMMA", "HGMMA", "QGMMA", "QMMA"}


def is_async(name):
    """Rows whose names or families promise cp.async."""
    return re.search(r"_async|_stage\d", name) or name.startswith("grouped_")


class NamesInMachineCode(unittest.TestCase):
    def check(self, applies, wrong):
        """No row that a promise applies to may break it for any of its kernels.

        `applies` takes a row's name; `wrong` takes a row and a function and says what is wrong,
        or nothing.
        """
        broken, looked_at = [], 0
        for row in ROWS:
            if not applies(row["name"]):
                continue
            for function in row["functions"]:
                if function.architecture < row["min_capability"]:
                    continue
                looked_at += 1
                if reason := wrong(row, function):
                    broken.append(f"{row['name']} sm_{function.architecture}: {reason}")
        self.assertGreater(looked_at, 0, "no row that this is about")
        self.assertEqual(broken, [], f"{len(broken)} of {looked_at}")

    def needs(self, applies, pattern):
        """Every kernel of these rows holds an opcode of the pattern."""
        self.check(applies, lambda _, f: "" if f.opcodes(pattern) else f"no {pattern}")

    def test_every_row_has_code_for_every_architecture(self):
        architectures = {f.architecture for row in ROWS for f in row["functions"]}
        self.assertTrue(architectures)
        for row in ROWS:
            with self.subTest(row["name"]):
                self.assertTrue(row["variant"], "its launch function has no symbol")
                self.assertEqual({f.architecture for f in row["functions"]}, architectures)

    def test_no_two_rows_share_their_code(self):
        owners = {}
        for row in ROWS:
            self.assertNotIn(row["variant"], owners, row["name"])
            owners[row["variant"]] = row["name"]

    def test_no_row_uses_local_memory(self):
        def wrong(_, function):
            if spills := function.opcodes(r"(STL|LDL)\b"):
                return f"{len(spills)} loads and stores of local memory"
            stack, local = function.usage["STACK"], function.usage["LOCAL"]
            return f"stack {stack}, local {local}" if stack or local else ""

        self.check(lambda name: True, wrong)

    def test_async_rows_copy_without_registers(self):
        self.needs(is_async, r"LDGSTS")

    def test_other_cuda_core_rows_do_not(self):
        self.check(
            lambda name: re.match(r"[sh]gemm_(t_|sliced|naive|block)", name) and not is_async(name),
            lambda _, f: "LDGSTS" if f.opcodes(r"LDGSTS") else "",
        )

    def test_wmma_and_mma_rows_use_tensor_cores(self):
        self.needs(lambda name: "gemm_wmma_" in name or "gemm_mma_" in name, r"HMMA")

    def test_half_rows_accumulate_as_named(self):
        def wrong(row, function):
            wanted = "F32" if row["name"].endswith("_f32acc") else "F16"
            others = [o for o in function.opcodes("HMMA") if o.split(".")[2] != wanted]
            return f"{set(others)}" if others else ""

        self.check(lambda name: re.match(r"hgemm_w?mma_", name), wrong)

    def test_single_precision_tensor_rows_multiply_as_tf32(self):
        self.needs(lambda name: name.startswith("sgemm_wmma_"), r"HMMA.*TF32")

    def test_mma_rows_load_fragments_with_ldmatrix(self):
        self.needs(lambda name: name.startswith("hgemm_mma_"), r"LDSM")

    def test_grouped_rows_use_the_largest_instructions_there_are(self):
        def wrong(row, function):
            eight_bit = re.match(r"grouped_e[45]m", row["name"])
            if function.architecture != 90 or row["name"].endswith("_w2"):
                wanted = r"QMMA|HMMA" if eight_bit else r"HMMA"
            else:
                wanted = r"QGMMA" if eight_bit else r"HGMMA"
            return "" if function.opcodes(wanted) else f"no {wanted}"

        self.check(lambda name: name.startswith("grouped_"), wrong)

    def test_vector_rows_load_vectors_first(self):
        """The operands' first loads come before any multiplication, the epilogue's after."""

        def wrong(row, function):
            bits = 64 if "f16x4" in row["name"] else 128
            load = rf"LDG(STS)?\.(\w+\.)*{bits}\b"
            loaded = function.first(lambda opcode, _: re.match(load, opcode))
            multiplied = function.first(is_multiplication)
            if multiplied is None:
                return "no multiplication"
            if loaded is None or loaded > multiplied:
                return f"no load of {bits} bits before the first multiplication"
            return ""

        self.check(lambda name: re.search(r"f32x4|f16x[48]", name), wrong)

    def test_collective_rows_store_16_bytes_at_once(self):
        """Single elements are those at D's edge."""

        def wrong(_, function):
            stores = function.opcodes(r"STG\b")
            others = [o for o in stores if not re.search(r"\b(128|U16)\b", o)]
            if others:
                return f"{len(others)} of {set(others)}"
            return "" if any("128" in o for o in stores) else "no store of 128 bits"

        self.check(lambda name: "_warp4x4x2_" in name, wrong)

    def test_packed_rows_multiply_two_halves_at_once(self):
        def wrong(row, function):
            products = [
                operands.split(",")[1:3]
                for opcode, operands in function.instructions
                if opcode.startswith("HFMA2") and is_multiplication(opcode, operands)
            ]
            # One half of a register is selected as ".H0_H0".
            packed = sum(any(".H" not in factor for factor in factors) for factors in products)
            if "_pack" in row["name"]:
                right = packed >= 32 and packed > 0.9 * len(products)
            else:
                right = packed < 0.1 * len(products)
            return "" if right else f"{packed} of {len(products)} HFMA2 are packed"

        self.check(lambda name: name.startswith("hgemm_t_"), wrong)

    def test_dynamic_shared_memory_rows_have_no_static(self):
        def wrong(_, function):
            return f"{function.usage['SHARED']} bytes" if function.usage["SHARED"] > 1024 else ""

        self.check(lambda name: "_dsmem" in name, wrong)

    def test_other_stage_rows_have_static(self):
        self.check(
            lambda name: re.search(r"_stage\d", name) and "_dsmem" not in name,
            lambda _, f: "" if f.usage["SHARED"] > 1024 else "no static shared memory",
        )


if __name__ == "__main__":
    try:
        ROWS = read_rows(sys.argv[1], sys.argv[2:])
    except ToolsMissing as missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
