#!/usr/bin/env python3
"""The oracle accepts what is right and refuses what is a little wrong."""

import random
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no module numpy")
    sys.exit(77)

import cases
import oracle
from elements import from_wire, generate, round_to, to_double, to_wire


def operands_of(p):
    drawn = cases.draw(p)
    a, b = drawn["a"][0], drawn["b"][0]
    return (a.T if p["trans_a"] else a, b.T if p["trans_b"] else b,
            drawn["c"][0] if "c" in drawn else None, drawn["bias"][0] if "bias" in drawn else None)


class OracleTest(unittest.TestCase):
    backend = oracle.Backend("numpy")

    def ratio(self, p, inputs, got):
        return oracle.worst_ratio(self.backend, got,
                                  *oracle.expected(self.backend, p, *inputs))[0]

    def problems(self, **fields):
        rng = random.Random(5)
        for combination in cases.COMBINATIONS:
            p = cases.record(40, 30, 70, combination, rng.getrandbits(32))
            p.update(fields)
            yield cases.fitted(p)

    def test_exact_value_rounded_once_is_right(self):
        for p in self.problems(alpha=-1.25, beta=0.75, bias=True, activation="gelu"):
            inputs = operands_of(p)
            value = oracle.expected(self.backend, p, *inputs)[0]
            got = to_double(round_to(value, p["d_type"]), p["d_type"])
            self.assertLessEqual(self.ratio(p, inputs, got), 1, cases.describe(p))

    def test_a_product_short_of_its_last_term_is_wrong(self):
        for p in self.problems():
            a, b, c, bias = inputs = operands_of(p)
            cut = oracle.expected(self.backend, p, a[:, :-1], b[:-1], c, bias)[0]
            self.assertGreater(self.ratio(p, inputs, cut), 1, cases.describe(p))

    def test_a_missing_element_is_wrong(self):
        for p in self.problems():
            inputs = operands_of(p)
            # The bound of f16 accumulation is wide; exact integers serve it instead.
            for poison in (np.nan, np.inf) if p["compute"] == "f16" else (np.nan, np.inf, 0.0):
                got = np.array(oracle.expected(self.backend, p, *inputs)[0])
                got[-1, -1] = poison
                self.assertGreater(self.ratio(p, inputs, got), 1, cases.describe(p))

    def test_a_factor_of_zero_leaves_its_term_out(self):
        for combination in cases.COMBINATIONS:
            for tiny in (0.0, 1e-60):
                if tiny and combination[3] == "f64":
                    continue
                p = cases.record(5, 6, 7, combination, 3, special="factors", exact=True,
                                 alpha=tiny, beta=1.0)
                inputs = operands_of(p)
                c = to_double(inputs[2], p["d_type"])
                self.assertLessEqual(self.ratio(p, inputs, c), 1, cases.describe(p))
                self.assertTrue((oracle.exact(p, *inputs) == c).all())
                p.update(special="c", exact=True, alpha=1.0, beta=tiny or 1e-60)
                if combination[3] == "f64":
                    continue
                value = oracle.expected(self.backend, p, *operands_of(p))[0]
                self.assertTrue(np.isfinite(value).all(), cases.describe(p))

    def test_nan_and_infinities_are_right_only_where_they_belong(self):
        p = cases.record(5, 6, 7, ("f32", "f32", "f32", "f32"), 3, special="elements", exact=True)
        inputs = operands_of(p)
        value = oracle.expected(self.backend, p, *inputs)[0]
        self.assertTrue(np.isnan(value[0]).all())
        self.assertLessEqual(self.ratio(p, inputs, value), 1)
        for replaced in (0.0, np.inf, -np.inf):
            wrong = value.copy()
            wrong[0, 0] = replaced
            self.assertGreater(self.ratio(p, inputs, wrong), 1)
        wrong = value.copy()
        wrong[1, 1] = np.nan
        self.assertGreater(self.ratio(p, inputs, wrong), 1)

    def test_integers_wrap_and_have_no_tolerance(self):
        p = cases.record(2, 3, 131072, ("s8", "s8", "s32", "s32"), 3, beta=1.0)
        a, b, c, _ = operands_of(p)
        a[:], b[:], c[:] = -128, -128, -1  # 2^31 - 1
        value, tolerance = oracle.expected(self.backend, p, a, b, c, None)
        self.assertTrue((value == 2**31 - 1).all() and (tolerance == 0).all())
        self.assertEqual(self.ratio(p, (a, b, c, None), value), 0)
        self.assertEqual(self.ratio(p, (a, b, c, None), value - 1), np.inf)

    def test_activations_of_minus_infinity_and_nan(self):
        x = np.array([-np.inf, np.nan, np.inf])
        for activation, slope, wanted in (("relu", 0.01, 0), ("leaky_relu", 0.0, 0),
                                          ("leaky_relu", 0.5, -np.inf), ("gelu", 0.01, 0)):
            got = oracle.activate(self.backend, x, activation, slope)[0]
            self.assertEqual([got[0], got[2]], [wanted, np.inf], activation)
            self.assertTrue(np.isnan(got[1]), activation)

    def test_tanh_gelu_is_wrong_in_f32(self):
        p = cases.record(60, 60, 4, ("f32", "f32", "f32", "f32"), 3, activation="gelu")
        inputs = operands_of(p)
        x = to_double(inputs[0], "f32") @ to_double(inputs[1], "f32")
        approximate = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        self.assertGreater(self.ratio(p, inputs, approximate), 1)

    def test_f32_arithmetic_is_too_coarse_for_f64_and_tf32_for_f32(self):
        p = cases.record(20, 20, 20, ("f64", "f64", "f64", "f64"), 3)
        inputs = operands_of(p)
        single = inputs[0].astype(np.float32) @ inputs[1].astype(np.float32)
        self.assertGreater(self.ratio(p, inputs, single.astype(np.float64)), 1)
        p = cases.record(20, 20, 20, ("f32", "f32", "f32", "f32"), 3)
        a, b, c, bias = inputs = operands_of(p)
        cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
               for x in (np.ascontiguousarray(a), np.ascontiguousarray(b))]
        self.assertGreater(self.ratio(p, inputs, cut[0] @ cut[1]), 1)
        p["compute"] = "tf32"
        self.assertLessEqual(self.ratio(p, inputs, (cut[0] @ cut[1]).astype(np.float32)), 1)


class ElementsTest(unittest.TestCase):

    def test_bf16_rounds_to_nearest_even(self):
        bits = [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x8000]
        values = [1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, 3.4e38, -0.0]
        self.assertEqual(round_to(values, "bf16").tolist(), bits)

    def test_fp8_rounds_to_nearest_even(self):
        values = [1.0, 1 + 2.0**-4, 1 + 3 * 2.0**-4, -448.0, 2.0**-9, 2.0**-10, -0.0]
        bits = [0x38, 0x38, 0x3A, 0xFE, 0x01, 0x00, 0x80]
        self.assertEqual(round_to(values, "e4m3").tolist(), bits)
        values = [1.0, 1 + 2.0**-3, 1 + 3 * 2.0**-3, 57344.0, 2.0**-16]
        self.assertEqual(round_to(values, "e5m2").tolist(), [0x3C, 0x3C, 0x3E, 0x7B, 0x01])

    def test_fp8_codes_round_to_themselves(self):
        for dtype, finite in (("e4m3", 0x7F), ("e5m2", 0x7C)):
            codes = np.concatenate([np.arange(finite), 128 + np.arange(finite)]).astype(np.uint8)
            back = round_to(to_double(codes, dtype), dtype)
            self.assertEqual(back.tolist(), codes.tolist())

    def test_wire_round_trip(self):
        elements = round_to(np.arange(6).reshape(2, 3), "f16")
        for layout in ("row", "col"):
            back = from_wire(to_wire(elements, layout), 2, 3, "f16", layout)
            self.assertTrue((back == elements).all())
        with self.assertRaises(ValueError):
            from_wire(b"\0" * 10, 2, 3, "f16", "row")

    def test_splitmix64_gives_its_published_sequence(self):
        # The first outputs of the reference implementation for the seed 1234567.
        published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        want = [(x >> 11) * 2.0**-53 for x in published]
        got = generate(1, 3, "f64", 1234567, "uniform", 0.0, 1.0)
        self.assertEqual(got.tolist()[0], [float(np.float32(w)) for w in want])


if __name__ == "__main__":
    unittest.main()
