"""Linear layers of torch whose weights lie on the server.

Importing this module imports torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .client import Client
from .errors import InvalidArgument, InvalidType


class Linear(torch.nn.Module):  # type: ignore[misc]
    """y = x Wᵀ + bias on the server, with W there.

    Takes inputs of any number of dimensions, as torch.nn.Linear does. It has no parameters:
    it does not learn, and refuses inputs that require a gradient.
    """

    def __init__(self, client: Client, weight: Any, bias: Any = None, **options: Any) -> None:
        """weight: out_features x in_features. options: those of `Client.matmul`, for each call."""
        super().__init__()
        if weight.ndim != 2:
            raise InvalidArgument(
                f"weight has shape {tuple(weight.shape)}; it must have two dimensions"
            )
        self.out_features, self.in_features = weight.shape
        self._client = client
        self._options = options
        self._weight = client.put(weight.detach())
        self._bias = None if bias is None else client.put(bias.detach().reshape(1, -1))

    @classmethod
    def of(cls, client: Client, layer: torch.nn.Linear, **options: Any) -> Linear:
        """The same layer on the server."""
        return cls(client, layer.weight, layer.bias, **options)

    def forward(self, x: Any) -> Any:
        if torch.is_grad_enabled() and x.requires_grad:
            raise InvalidArgument(
                "the input of gemmd.nn.Linear requires a gradient, and none flows through the "
                "server: use torch.no_grad() or torch.inference_mode()"
            )
        if x.shape[-1] != self.in_features:
            raise InvalidArgument(
                f"the input has shape {tuple(x.shape)}; its last dimension must be "
                f"{self.in_features}"
            )
        rows = x.reshape(-1, self.in_features)
        if not len(rows):
            return x.new_empty((*x.shape[:-1], self.out_features))
        y = self._client.matmul(rows, self._weight.T, bias=self._bias, **self._options)
        return y.reshape(*x.shape[:-1], self.out_features)

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
    changed in place and put back at the end of the block.
    """
    if not isinstance(model, torch.nn.Module):
        raise InvalidType(f"model is a {type(model).__name__}; it must be a torch.nn.Module")
    swapped: list[tuple[str, torch.nn.Linear, Linear]] = []
    try:
        for name, layer in _chosen(model, modules):
            remote = Linear.of(client, layer, **options)
            remote.train(layer.training)
            swapped.append((name, layer, remote))
            _replace(model, name, remote)
        yield model
    finally:
        for name, layer, _ in swapped:
            _replace(model, name, layer)
        for _, _, remote in swapped:
            remote.free()
