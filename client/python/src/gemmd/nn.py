"""Linear layers of torch whose weights lie on the server.

Importing this module imports torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import checks, dtypes, operands, product
from .client import Client
from .errors import InvalidArgument, InvalidType

# The options of `Client.matmul`, less those that the layer gives itself.
_OPTION_NAMES = sorted(
    {*product.OPTION_NAMES, "timeout", "cancel"} - {"out", "bias", "transpose_a", "transpose_b", "return_report"}
)
# The types that autocast casts.
_CAST = ("f32", "f16", "bf16")


class Linear(torch.nn.Module):  # type: ignore[misc]
    """y = x Wᵀ + bias on the server, with W there.

    Takes inputs of any number of dimensions, as torch.nn.Linear does. It has no parameters, and
    no gradient flows through it: where torch records gradients, it refuses inputs that require
    one, and so it does where the weight or the bias did when it was made. Inputs with a tangent
    of torch's forward mode are refused, too. It casts nothing: within torch.autocast, input and
    weight must have the type that autocast would give them.
    """

    def __init__(self, client: Client, weight: Any, bias: Any = None, **options: Any) -> None:
        """weight: out_features x in_features. options: those of `Client.matmul`, for each call."""
        super().__init__()
        checks.instance(client, "client", Client, "a gemmd.Client")
        checks.keywords(options, _OPTION_NAMES, "gemmd.nn.Linear")
        for name, value in (("weight", weight), ("bias", bias)):
            if not isinstance(value, torch.Tensor) and (name == "weight" or value is not None):
                raise InvalidType(
                    f"{name} is a {type(value).__name__}; it must be a torch.Tensor. A layer of "
                    "torch is put on the server by gemmd.nn.Linear.of(client, layer)",
                    field=name,
                )
            if value is not None:
                operands.check_no_tangent(value, name)
        if weight.ndim != 2:
            raise InvalidArgument(
                f"weight has shape {tuple(weight.shape)}; it must have two dimensions"
            )
        self.out_features, self.in_features = weight.shape
        self._client = client
        self._options = options
        self._weight = client.put(weight.detach())
        self._bias = None if bias is None else client.put(bias.detach().reshape(1, -1))
        self._given = {
            "weight": weight.requires_grad,
            "bias": bias is not None and bias.requires_grad,
        }

    @classmethod
    def of(cls, client: Client, layer: torch.nn.Linear, **options: Any) -> Linear:
        """The same layer on the server."""
        checks.instance(layer, "layer", torch.nn.Linear, "a torch.nn.Linear")
        return cls(client, layer.weight, layer.bias, **options)

    def _learning(self) -> list[str]:
        """The parameters that require a gradient."""
        return [name for name, required in self._given.items() if required]

    def _check_tangents(self, x: Any) -> None:
        operands.check_no_tangent(x, "input", "the input of gemmd.nn.Linear")

    def forward(self, x: Any) -> Any:
        if torch.is_grad_enabled():
            learning = ["input"] if x.requires_grad else self._learning()
            if learning:
                raise InvalidArgument(
                    f"the {learning[0]} of gemmd.nn.Linear requires a gradient, and none flows "
                    "through the server: use torch.no_grad() or torch.inference_mode(), or "
                    "requires_grad_(False)"
                )
        self._check_tangents(x)
        if x.shape[-1] != self.in_features:
            raise InvalidArgument(
                f"the input has shape {tuple(x.shape)}; its last dimension must be "
                f"{self.in_features}"
            )
        self._check_type(x)
        rows = x.reshape(-1, self.in_features)
        if not len(rows):
            return x.new_empty((*x.shape[:-1], self.out_features))
        y = self._client.matmul(rows, self._weight.T, bias=self._bias, **self._options)
        return y.reshape(*x.shape[:-1], self.out_features)

    def _check_type(self, x: Any) -> None:
        """Only the two fp8 types are multiplied with one another."""
        weight = self._weight.dtype
        given = dtypes.short_name(dtypes.of_torch(x.dtype, "the input"))
        kind = x.device.type
        if torch.is_autocast_enabled(kind) and given in _CAST:
            cast = dtypes.short_name(dtypes.of_torch(torch.get_autocast_dtype(kind), "autocast"))
            if {given, weight} != {cast}:
                raise InvalidType(
                    f"the input has dtype {given} and the weight has {weight}, which torch.autocast "
                    f"would cast to {cast}; gemmd.nn.Linear casts nothing: give both in {cast}, or "
                    f'leave it by torch.autocast("{kind}", enabled=False)'
                )
        if given != weight and not {given, weight} <= {"e4m3", "e5m2"}:
            raise InvalidType(
                f"the input has dtype {given} and the weight has {weight}; they must be the same"
            )

    def free(self) -> None:
        """Deletes the weights on the server."""
        self._weight.free()
        if self._bias is not None:
            self._bias.free()

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self._bias is not None}, on {self._client._connection.address}"
        )


class _Offloaded(Linear):
    """In the place of a layer, whose parameters it has: what asks the model for them finds them.

    The server has the elements that they had when it was made.
    """

    def __init__(self, client: Client, layer: torch.nn.Linear, **options: Any) -> None:
        super().__init__(client, layer.weight, layer.bias, **options)
        # The layer's own dictionaries: a parameter that is replaced in one is in both.
        self._parameters, self._buffers = layer._parameters, layer._buffers
        self._modules = layer._modules
        self.train(layer.training)

    def _learning(self) -> list[str]:
        return [name for name, value in self.named_parameters() if value.requires_grad]

    def _check_tangents(self, x: Any) -> None:
        super()._check_tangents(x)
        for name, value in self.named_parameters():
            operands.check_no_tangent(value, name, f"the {name} of gemmd.nn.Linear")

    def _load_from_state_dict(self, state: Any, prefix: str, *arguments: Any) -> None:
        raise InvalidArgument(
            f"{prefix.rstrip('.') or 'the layer'} is offloaded, and the server would keep its old "
            "weights: load them before gemmd.offload"
        )


def _chosen(
    model: torch.nn.Module, modules: Callable[[str, torch.nn.Linear], bool] | list[str] | None
) -> list[tuple[str, torch.nn.Linear]]:
    linear = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    if modules is None:
        return list(linear.items())
    if callable(modules):
        return [(name, layer) for name, layer in linear.items() if modules(name, layer)]
    for name in modules:
        if name not in linear:
            raise InvalidArgument(
                f"modules has {name!r}, which is no linear layer of the model; "
                f"those are: {', '.join(linear) or 'none'}"
            )
    return [(name, linear[name]) for name in modules]


def _replace(model: torch.nn.Module, name: str, layer: torch.nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)


@contextlib.contextmanager
def offload(
    client: Client,
    model: torch.nn.Module,
    modules: Callable[[str, torch.nn.Linear], bool] | list[str] | None = None,
    **options: Any,
) -> Iterator[torch.nn.Module]:
    """Within the block, linear layers of the model run on the server.

    modules: their names, or a function of name and layer; left out: all of them. The model is
    changed in place and put back at the end of the block. Within it, the layers have their
    parameters, as for `state_dict()`, and compute with what these were at its begin.

    No gradient flows through the server: see `Linear`. Models whose parameters require one run
    within torch.no_grad() or torch.inference_mode().
    """
    checks.instance(client, "client", Client, "a gemmd.Client")
    if not isinstance(model, torch.nn.Module):
        raise InvalidType(f"model is a {type(model).__name__}; it must be a torch.nn.Module")
    if isinstance(model, torch.nn.Linear):
        raise InvalidArgument(
            "model is a linear layer itself, and has none to swap: use gemmd.nn.Linear.of"
        )
    swapped: list[tuple[str, torch.nn.Linear, _Offloaded]] = []
    try:
        for name, layer in _chosen(model, modules):
            remote = _Offloaded(client, layer, **options)
            swapped.append((name, layer, remote))
            _replace(model, name, remote)
        yield model
    finally:
        for name, layer, _ in swapped:
            _replace(model, name, layer)
        for _, _, remote in swapped:
            remote.free()
