"""Random products on a server's GPU, against torch in float64 on the same GPU."""

import time

import gemmd
import torch

import cases
import oracle

NUMPY = ("float64", "float32", "float16")


def _laid_out(values, order):
    """A tensor with the same elements, in memory of this order."""
    if order == "F":
        return values.t().contiguous().t()
    if order in ("strided", "transposed-strided", "padded"):
        rows, cols = values.shape
        memory = values.new_zeros(rows * 2, cols * 3)
        memory[::2, : cols * 2 : 2] = values
        return memory[::2, : cols * 2 : 2]
    return values[:1].expand(values.shape) if order == "broadcast" else values.contiguous()


class Matrices:
    """numpy arrays or torch tensors, on the host or on torch's GPU."""

    def __init__(self, source, kind):
        self._source = source
        self._kind = kind

    def __call__(self, rows, cols, dtype, flat=False):
        source = self._source
        values, order = cases.normal(source, rows, cols), source.pick(cases.ORDERS)
        if self._kind == "numpy":
            matrix = cases.laid_out(values.astype(dtype), order)
            return matrix[0] if flat else matrix, matrix.astype(float)
        tensor = torch.from_numpy(values).to(getattr(torch, dtype))
        exact = tensor.double().numpy()
        if order == "broadcast":
            exact = exact[:1].repeat(rows, axis=0)
        # Not every version of torch moves 8-bit floats about, but their bits.
        bits = torch.uint8 if tensor.element_size() == 1 else tensor.dtype
        tensor = _laid_out(tensor.view(bits), order).view(tensor.dtype).to(self._kind)
        return tensor[0] if flat else tensor, exact


def _multiply(a, b):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    left, right = (torch.from_numpy(x.copy()).to(device) for x in (a, b))
    return (left @ right).cpu().numpy()


def _lost(dtype, k):
    """What tensor cores of sm_90 lose of products of fp8: see kernels/reference/error_bound.cc."""
    return (min(k, 128) + 4) * 2.0**-13 if dtype.itemsize == 1 else 0.0


def _run(client, way, a, b, options):
    if way == "handles":
        with client.put(a) as left, client.put(b) as right:
            with client.keep(left, right, **options) as kept:
                return kept.torch()
    if way == "pipeline":
        with client.pipeline(4) as p:
            return p.matmul(a, b, **options).result()
    return client.matmul(a, b, **options)


def check(address, count, seed):
    """How many of `count` products were wrong, and the seconds; the first five are printed."""
    wrong = 0
    kinds = ["numpy", "cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    small = {"chunk_bytes": 4096, "unary_bytes": 2048, "stripe_bytes": 12288, "channels": 3}
    begun = time.monotonic()
    with gemmd.connect(address) as plain, gemmd.connect(address, **small) as split:
        for number in range(seed, seed + count):
            source = cases.Seeded(number)
            kind = source.pick(kinds)
            types = [t for t in cases.OUTPUTS if kind != "numpy" or t in NUMPY]
            a, b, sizes, options, expected = cases.product(source, types, Matrices(source, kind))
            way = source.pick(["plain", "split", "handles", "pipeline"])
            options["dtype"] = expected["output"]
            try:
                got = _run(plain if way == "plain" else split, way, a, b, options)
                got = got.double().cpu().numpy() if isinstance(got, torch.Tensor) else got
                lost = _lost(a.dtype, sizes[2])
                oracle.check(got, *oracle.expect(**expected, lost=lost, multiply=_multiply))
            except (AssertionError, gemmd.GemmdError) as error:
                wrong += 1
                if wrong <= 5:
                    print(f"case {number}, {sizes}, {kind}, {way}, {options}: {error}")
    return wrong, time.monotonic() - begun
