"""One text through all-MiniLM-L6-v2 as soon as possible: what `encoder.c` needs, and the call of it.

Only for the graph that comes with kb, on processors with AVX2. A general runtime takes nearly twice as long for a
question; docs/decisions/011 has the figures.
"""

import ctypes
import json
import weakref
from ctypes import POINTER, Structure, c_bool, c_float, c_int, c_int16, c_size_t, c_void_p
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.errors import Unavailable
from kb.model import WEIGHTS, header_of, is_bundled_graph

# sha256 of the header of the weights' file: which numbers lie where, and how many, is what encoder.c relies on.
LAYOUT = "2291ac9b8d5083595cd6a1787e01d694a893af92bc706faf1511231affe822e8"
LIBRARY = Path(__file__).with_name("libencoder.so")  # not encoder.so, which Python would import as this module
HIDDEN = 384
LAYERS = 6
PANEL = 16  # outputs whose weights lie together
HIGHEST = np.iinfo(np.int16).max

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Linear(Structure):
    _fields_ = (("weights", POINTER(c_int16)), ("scale", POINTER(c_float)), ("bias", POINTER(c_float)))


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


def runs_here() -> bool:
    """Whether the processor has what it needs."""
    return bool(_library().encoder_runs_here())


class Encoder:
    """The model, ready; Unavailable when it is another one, or the machine another.

    For one thread at a time, and for one process: threads do not follow where it is forked.
    """

    def __init__(self, graph: Path, threads: int) -> None:
        if not is_bundled_graph(graph):
            raise Unavailable(f"{graph} is not the graph that comes with kb, and no other is known here.")
        if not runs_here():
            raise Unavailable("This processor has no AVX2.")
        library = _library()
        self._borrowed: list[NDArray[Any]] = []  # by the library, for as long as the encoder is open
        weights = self._weights(graph.with_name(WEIGHTS))
        opened = library.encoder_open(ctypes.byref(weights), threads)
        if opened is None:
            raise Unavailable("There is no memory or no thread left for the encoder.")
        self._run, self._opened = library.encoder_run, opened
        # Not when the process ends: another thread may be in the middle of a text.
        weakref.finalize(self, library.encoder_close, opened).atexit = False

    def __call__(self, input_ids: Ids, attention_mask: Ids) -> Floats:
        """One unit vector for each text; padding is behind it."""
        vectors = np.empty((len(input_ids), HIDDEN), np.float32)
        for ids, mask, vector in zip(np.ascontiguousarray(input_ids), attention_mask, vectors, strict=True):
            if not self._run(self._opened, ids.ctypes.data, np.count_nonzero(mask), vector.ctypes.data):
                raise Unavailable(f"The embedding model has no text of these tokens: {ids}.")
        return vectors

    def _weights(self, path: Path) -> Weights:
        tensors = Tensors(path)

        def floats(name: str) -> Any:
            return self._lent(tensors[name], c_float)

        def norm(name: str) -> Norm:
            return Norm(floats(f"{name}.weight"), floats(f"{name}.bias"))

        def linear(*names: str) -> Linear:
            packed, scale = _packed(np.concatenate([tensors[f"{name}.weight"] for name in names]))
            bias = np.concatenate([tensors[f"{name}.bias"] for name in names])
            return Linear(self._lent(packed, c_int16), self._lent(scale, c_float), self._lent(bias, c_float))

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

    def _lent(self, array: NDArray[Any], kind: Any) -> Any:
        self._borrowed.append(array)
        return array.ctypes.data_as(POINTER(kind))


class Tensors:
    """The numbers by name, where they lie in their file: of the words, only those that occur are ever read."""

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


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.encoder_weights_size.restype = c_size_t
        if library.encoder_weights_size() != ctypes.sizeof(Weights):
            raise Unavailable(f"{LIBRARY} was compiled from another encoder.c. Run `make setup`.")
        library.encoder_runs_here.restype = c_bool
        library.encoder_open.argtypes, library.encoder_open.restype = (POINTER(Weights), c_int), c_void_p
        library.encoder_run.argtypes, library.encoder_run.restype = (c_void_p, c_void_p, c_int, c_void_p), c_bool
        library.encoder_close.argtypes, library.encoder_close.restype = (c_void_p,), None
    except (OSError, AttributeError) as wrong:
        raise Unavailable(f"encoder.c was not compiled for this machine: {wrong}") from wrong
    return library


def _packed(weights: Floats) -> tuple[NDArray[np.int16], Floats]:
    """In 16 bits and in the order of use, with what to multiply each output by."""
    outputs, inputs = weights.shape
    scale = np.maximum(np.abs(weights).max(axis=1) / HIGHEST, np.finfo(np.float32).tiny)  # of noughts, too
    rounded = np.rint(weights / scale[:, None]).astype(np.int16)
    return np.ascontiguousarray(rounded.reshape(outputs // PANEL, PANEL, inputs).swapaxes(1, 2)), scale
