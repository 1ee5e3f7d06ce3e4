#!/usr/bin/env python3
"""A sentence transformer with its linear layers on the server, beside the model's own.

    sentence_transformer.py [HOST:PORT] [--type f32|f16|both] [--load FILE] [--json FILE]

minilm.py gets the weights and 1,000 sentences; with --load they are read from a file of its own.
Every embedding must be the model's own in f32: cosine 0.9999 with f32 products, 0.999 with
f16. The exit status is 1 where one is not.
"""

import argparse
import json
import pathlib
import time

import gemmd
import numpy as np
import torch
from gemmd import nn as remote

import minilm

BATCH = 50
HEADS = 12
LEAST_COSINE = {"f32": 0.9999, "f16": 0.999}


class Layer(torch.nn.Module):
    """One layer of BERT: attention, then the feed-forward network."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        for name in ("query", "key", "value", "attended"):
            setattr(self, name, torch.nn.Linear(hidden, hidden))
        self.inner = torch.nn.Linear(hidden, inner)
        self.outer = torch.nn.Linear(inner, hidden)
        self.norm_attended = torch.nn.LayerNorm(hidden, eps=1e-12)
        self.norm_outer = torch.nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x: torch.Tensor, hidden_tokens: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            layer(x).view(batch, tokens, HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(2, 3) / (width // HEADS) ** 0.5
        weights = (scores + hidden_tokens).softmax(-1)
        attended = (weights @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.norm_attended(self.attended(attended) + x)
        return self.norm_outer(self.outer(torch.nn.functional.gelu(self.inner(x))) + x)


class Transformer(torch.nn.Module):
    """Token numbers to a unit vector for each sentence: the mean over its tokens."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        sizes = {name: weights[f"embeddings.{name}"].shape for name in minilm.EMBEDDINGS}
        self.embeddings = torch.nn.ModuleDict(
            {name: torch.nn.Embedding(*size) for name, size in sizes.items()}
        )
        inner, hidden = weights["layers.0.inner.weight"].shape
        self.norm = torch.nn.LayerNorm(hidden, eps=1e-12)
        count = 1 + max(int(name.split(".")[1]) for name in weights if name[:7] == "layers.")
        self.layers = torch.nn.ModuleList(Layer(hidden, inner) for _ in range(count))
        state = {n: torch.from_numpy(w.astype(np.float32)) for n, w in weights.items()}
        for name in minilm.EMBEDDINGS:
            state[f"embeddings.{name}.weight"] = state.pop(f"embeddings.{name}")
        self.load_state_dict(state)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        of = self.embeddings
        x = of["words"](tokens) + of["places"](places) + of["types"](torch.zeros_like(tokens))
        x = self.norm(x)
        seen = mask.to(x.dtype)
        hidden_tokens = (1 - seen)[:, None, None, :] * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, hidden_tokens)
        mean = (x.float() * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(mean)


def embed(model, tokens: np.ndarray, mask: np.ndarray, device: str) -> tuple[np.ndarray, float]:
    """An embedding a row, and the seconds it took. Batches have the length of their longest."""
    rows = []
    begun = time.monotonic()
    order = np.argsort(mask.sum(1), kind="stable")
    with torch.inference_mode():
        for some in np.array_split(order, max(1, len(order) // BATCH)):
            longest = int(mask[some].sum(1).max())
            ids = torch.from_numpy(tokens[some, :longest].astype(np.int64)).to(device)
            seen = torch.from_numpy(mask[some, :longest].astype(np.float32)).to(device)
            rows.append(model(ids, seen).cpu().numpy())
    back = np.argsort(order, kind="stable")
    return np.concatenate(rows)[back], time.monotonic() - begun


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="?", default="127.0.0.1:50051")
    parser.add_argument("--type", choices=["f32", "f16", "both"], default="both")
    parser.add_argument("--load", metavar="FILE")
    parser.add_argument("--limit", type=int, default=minilm.SENTENCES, help="the first so many sentences")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(argv)
    weights, tokens, mask = minilm.load(args.load) if args.load else minilm.read_package()
    tokens, mask = tokens[: args.limit], mask[: args.limit]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    own, _ = embed(Transformer(weights).eval(), tokens, mask, "cpu")
    found = []
    with gemmd.connect(args.address) as g:
        for kind in ["f32", "f16"] if args.type == "both" else [args.type]:
            dtype = torch.float32 if kind == "f32" else torch.float16
            model = Transformer(weights).eval().to(device, dtype)
            embed(model, tokens[:BATCH], mask[:BATCH], device)  # the libraries' own start
            _, beside = embed(model, tokens, mask, device)
            with gemmd.offload(g, model):
                count = sum(isinstance(m, remote.Linear) for m in model.modules())
                got, seconds = embed(model, tokens, mask, device)
            least = float((got * own).sum(1).min())
            good = least >= LEAST_COSINE[kind]
            found.append({"type": kind, "layers": count, "sentences": len(own), "cosine": least,
                          "seconds": seconds, "torch_seconds": beside, "device": device,
                          "good": good})  # fmt: skip
            print(f"{kind}: {len(own)} sentences, {count} linear layers on the server: "
                  f"least cosine {least:.7f} ({LEAST_COSINE[kind]} is wanted), {seconds:.2f} s; "
                  f"torch on {device} {beside:.2f} s")  # fmt: skip
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row["good"] for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
