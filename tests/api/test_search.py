"""What a search promises at the surface: any question is legal, every script is found, an empty answer says why."""

import pytest

from support import Http, StartEngine

NOTES = {
    "boiler": "The boiler was serviced in March by Anna.",
    "chinese": "全文搜索引擎可以快速找到文档。",
    "japanese": "東京タワーは日本の有名な観光地です。",
    "arabic": "كتب المهندس تقريرا عن المضخة الجديدة",
    "accents": "El año pasado la compañía revisó la calefacción.",
    "code": "Call getUserName() in user_service.py before v2.14.3.",
    "emoji": "The release party is on Friday 🎉",
}


@pytest.fixture(scope="module")
def library(engine_url: str) -> dict[str, int]:
    http = Http(engine_url)
    return {name: http.add_note(text, tags=["library"]) for name, text in NOTES.items()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("搜索", "chinese"),
        ("引擎", "chinese"),
        ("東京", "japanese"),
        ("المضخة", "arabic"),
        ("ano calefaccion", "accents"),
        ("AÑO", "accents"),
        ("getUserName", "code"),
        ("user_service.py", "code"),
        ("2.14.3", "code"),
        ("🎉", "emoji"),
        ("service", "boiler"),
        ("who looked after the heating", "boiler"),
    ],
)
def test_the_right_note_comes_first(http: Http, library: dict[str, int], query: str, expected: str) -> None:
    assert http.search(query, tags=["library"])["results"][0]["document_id"] == library[expected]


@pytest.mark.parametrize("query", ["搜索", "東京", "المضخة", "ano", "getUserName", "🎉"])
def test_keywords_alone_find_every_script(http: Http, library: dict[str, int], query: str) -> None:
    assert http.search(query, fts_only=True, tags=["library"])["total"] >= 1


@pytest.mark.parametrize(
    "query",
    ['"', "'", "*", "a OR b AND NOT c", "NEAR(a b)", "title:x", "^", "(((", "-", "--", "\\", "%", ";DROP TABLE chunks;",
     " ", "\x00", "\u202e", "🎉" * 500, "a" * 2000, "字" * 2000, "{}[]", "col:val*", "\n\n"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_any_string_is_a_legal_question(http: Http, library: dict[str, int], query: str, mode: str) -> None:
    answer = http.search(query, mode=mode)
    assert answer["results"] or answer["notice"]


def test_the_answer_has_its_pinned_fields(http: Http, library: dict[str, int]) -> None:
    answer = http.search("boiler", tags=["library"], top=1)
    assert set(answer) == {"query", "mode", "results", "total", "took_ms"}
    assert set(answer["results"][0]) == {
        "chunk_id", "document_id", "uid", "title", "filename", "source_path", "doc_type", "media_type", "text", "score",
        "tags", "metadata", "anchor", "created_at", "updated_at", "version",
    }  # fmt: skip


def test_explain_says_what_each_leg_thought(http: Http, library: dict[str, int]) -> None:
    hit = http.search("boiler serviced", explain=True, tags=["library"])["results"][0]
    assert hit["explain"]["fts"]["rank"] == 1
    assert hit["explain"]["vector"]["rank"] == 1
    assert hit["explain"]["matched_terms"] == ["boiler", "servic"]
    shares = [hit["explain"][leg]["share"] for leg in ("fts", "vector")]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(hit["score"], abs=1e-4)
    alone = http.search("boiler", explain=True, mode="fts", tags=["library"])["results"][0]
    assert alone["explain"]["fts"]["share"] == pytest.approx(alone["score"], abs=1e-4)
    assert http.search("boiler", explain=True, mode="vector")["results"][0]["explain"]["fts"] is None


def test_titles_and_headings_are_searched_like_the_text(http: Http) -> None:
    by_title = http.add_note("Nothing but plain words.", title="Okapi husbandry")
    by_heading = http.add_file("h.md", b"# Zoo\n\n## Pangolins\n\n" + b"They eat ants. " * 100).json["document_id"]
    assert http.search("okapi", mode="fts")["results"][0]["document_id"] == by_title
    hits = http.search("pangolins", mode="fts")["results"]
    assert {hit["document_id"] for hit in hits} == {by_heading}
    assert all(hit["anchor"]["heading"] == "Zoo > Pangolins" for hit in hits)


def test_a_budget_holds_whole_passages_or_the_beginning_of_the_first(http: Http, library: dict[str, int]) -> None:
    everything = http.search("boiler", tags=["library"])["results"]
    some = http.search("boiler", tags=["library"], max_tokens=40)["results"]
    assert 1 <= len(some) < len(everything)
    assert [hit["chunk_id"] for hit in some] == [hit["chunk_id"] for hit in everything[: len(some)]]
    (cut,) = http.search("boiler", tags=["library"], max_tokens=3)["results"]
    assert cut["truncated"] is True
    assert everything[0]["text"].startswith(cut["text"])
    assert cut["text"] == "The boiler was"


def test_filters_are_exact(http: Http) -> None:
    one = http.add_note("filter specimen one", tags=["f-a", "f-b"], source_path="notes/one.md")
    two = http.add_file("two.md", b"# filter specimen two", [("tags", "f-a")]).json["document_id"]
    created = http("GET", f"/api/v1/documents/{two}").json["created_at"]

    def found(**given: object) -> set[int]:
        return {hit["document_id"] for hit in http.search("filter specimen", **{"tags": ["f-a"], **given})["results"]}

    assert found() == {one, two}
    assert found(tags=["f-a", "f-b"]) == {one}
    assert found(doc_type="markdown") == {two}
    assert found(media_type="text/markdown") == {one, two}
    assert found(source_path="notes/one.md") == {one}
    assert found(created_after=created) == {two}
    assert found(created_before=created) == {one}
    assert found(created_after="2000-01-01", created_before="2001-01-01") == set()
    assert found(created_after="2000-01-01T00:00:00+02:00") == {one, two}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "x", "top": 0}, "top"),
        ({"query": "x", "top": 101}, "top"),
        ({"query": "x", "top": 1, "top_n": 2}, "top_n"),
        ({"query": "x", "fts_only": True, "vec_only": True}, "exclude each other"),
        ({"query": "x", "doc_type": "xyz"}, "note, pdf, docx"),
        ({"query": "x", "mode": "magic"}, "mode"),
        ({"query": "x", "created_after": "yesterday"}, "created_after"),
        ({"query": "x", "min_score": 2}, "min_score"),
        ({"query": "x", "collection": "memory"}, "collection"),
        ([], "valid"),
    ],
)
def test_a_search_that_cannot_be_right_is_refused(http: Http, body: object, problem: str) -> None:
    refused = http("POST", "/api/v1/search", body)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")
    assert problem in refused.json["error"]["message"]


def test_top_n_means_top_and_flags_override_mode(http: Http, library: dict[str, int]) -> None:
    assert http.search("the", top_n=1)["total"] == 1
    assert http.search("the", top_n=2, top=2)["total"] == 2
    assert http.search("the", mode="vector", fts_only=True)["mode"] == "fts"
    assert http.search("the", vec_only=True)["mode"] == "vector"


@pytest.fixture
def own(start_engine: StartEngine) -> Http:
    return Http(start_engine().url)


def test_an_empty_knowledge_base_says_so(own: Http) -> None:
    assert "empty" in own.search("anything")["notice"]


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_a_knowledge_base_that_is_empty_again_says_so(own: Http, mode: str) -> None:
    id_ = own.add_note("The only note there is")
    assert own("DELETE", f"/api/v1/documents/{id_}").status == 200
    assert "empty" in own.search("note", mode=mode)["notice"]


def test_a_notice_says_what_was_left_out_and_why(own: Http) -> None:
    own.add_note("The only note there is", tags=["a"])
    assert "No term of the query is known here (xyzzy)" in own.search("xyzzy", mode="fts")["notice"]
    assert "filter matches no document" in own.search("note", tags=["nope"])["notice"]
    assert "below min_score" in own.search("unrelated", min_score=0.9)["notice"]
    assert "no word" in own.search("...", mode="fts")["notice"]
    own.add_note("Something else", tags=["b"])
    assert "filter removed all 1 matches" in own.search("only", mode="fts", tags=["b"])["notice"]
    assert "notice" not in own.search("note")


def test_a_search_survives_a_restart(start_engine: StartEngine) -> None:
    first = start_engine()
    id_ = Http(first.url).add_note("Remember the marmalade")
    assert first.stop() == 0
    second = start_engine()
    for mode in ("hybrid", "fts", "vector"):
        assert Http(second.url).search("marmalade", mode=mode)["results"][0]["document_id"] == id_


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "APPLICATION/VND.KB+JSON"])
def test_json_is_read_by_any_of_its_names(http: Http, kind: str) -> None:
    assert http("POST", "/api/v1/search", raw=b'{"query": "x"}', Content_Type=kind).status == 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"query": "x"}', "text/plain"),  # what a foreign page may send without asking first
        (b'{"query": "x"}', "application/x-www-form-urlencoded"),
        (b'{"query": "x"}', "text/x+json"),
        (b'{"query": "x"}', ""),
        (b"", "application/json"),
        (b'{"query": "x"', "application/json"),
        (b'{"query": "\xff"}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"[]", "application/json"),
        (b'"query"', "application/json"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(http: Http, body: bytes, kind: str) -> None:
    refused = http("POST", "/api/v1/search", raw=body, Content_Type=kind)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_copies_of_a_passage_are_one_result(http: Http) -> None:
    text = "The tide table of Quenby harbour hangs beside the weighing room."
    ids = {http.add_note(text, tags=["copies", str(number)]) for number in range(3)}
    http.add_note("Another tide table lies in the archive of the harbour.", tags=["copies"])
    first, second = http.search("tide table of Quenby", tags=["copies"])["results"]
    assert "also_in" not in second
    assert {first["document_id"], *(copy["document_id"] for copy in first["also_in"])} == ids
    assert first["also_in"][0].keys() == {"document_id", "chunk_id", "title", "filename", "source_path", "anchor"}
    (alone, _) = http.search("tide table of Quenby", tags=["copies"], top=2)["results"]
    assert alone == first
    (only,) = http.search("tide table of Quenby", tags=["copies", "1"])["results"]
    assert "also_in" not in only
