"""torch tensors and linear layers on the server. Skipped where torch is not installed."""

import gemmd
import pytest

torch = pytest.importorskip("torch")

import gemmd.nn  # noqa: E402


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("turned", [False, True])
def test_tensors_of_any_order(g, dtype, turned):
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(30, 20, generator=generator).to(getattr(torch, dtype))
    b = torch.randn(10, 20, generator=generator).to(getattr(torch, dtype))
    left = a[::2].t().contiguous().t() if turned else a[::2]
    c = g.matmul(left, b.t())
    assert isinstance(c, torch.Tensor) and c.dtype == a.dtype and c.report.kernel
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


def test_gradients_are_refused(g):
    x = torch.randn(3, 3, requires_grad=True)
    with pytest.raises(gemmd.InvalidArgument, match="gradient"):
        g.matmul(x, x)
    with torch.no_grad():
        torch.testing.assert_close(g.matmul(x, x), x @ x)
    layer = gemmd.nn.Linear.of(g, torch.nn.Linear(3, 2))
    with pytest.raises(gemmd.InvalidArgument, match="gradient"):
        layer(x)
    layer.free()


def test_offload_swaps_and_puts_back(g):
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(16, 4, False))
    )
    x = torch.randn(5, 3, 8)
    with torch.no_grad():
        expected = model(x)
        with gemmd.offload(g, model) as remote:
            assert isinstance(remote[0], gemmd.nn.Linear)
            torch.testing.assert_close(remote(x), expected, rtol=1e-4, atol=1e-5)
            assert len(g.matrices()) == 3
        with gemmd.offload(g, model, ["2.0"]):
            assert isinstance(model[0], torch.nn.Linear)
            torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(gemmd.InvalidArgument, match="no linear layer"):
            with gemmd.offload(g, model, ["2"]):
                pass
        assert torch.equal(model(x), expected)
    assert len(g.matrices()) == 0
