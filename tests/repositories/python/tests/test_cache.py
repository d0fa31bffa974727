import pytest

from stockroom.cache import LRUCache


def test_oldest_value_is_dropped():
    cache = LRUCache(2)
    for key in "abc":
        cache.put(key, key.upper())
    assert "a" not in cache
    assert cache.get("c") == "C"
    assert len(cache) == 2


def test_reading_keeps_a_value():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert "a" in cache
    assert "b" not in cache


def test_writing_keeps_a_value():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    cache.put("c", 4)
    assert cache.get("a") == 3
    assert "b" not in cache


def test_default_for_a_missing_key():
    assert LRUCache(1).get("a", 7) == 7


def test_fetch_computes_once():
    cache = LRUCache(2)
    calls = []
    for _ in range(2):
        assert cache.fetch("a", lambda: calls.append("a") or 5) == 5
    assert calls == ["a"]


def test_fetch_keeps_an_empty_value():
    cache = LRUCache(2)
    cache.put("a", "")
    assert cache.fetch("a", lambda: "computed") == ""


def test_hit_rate():
    cache = LRUCache(2)
    assert cache.hit_rate == 0.0
    cache.fetch("a", lambda: 1)
    for _ in range(3):
        cache.get("a")
    assert cache.hit_rate == 0.75


def test_resize_drops_old_values():
    cache = LRUCache(3)
    for key in "abc":
        cache.put(key, key)
    cache.resize(1)
    assert len(cache) == 1
    assert "c" in cache


def test_capacity_must_be_positive():
    with pytest.raises(ValueError):
        LRUCache(0)
