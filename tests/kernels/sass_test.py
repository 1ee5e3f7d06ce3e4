"""Holds the names of the catalogue's rows against their machine code. Needs no GPU.

    sass_test.py KERNEL_SYMBOLS OBJECT...

Exits with 77 where cuobjdump or nvdisasm is missing.
"""

import re
import sys
import unittest
from pathlib import Path

from machine_code import ToolsMissing, largest_usage, read_rows

SKIPPED = 77
ROWS = []
ROOT = Path(__file__).resolve().parents[2]
REGISTERS = ROOT / "docs" / "results" / "sm90-registers.txt"
# Static shared memory that the system takes of a block on sm_90.
SYSTEM_SHARED_BYTES = 1024


def may_share_code(name, other):
    """Steps that the machine code does not tell apart; docs/kernels.md says so of each.

    Dynamic shared memory alone (mma) is an argument of the launch, bands alone (wmma) are
    another value of a parameter, and one shape of the template is a step of its own.
    """
    first, second = sorted((name, other), key=len)
    if first.startswith("hgemm_mma_"):
        return second.replace("_dsmem", "") == first
    if first.startswith("hgemm_wmma_"):
        return first.replace("_stage2", "_dbuf_async") == second
    return (first, second) == ("sgemm_t_8x8_sliced_k_f32x4_bcf", "sgemm_block_128x128x8_thread_8x8")


def is_multiplication(opcode, operands):
    """The arithmetic of a product: HFMA2 with RZ only moves constants."""
    if opcode.startswith("HFMA2"):
        return operands.count("RZ") < 2
    return opcode.split(".")[0] in {"FFMA", "DFMA", "HMUL2", "HMMA", "HGMMA", "QGMMA", "QMMA"}


def is_async(name):
    """Rows whose names or families promise cp.async."""
    return re.search(r"_async|_stage\d", name) or name.startswith("grouped_")


def layouts_read(name):
    """Layouts that a Hopper row reads as they are; it transposes others first."""
    if re.search("tf32|f32x3|e4m3|e5m2|hopper_s8|_t8x16", name):
        return 1
    return 2 if "_swap" in name else 4


def reads_other_blocks(name):
    """Rows whose blocks share k read each other's shared memory, by loads that look generic."""
    return re.search(r"^hopper_.*_k\d", name)


def is_hopper_f32(name):
    """Rows that promise TMA and FFMA."""
    return name.startswith("hopper_f32_")


def is_hopper(name):
    """Rows that promise TMA and wgmma."""
    return name.startswith("hopper_") and not is_hopper_f32(name)


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

    def test_every_kernel_multiplies_or_ends_with_an_error(self):
        """Code for an architecture that has not what a row needs (DeviceCode) is no empty one."""
        product = r"FFMA|DFMA|HFMA2|HMUL2|[HQID]MMA|[HQI]GMMA"
        for row in ROWS:
            for function in row["functions"]:
                has = 2 if function.architecture == 90 else int(function.architecture >= 89)
                wanted = product if has >= row["code"] else r"BPT\.TRAP"
                with self.subTest(row["name"], architecture=function.architecture):
                    self.assertTrue(function.opcodes(wanted), f"no {wanted}")

    def test_no_two_rows_are_the_same_kernel(self):
        owners = {}
        for row in ROWS:
            self.assertNotIn(row["variant"], owners, row["name"])
            owners[row["variant"]] = row["name"]

    def test_no_two_rows_share_their_code(self):
        owners = {}

        def wrong(row, function):
            key = (function.architecture, function.text())
            owner = owners.setdefault(key, row["name"])
            if owner == row["name"] or may_share_code(owner, row["name"]):
                return ""
            return f"the instructions of {owner}"

        self.check(lambda name: True, wrong)

    def test_no_row_addresses_memory_generically(self):
        """Loads and stores of a space whose kind the compiler lost are slower than LDS and STS."""

        def wrong(row, function):
            found = function.opcodes(r"(LD|ST)(\.|$)")
            return f"{len(found)} of {set(found)}" if found else ""

        self.check(lambda name: not reads_other_blocks(name), wrong)

    def test_registers_are_those_of_the_results(self):
        """What docs/kernels.md tells; scripts/kernels-page.sh --registers reads them anew."""
        recorded = {}
        for line in REGISTERS.read_text().splitlines():
            name, architecture, registers, shared = line.split()
            recorded[name, int(architecture)] = (int(registers), int(shared))
        found = {
            (row["name"], 90): usage[90]
            for row in ROWS
            if 90 in (usage := largest_usage(row))
        }
        if not found:
            self.skipTest("no code for sm_90")
        self.assertEqual(recorded, found)

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

    def test_hopper_rows_copy_by_tma_and_multiply_by_wgmma(self):
        """TMA to shared memory and back, to other blocks too where those share a tile."""

        def wrong(row, function):
            if function.architecture != 90:
                return ""
            fp8 = re.search("e4m3|e5m2", row["name"])
            integers = row["name"].startswith("hopper_s8_")
            product = "IGMMA" if integers else "QGMMA" if fp8 else "HGMMA"
            wanted = [product, r"UTMALDG", r"UTMASTG"]
            if not re.search("tf32|f32x3", row["name"]):  # D has no 16-bit elements
                wanted.append(r"STSM")
            for one in wanted:
                if not function.opcodes(one):
                    return f"no {one}"
            products = function.opcodes(r"[HQI]GMMA")
            if integers and not all(re.match(r"IGMMA\.\d+x\d+x32\.S8\.S8$", o) for o in products):
                return f"{set(products)}"
            types = {"_f16_": "F32", "bf16": "F32.BF16", "f16acc16": "F16", "tf32": "F32.TF32",
                     "f32x3": "F32.TF32"}
            for name, type_ in types.items():
                if name in row["name"] and not all(f".{type_}" in o for o in products):
                    return f"{set(products)}"
            # They split A on its way to the tensor cores.
            splits = "f32x3" in row["name"]
            if splits != bool(function.opcodes("LDSM")):
                return f"{'no ' if splits else ''}LDSM"
            if found := function.opcodes(r"LDGSTS|[HI]MMA"):
                return f"{set(found)}"
            shares = bool(re.search(r"_[mn]\d", row["name"]))
            multicasts = [o for o in function.opcodes("UTMALDG") if "MULTICAST" in o]
            if shares != bool(multicasts):
                return f"{len(multicasts)} copies to other blocks"
            return ""

        self.check(is_hopper, wrong)

    def test_hopper_rows_have_a_kernel_for_each_layout(self):
        """Instructions that read op(A) or op(B) as stored across k are marked so."""
        for row in filter(lambda row: is_hopper(row["name"]), ROWS):
            functions = [f for f in row["functions"] if f.architecture == 90]
            layouts = set()
            for function in functions:
                operands = [o for opcode, o in function.instructions if "GMMA" in opcode]
                layouts.add(("tnspA" in operands[0], "tnspB" in operands[0]))
            wanted = layouts_read(row["name"]) if functions else 0
            with self.subTest(row["name"]):
                self.assertEqual(len(layouts), wanted)

    def test_hopper_rows_have_no_memory_barrier_between_products(self):
        """One in each turn of the loop made rows whose blocks share a tile half as fast."""

        def wrong(_, function):
            names = [opcode for opcode, _ in function.instructions]
            products = [i for i, name in enumerate(names) if "GMMA" in name]
            if not products:
                return "" if function.architecture != 90 else "no products"
            between = names[products[0] : products[-1]]
            found = [name for name in between if re.match(r"MEMBAR.*GPU", name)]
            return f"{len(found)}" if found else ""

        self.check(is_hopper, wrong)

    def test_hopper_rows_load_nothing_as_constant(self):
        """The kernel before may still write what they read."""

        def wrong(_, function):
            found = function.opcodes(r"LDG.*CONSTANT")
            return f"{set(found)}" if found else ""

        self.check(lambda name: is_hopper(name) or is_hopper_f32(name), wrong)

    def test_hopper_f32_rows_copy_by_tma_and_multiply_by_ffma(self):
        """The loop reads shared memory in vectors, and has little beside its products."""

        def wrong(row, function):
            if function.architecture != 90:
                return ""
            if not function.opcodes("UTMALDG"):
                return "no UTMALDG"
            if found := function.opcodes(r"LDGSTS|\w*MMA|UTMASTG"):
                return f"{set(found)}"
            names = [opcode for opcode, _ in function.instructions]
            loads = [i for i, name in enumerate(names) if name == "LDS.128"]
            others = [name for name in names if re.match(r"LDS(?!\.128)", name)]
            # A block that shares tiles reads its index.
            if others != ["LDS"] * ("_streamk" in row["name"]):
                return f"{others}"
            loop = names[loads[0] : loads[-1]]
            share = sum(name == "FFMA" for name in loop) / len(loop)
            least = {"t4x4": 0.75, "t4x8": 0.84}.get(re.search(r"t\dx\d+", row["name"])[0], 0.9)
            return "" if share >= least else f"FFMA is {share:.3f} of the loop"

        self.check(is_hopper_f32, wrong)

    def test_hopper_f32_rows_have_a_kernel_for_each_layout(self):
        for row in filter(lambda row: is_hopper_f32(row["name"]), ROWS):
            with self.subTest(row["name"]):
                functions = [f for f in row["functions"] if f.architecture == 90]
                wanted = layouts_read(row["name"]) if functions else 0
                self.assertEqual(len(functions), wanted)

    def test_vector_rows_load_vectors(self):
        """All loads of the operands: those up to the last barrier. Behind it is the epilogue."""

        def wrong(row, function):
            bits = 64 if "f16x4" in row["name"] else 128
            names = [opcode for opcode, _ in function.instructions]
            if not any(is_multiplication(*instruction) for instruction in function.instructions):
                return "no multiplication"
            barriers = [i for i, opcode in enumerate(names) if opcode.startswith("BAR.SYNC")]
            copies = "LDGSTS" if is_async(row["name"]) else r"LDG\b"
            loads = [o for o in names[: barriers[-1]] if re.match(copies, o)]
            vectors = [o for o in loads if re.search(rf"\b{bits}\b", o)]
            others = set(loads) - set(vectors)
            # cp.async copies A, which these rows transpose, by elements: B's vectors are left.
            if is_async(row["name"]) and row["name"].startswith("sgemm_"):
                others = set()
            if others or len(vectors) < 2:
                return f"{len(vectors)} loads of {bits} bits, and {others or 'no others'}"
            return ""

        self.check(lambda name: re.search(r"f32x4|f16x[48]", name), wrong)

    def test_pipelines_wait_as_their_stages_say(self):
        """Copies of all stages but two may be under way when a k-tile has to be there."""

        def wrong(row, function):
            waits = [
                int(operands.split(",")[1], 16)
                for opcode, operands in function.instructions
                if opcode.startswith("DEPBAR") and operands.startswith("SB0")
            ]
            named = re.search(r"_stage(\d)|_s(\d)_w", row["name"])
            stages = int(named[1] or named[2])
            if stages != row["stages"]:
                return f"the catalogue says {row['stages']}"
            return "" if waits and min(waits) == stages - 2 else f"waits for all but {set(waits)}"

        self.check(lambda name: re.search(r"_stage\d|_s\d_w", name), wrong)

    def test_k_tiles_are_as_deep_as_catalogued(self):
        """A thread's copies of a k-tile, of 16 bytes each, in the way of whole tiles."""

        def wrong(row, function):
            wanted = (row["tile_m"] + row["tile_n"]) * row["tile_k"] * row["element_bytes"]
            wanted //= 16 * row["threads"]
            copies, branched = 0, False
            for opcode, _ in function.instructions:
                if opcode.startswith("LDGSTS"):
                    copies = 1 if branched else copies + 1
                    branched = False
                elif opcode.startswith("LDGDEPBAR"):
                    break
                elif opcode.startswith("BRA"):
                    branched = True
            return "" if copies == wanted else f"{copies} copies, not {wanted}"

        self.check(lambda name: "mma_" in name and is_async(name), wrong)

    def test_static_shared_memory_is_as_catalogued(self):
        def wrong(row, function):
            if function.architecture != 90:
                return ""
            found = function.usage["SHARED"] - SYSTEM_SHARED_BYTES
            return "" if found == row["shared_bytes"] else f"{found}, not {row['shared_bytes']}"

        self.check(lambda name: re.search(r"mma_", name) and "_dsmem" not in name, wrong)

    def test_tn_rows_read_fragments_of_b_as_they_lie(self):
        """B stored n x k needs no transposing ldmatrix, B stored k x n does."""

        def wrong(row, function):
            transposing = function.opcodes(r"LDSM\.16\.MT")
            if "_tn" in row["name"]:
                return f"{len(transposing)} of {set(transposing)}" if transposing else ""
            return "" if transposing else "no LDSM.16.MT"

        self.check(lambda name: name.startswith("hgemm_mma_"), wrong)

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
