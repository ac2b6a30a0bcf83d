"""What is decided about files that are not as they were."""

from hypothesis import given
from hypothesis import strategies as st

from kb.engine.folders.plan import Held, Plan, Seen, plan


def test_bytes_that_are_as_they_were_need_nothing() -> None:
    assert plan([Held("a", "1", 7)], [Seen("a", "1", 8)]) == Plan(same=["a"])


def test_a_document_follows_its_bytes() -> None:
    assert plan([Held("a", "1", 7)], [Seen("b", "1", 7)]) == Plan(moved={"a": "b"})


def test_other_bytes_at_a_path_are_a_new_version() -> None:
    assert plan([Held("a", "1", 7)], [Seen("a", "2", 7)]) == Plan(changed=["a"])


def test_files_that_change_places_take_their_documents_along() -> None:
    held = [Held("a", "1", 1), Held("b", "2", 2)]
    assert plan(held, [Seen("a", "2", 2), Seen("b", "1", 1)]) == Plan(moved={"a": "b", "b": "a"})


def test_a_file_that_is_moved_over_another_displaces_its_document() -> None:
    held = [Held("a", "1", 1), Held("b", "2", 2)]
    assert plan(held, [Seen("b", "1", 1)]) == Plan(moved={"a": "b"}, displaced=["b"])


def test_a_new_file_at_the_path_of_one_that_moved_is_new() -> None:
    assert plan([Held("a", "1", 1)], [Seen("a", "2", 9), Seen("b", "1", 1)]) == Plan(moved={"a": "b"}, new=["a"])


def test_of_several_copies_the_same_inode_decides_then_the_same_name_then_the_order() -> None:
    held = [Held("x/a", "1", 1), Held("x/b", "1", 2), Held("x/c", "1", 3)]
    seen = [Seen("y/c", "1", 1), Seen("y/b", "1", 8), Seen("y/d", "1", 9)]
    assert plan(held, seen).moved == {"x/a": "y/c", "x/b": "y/b", "x/c": "y/d"}


def test_what_a_job_still_reads_waits_with_all_that_depends_on_it() -> None:
    held = [Held("a", "1", 1, is_busy=True), Held("b", "2", 2), Held("c", "3", 3)]
    seen = [Seen("b", "1", 1), Seen("c", "2", 2), Seen("d", "3", 3)]
    assert plan(held, seen) == Plan(later={"a", "b", "c", "d"})


def test_a_file_that_was_never_hashed_is_new() -> None:
    assert plan([Held("a", None, 1)], [Seen("b", None, 2)]) == Plan(new=["b"], removed=["a"])


PATHS = st.sampled_from(["a", "b", "c", "d", "x/a", "x/b", "y/a", "y/b"])
HASHES = st.sampled_from("123456")


@given(
    st.dictionaries(PATHS, st.tuples(HASHES, st.integers(1, 4), st.booleans())),
    st.dictionaries(PATHS, st.tuples(HASHES, st.integers(1, 4))),
)
def test_following_a_plan_leaves_each_file_with_one_document_that_has_its_bytes(
    before: dict[str, tuple[str, int, bool]], after: dict[str, tuple[str, int]]
) -> None:
    held = [Held(path, *about) for path, about in before.items()]
    seen = [Seen(path, *about) for path, about in after.items()]
    done = plan(held, seen)
    assert plan(reversed(held), reversed(seen)) == done

    documents = {path: (path, hash_) for path, (hash_, _, _) in before.items()}  # path: id, bytes
    gone = {path: documents.pop(path) for path in [*done.removed, *done.displaced]}
    taken = {to: documents.pop(path) for path, to in done.moved.items()}
    assert not taken.keys() & documents.keys()
    documents |= taken
    for path in done.new:
        assert path not in documents
        documents[path] = (f"new {path}", after[path][0])
    for path in done.changed:
        documents[path] = (documents[path][0], after[path][0])

    settled = {path: hash_ for path, (_, hash_) in documents.items() if path not in done.later}
    assert settled == {path: hash_ for path, (hash_, _) in after.items() if path not in done.later}
    assert not done.later or any(is_busy for _, _, is_busy in before.values())
    lost = {hash_ for _, hash_ in gone.values()}
    new_bytes = {after[path][0] for path in done.new}
    assert not lost & new_bytes, "a document was removed although its bytes are there under another path"
