"""Calls of `encoder.c`: one text through all-MiniLM-L6-v2 as fast as possible.

Only for the graph that comes with kb, on processors with AVX2; in bfloat16 on those that compute in it. A general
runtime takes twice as long for a query (docs/decisions/011).
"""

import ctypes
import json
import weakref
from collections.abc import Callable
from ctypes import POINTER, Structure, c_bool, c_float, c_int, c_size_t, c_void_p
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import Unavailable
from kb.embedding.model import WEIGHTS, header_of, is_bundled_graph

# sha256 of the header of the weights' file, which has the position of each tensor.
LAYOUT = "2291ac9b8d5083595cd6a1787e01d694a893af92bc706faf1511231affe822e8"
LIBRARIES = Path(__file__).parent
HIDDEN = 384
LAYERS = 6
HIGHEST = np.iinfo(np.int16).max

Precision = Literal["f32", "bf16"]
Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Linear(Structure):
    _fields_ = (("weights", c_void_p), ("scale", POINTER(c_float)), ("bias", POINTER(c_float)))


class Norm(Structure):
    _fields_ = (("weight", POINTER(c_float)), ("bias", POINTER(c_float)))


class Layer(Structure):
    _fields_ = (
        ("projection", Linear),
        ("joining", Linear),
        ("attended", Norm),
        ("widening", Linear),
        ("narrowing", Linear),
        ("done", Norm),
    )


class Weights(Structure):
    _fields_ = (
        ("words", POINTER(c_float)),
        ("positions", POINTER(c_float)),
        ("segment", POINTER(c_float)),
        ("embedded", Norm),
        ("layers", Layer * LAYERS),
    )


def runs_here(precision: Precision) -> bool:
    """Whether the processor has the instructions."""
    return bool(_library(precision).encoder_runs_here())


class Encoder:
    """The model in memory. Unavailable if the model or the machine is not supported.

    For one text at a time, and for one process: a fork does not have its threads.
    """

    def __init__(self, graph: Path, threads: int, precision: Precision) -> None:
        if not is_bundled_graph(graph):
            raise Unavailable(f"{graph} is not the graph that comes with kb, and no other is known here.")
        if not runs_here(precision):
            raise Unavailable(f"This processor lacks the instructions for {precision}.")
        library = _library(precision)
        packed = _in_float32 if precision == "f32" else _in_bfloat16
        self._packed = partial(packed, library.encoder_panel())
        self._borrowed: list[NDArray[Any]] = []  # arrays that the library uses while the encoder is open
        weights = self._weights(graph.with_name(WEIGHTS))
        opened = library.encoder_open(ctypes.byref(weights), threads)
        if opened is None:
            raise Unavailable("There is no memory or no thread left for the encoder.")
        self._begin, self._finish, self._opened = library.encoder_begin, library.encoder_finish, opened
        # Not at exit: another thread may still be embedding.
        weakref.finalize(self, library.encoder_close, opened).atexit = False

    def begin(self, ids: Ids) -> Callable[[], Floats]:
        """Start the helper threads on a text. The returned function joins in, and returns the unit vector: (1, 384)."""
        given, vectors = np.ascontiguousarray(ids, np.int64), np.empty((1, HIDDEN), np.float32)
        if not self._begin(self._opened, given.ctypes.data, len(given)):
            raise Unavailable(f"The embedding model has no text of these tokens: {ids}.")

        def finish() -> Floats:
            self._finish(self._opened, vectors.ctypes.data)
            return vectors

        return finish

    def _weights(self, path: Path) -> Weights:
        tensors = Tensors(path)

        def floats(name: str) -> Any:
            return self._lent(tensors[name])

        def norm(name: str) -> Norm:
            return Norm(floats(f"{name}.weight"), floats(f"{name}.bias"))

        def linear(*names: str) -> Linear:
            weights, scale = self._packed(np.concatenate([tensors[f"{name}.weight"] for name in names]))
            self._borrowed.append(weights)
            bias = np.concatenate([tensors[f"{name}.bias"] for name in names])
            return Linear(weights.ctypes.data, self._lent(scale), self._lent(bias))

        def layer(name: str) -> Layer:
            attention = f"{name}.attention.self"
            return Layer(
                linear(f"{attention}.query", f"{attention}.key", f"{attention}.value"),
                linear(f"{name}.attention.output.dense"),
                norm(f"{name}.attention.output.LayerNorm"),
                linear(f"{name}.intermediate.dense"),
                linear(f"{name}.output.dense"),
                norm(f"{name}.output.LayerNorm"),
            )

        return Weights(
            floats("embeddings.word_embeddings.weight"),
            floats("embeddings.position_embeddings.weight"),
            floats("embeddings.token_type_embeddings.weight"),
            norm("embeddings.LayerNorm"),
            (Layer * LAYERS)(*(layer(f"encoder.layer.{number}") for number in range(LAYERS))),
        )

    def _lent(self, array: Floats) -> Any:
        self._borrowed.append(array)
        return array.ctypes.data_as(POINTER(c_float))


class Tensors:
    """Tensors by name, mapped from their file: of the word embeddings, only those in use are read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            header = header_of(path)
            if sha256(header).hexdigest() != LAYOUT:
                raise Unavailable(f"{path} has other tensors, or in another order, than the graph that comes with kb.")
            self._content = np.memmap(path, np.uint8, mode="r")[len(header) :]
        except OSError as wrong:
            raise Unavailable(f"{path} cannot be read: {wrong}") from wrong
        self._where = json.loads(header[8:])

    def __getitem__(self, name: str) -> Floats:
        start, end = self._where[name]["data_offsets"]
        if end > len(self._content):
            raise Unavailable(f"{self._path} ends before {name}.")
        return self._content[start:end].view(np.float32).reshape(self._where[name]["shape"])


def _library(precision: Precision) -> ctypes.CDLL:
    path = LIBRARIES / f"libencoder_{precision}.so"
    try:
        library = ctypes.CDLL(str(path))
        library.encoder_weights_size.restype = c_size_t
        if library.encoder_weights_size() != ctypes.sizeof(Weights):
            raise Unavailable(f"{path} was compiled from another embedding/minilm/encoder.c. Run `make setup`.")
        library.encoder_panel.restype = c_int
        library.encoder_runs_here.restype = c_bool
        library.encoder_open.argtypes, library.encoder_open.restype = (POINTER(Weights), c_int), c_void_p
        library.encoder_begin.argtypes, library.encoder_begin.restype = (c_void_p, c_void_p, c_int), c_bool
        library.encoder_finish.argtypes, library.encoder_finish.restype = (c_void_p, c_void_p), None
        library.encoder_close.argtypes, library.encoder_close.restype = (c_void_p,), None
    except (OSError, AttributeError) as wrong:
        raise Unavailable(f"embedding/minilm/encoder.c was not compiled for this machine: {wrong}") from wrong
    return library


def _in_float32(panel: int, weights: Floats) -> tuple[NDArray[np.int16], Floats]:
    """Weights for products in float32: 16 bits each, panel by panel in the order of use, and a scale per output."""
    outputs, inputs = weights.shape
    scale = np.maximum(np.abs(weights).max(axis=1) / HIGHEST, np.finfo(np.float32).tiny)  # not 0, for rows of zeros
    rounded = np.rint(weights / scale[:, None]).astype(np.int16)
    panels = rounded.reshape(outputs // panel, panel, inputs)
    return np.ascontiguousarray(panels.swapaxes(1, 2)), scale


def _in_bfloat16(panel: int, weights: Floats) -> tuple[NDArray[np.uint16], Floats]:
    """Weights for products in bfloat16, which take two inputs at a time, without a scale."""
    outputs, inputs = weights.shape
    bits = weights.view(np.uint32)
    to_even = 0x7FFF + ((bits >> 16) & 1)
    rounded = ((bits + to_even) >> 16).astype(np.uint16)
    panels = rounded.reshape(outputs // panel, panel, inputs // 2, 2)
    return np.ascontiguousarray(panels.swapaxes(1, 2)), np.ones(outputs, np.float32)
