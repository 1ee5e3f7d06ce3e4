"""Linear layers of torch on the server. Skipped where torch is not installed."""

import subprocess
import sys

import gemmd
import pytest

torch = pytest.importorskip("torch")

import gemmd.nn  # noqa: E402


@pytest.fixture
def model():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(16, 4, False))
    )


def test_offload_swaps_and_puts_back(g, model):
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


def test_an_input_of_another_type_is_what_the_error_names(g):
    layer = torch.nn.Linear(8, 4)
    with torch.no_grad():
        remote = gemmd.nn.Linear.of(g, layer)
        with pytest.raises(gemmd.InvalidType, match="the input has dtype f16 and the weight has f32"):
            remote(torch.ones(2, 8).half())
        remote.free()


def test_no_gradient_is_lost_in_silence(g, model):
    x = torch.randn(5, 8)
    expected = model(x).detach()
    layer = gemmd.nn.Linear.of(g, torch.nn.Linear(8, 2))
    with pytest.raises(gemmd.InvalidArgument, match="the weight of .* requires a gradient"):
        layer(x)
    with gemmd.offload(g, model):
        with pytest.raises(gemmd.InvalidArgument, match="the weight of .* requires a gradient"):
            model(x)
        for way in (torch.no_grad(), torch.inference_mode()):
            with way:
                torch.testing.assert_close(model(x), expected)
        model[0].weight.requires_grad_(False)
        with pytest.raises(gemmd.InvalidArgument, match="the bias of .* requires a gradient"):
            model(x)
        model.requires_grad_(False)
        torch.testing.assert_close(model(x), expected)
        with pytest.raises(gemmd.InvalidArgument, match="the input of .* requires a gradient"):
            model(x.clone().requires_grad_())
        with torch.no_grad():
            layer(x)
    layer.free()
    assert len(g.matrices()) == 0


def test_no_tangent_is_lost_in_silence(g, model):
    x = torch.randn(5, 8)
    model.requires_grad_(False)
    forward_ad = torch.autograd.forward_ad
    with gemmd.offload(g, model), forward_ad.dual_level():
        with pytest.raises(gemmd.InvalidArgument, match="the input of .* has a tangent"):
            model(forward_ad.make_dual(x, torch.ones_like(x)))
        weight = forward_ad.make_dual(model[0].weight, torch.ones(16, 8))
        with pytest.raises(gemmd.InvalidArgument, match="the weight of .* has a tangent"):
            torch.func.functional_call(model, {"0.weight": weight}, (x,))
        with pytest.raises(gemmd.InvalidArgument, match="weight has a tangent"):
            gemmd.nn.Linear(g, weight)
        model(x)


def test_autocast_is_refused_where_it_would_cast(g, model):
    x = torch.randn(5, 8)
    with torch.no_grad():
        with gemmd.offload(g, model), torch.autocast("cpu", torch.bfloat16):
            for given in (x, x.bfloat16()):
                with pytest.raises(gemmd.InvalidType, match="weight has f32, .*autocast .*bf16;"):
                    model(given)
            with torch.autocast("cpu", enabled=False):
                assert model(x).dtype == torch.float32
        for dtype in (torch.bfloat16, torch.float64):  # which it leaves as they are
            with gemmd.offload(g, model.to(dtype)), torch.autocast("cpu", torch.bfloat16):
                assert model(x.to(dtype)).dtype == dtype


def test_an_offloaded_model_has_its_parameters(g, model):
    own, parameters = model.state_dict(), list(model.parameters())
    with gemmd.offload(g, model):
        state = model.state_dict()
        assert list(state) == list(own) == ["0.weight", "0.bias", "2.0.weight"]
        assert all(torch.equal(state[name], own[name]) for name in own)
        assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
        with pytest.raises(gemmd.InvalidArgument, match="^0 is offloaded"):
            model.load_state_dict(own)
        model.half()
    assert all(parameter.dtype == torch.float16 for parameter in model.parameters())


def test_what_is_no_weight_is_named(g):
    layer = torch.nn.Linear(3, 2)
    for words, call in (
        (r"weight is a Linear; .*gemmd.nn.Linear.of\(", lambda: gemmd.nn.Linear(g, layer)),
        ("bias is a bool", lambda: gemmd.nn.Linear(g, layer.weight, True)),
        ("layer is ReLU", lambda: gemmd.nn.Linear.of(g, torch.nn.ReLU())),
        ("layer is .*, a Client; .* a torch.nn.Linear", lambda: gemmd.nn.Linear.of(layer, g)),
        ("client is .*, a Linear; .* a gemmd.Client", lambda: gemmd.nn.Linear.of(layer, layer)),
        (r"gemmd.nn.Linear\(\) got .* 'kernal'. Did you mean 'kernel'",
         lambda: gemmd.nn.Linear.of(g, layer, kernal="x")),
    ):  # fmt: skip
        with pytest.raises(gemmd.InvalidType, match=words):
            call()
    with pytest.raises(gemmd.InvalidArgument, match=r"linear layer itself.*Linear\.of"):
        with gemmd.offload(g, layer):
            pass
    assert len(g.matrices()) == 0


def test_it_needs_no_import_of_its_own():
    code = "import gemmd; print(gemmd.nn.Linear.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "Linear\n", done.stderr
