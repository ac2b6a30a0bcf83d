"""The one cache: bounded by weight, and the least recently used goes first."""

from kb.core.lru import LruCache, VersionedCache


def test_the_least_recently_used_goes_first() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert len(cache) == 2


def test_what_was_not_used_goes_before_what_was() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("asked", 1)
    cache.put("ahead", 2, used=False)
    cache.put("next", 3)
    assert "asked" in cache
    assert "ahead" not in cache


def test_entries_are_bounded_by_their_weight_but_the_newest_stays() -> None:
    cache: LruCache[str, str] = LruCache(5, len)
    cache.put("a", "xx")
    cache.put("b", "xxx")
    assert cache.weight == 5
    cache.put("b", "x")
    assert (cache.weight, len(cache)) == (3, 2)
    cache.put("c", "xxxxxxxxx")
    assert (cache.weight, len(cache)) == (9, 1)


def test_dropping_and_clearing_give_the_weight_back() -> None:
    cache: LruCache[str, str] = LruCache(9, len)
    cache.put("a", "xx")
    cache.put("b", "xxx")
    cache.drop("a")
    cache.drop("never there")
    assert cache.weight == 3
    cache.clear()
    assert (cache.weight, len(cache)) == (0, 0)


def test_another_version_starts_an_empty_cache() -> None:
    caches: VersionedCache[str, int] = VersionedCache(2)
    before = caches.at(1)
    before.put("a", 1)
    assert caches.at(1) is before
    after = caches.at(2)
    before.put("late", 2)
    assert (len(after), "late" in caches.at(2)) == (0, False)
