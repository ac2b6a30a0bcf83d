"""A bounded cache that forgets the least recently used entry first."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Entries up to a total weight. Safe to use from several threads.

    Every entry weighs 1 unless `weigh` says otherwise. The newest entry stays even if it alone exceeds the capacity.
    """

    def __init__(self, capacity: int, weigh: Callable[[Value], int] | None = None) -> None:
        self.capacity = capacity
        self.weight = 0
        self._weigh = weigh
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        """Whether the key is there; it does not count as a use."""
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: Key, value: Value, *, used: bool = True) -> None:
        """Add or replace an entry. One that was not `used` is the first to go."""
        with self._lock:
            self._remove(key)
            self._entries[key] = value
            self._entries.move_to_end(key, last=used)
            self.weight += self._weight_of(value)
            while self.weight > self.capacity and len(self._entries) > 1:
                self._remove(next(iter(self._entries)))

    def drop(self, key: Key) -> None:
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.weight = 0

    def _remove(self, key: Key) -> None:
        if (value := self._entries.pop(key, None)) is not None:
            self.weight -= self._weight_of(value)

    def _weight_of(self, value: Value) -> int:
        return 1 if self._weigh is None else self._weigh(value)


class VersionedCache(Generic[Key, Value]):
    """The `LruCache` of one version of the data. Asking for another version starts an empty one.

    A caller puts its entry into the cache that it was given: if the version changed meanwhile, the entry is lost, and
    never mixed up with newer ones.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._current: tuple[object, LruCache[Key, Value]] = (None, LruCache(capacity))

    def at(self, version: object) -> LruCache[Key, Value]:
        known, cache = self._current
        if known != version:
            cache = LruCache(self._capacity)
            self._current = (version, cache)
        return cache
