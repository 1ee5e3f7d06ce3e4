"""torch tensors and the server. Skipped where torch is not installed."""

import weakref

import gemmd
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("turned", [False, True])
def test_tensors_of_any_order(g, dtype, turned):
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(30, 20, generator=generator).to(getattr(torch, dtype))
    b = torch.randn(10, 20, generator=generator).to(getattr(torch, dtype))
    left = a[::2].t().contiguous().t() if turned else a[::2]
    c = g.matmul(left, b.t())
    assert isinstance(c, torch.Tensor) and c.dtype == a.dtype and g.last_report.kernel
    exact = a[::2].double() @ b.t().double()
    torch.testing.assert_close(c.double(), exact, rtol=1e-2, atol=0.1)
    out = torch.empty(10, 15, dtype=a.dtype).t()
    assert g.matmul(left, b.t(), out=out) is out
    torch.testing.assert_close(out, c, rtol=1e-2, atol=1e-2)


def test_handles_and_tensors(g):
    x, w = torch.randn(4, 6), torch.randn(6, 5)
    with g.put(w) as handle:
        for product in (x @ handle, g.matmul(x, handle), torch.matmul(x, handle)):
            assert isinstance(product, torch.Tensor)
            torch.testing.assert_close(product, x @ w)
        torch.testing.assert_close(handle @ torch.ones(5, 2), w @ torch.ones(5, 2))
        assert torch.equal(handle.torch(), w)
        assert torch.equal(handle.T.torch(), w.t())
        assert torch.equal(torch.as_tensor(handle.T), w.t())


def test_gradients_are_refused(g):
    x = torch.randn(3, 3, requires_grad=True)
    with pytest.raises(gemmd.InvalidArgument, match="gradient"):
        g.matmul(x, x)
    with torch.no_grad():
        torch.testing.assert_close(g.matmul(x, x), x @ x)


def test_no_tangent_is_lost_in_silence(g):
    x, w, out = torch.randn(3, 3), torch.randn(3, 3), torch.zeros(3, 3)
    with g.put(w) as handle, torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3, 3))
        for field, call in (
            ("a", lambda: g.matmul(dual, w)), ("a", lambda: dual @ handle),
            ("b", lambda: handle @ dual), ("bias", lambda: g.matmul(x, w, bias=dual[0])),
            ("matrix", lambda: g.put(dual)), ("out", lambda: g.matmul(x, w, out=dual)),
        ):  # fmt: skip
            for way in (torch.enable_grad(), torch.no_grad()):  # forward mode minds neither
                with way, pytest.raises(gemmd.InvalidArgument, match="tangent") as caught:
                    call()
                assert caught.value.field == field
        primal = torch.autograd.forward_ad.unpack_dual(dual).primal
        for allowed in (primal, dual.detach()):
            torch.testing.assert_close(g.matmul(allowed, w), x @ w)
        with torch.inference_mode():
            g.matmul(dual, w, out=out)
    torch.testing.assert_close(out, x @ w)


def test_tensors_of_torch_func_are_named(g):
    x, w = torch.randn(2, 3, 3), torch.randn(3, 3)
    with pytest.raises(gemmd.InvalidType, match=r"^a has no elements .* torch\.func\.jvp"):
        torch.func.vmap(lambda a: g.matmul(a, w))(x)


def test_a_handle_becomes_a_tensor(g):
    w = torch.randn(4, 6).bfloat16()
    with g.put(w) as handle:
        for made in (torch.as_tensor, torch.tensor, torch.asarray, torch.from_dlpack):
            assert torch.equal(made(handle), w)


def test_products_are_plain_tensors(g):
    x = torch.randn(3, 3)
    for product in (
        g.matmul(x, x), g.matmul(x, x, out=torch.empty(3, 3)),
        g.matmul(torch.stack([x, x]), x), g.matmul(torch.stack([x, x]), x, out=torch.empty(2, 3, 3)),
    ):  # fmt: skip
        assert type(product) is torch.Tensor and not vars(product)


@pytest.mark.parametrize("shapes", [
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 2)),
    ((0, 3, 4), (4, 2)), ((2, 0, 4), (2, 4, 3)),
])  # fmt: skip
def test_shapes_are_torchs(g, shapes):
    a, b = (torch.randint(-4, 4, shape).float() for shape in shapes)
    want = torch.matmul(a, b)
    got = g.matmul(a, b)
    assert got.shape == want.shape and torch.equal(got, want)
    out = torch.empty_like(want)
    assert g.matmul(a, b, out=out, bias=torch.ones(())) is out and torch.equal(out, want + 1)


def test_types_of_tensors_that_differ_are_refused(g):
    x = torch.randn(3, 3)
    for other in (x.double(), x.half(), x.to(torch.int64)):
        with pytest.raises(gemmd.InvalidType, match=r"\.to\("):
            g.matmul(x, other)


def test_a_tensor_is_garbage_as_soon_as_it_is_dropped(g):
    x = torch.randn(3, 3)
    product = weakref.ref(g.matmul(x, x))
    assert product() is None


def test_tensors_without_elements_are_refused(g):
    x, out = torch.randn(3, 3), torch.zeros(3, 3)
    meta, wide = torch.empty(3, 3, device="meta"), torch.zeros(1, 3).expand(3, 3)
    nested = torch.nested.nested_tensor([x, x])
    for kind, field, words, call in (
        (gemmd.InvalidType, "a", "device meta", lambda: g.matmul(meta, x)),
        (gemmd.InvalidType, "bias", "device meta", lambda: g.matmul(x, x, bias=meta[0])),
        (gemmd.InvalidType, "matrix", "device meta", lambda: g.put(meta)),
        (gemmd.InvalidType, "out", "device meta", lambda: g.matmul(x, x, out=meta)),
        (gemmd.InvalidType, "a", "nested", lambda: g.matmul(nested, x)),
        (gemmd.InvalidType, "b", "nested", lambda: g.grouped_matmul(x, nested, [1, 2])),
        (gemmd.InvalidType, "a", "layout torch.sparse", lambda: g.matmul(x.to_sparse(), x)),
        (gemmd.InvalidType, "out", "layout torch.sparse",
         lambda: g.matmul(x, x, out=out.to_sparse())),
        (gemmd.InvalidArgument, "out", "strides (0, 1)", lambda: g.matmul(x, x, out=wide)),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.field == field and words in str(caught.value)
    turned = torch._neg_view(out)
    torch.testing.assert_close(g.matmul(x, x, out=turned), x @ x)
    torch.testing.assert_close(out, -(x @ x))
