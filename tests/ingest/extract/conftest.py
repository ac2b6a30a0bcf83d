"""Files read in the real sandbox, as the formats that their content says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.core.errors import JobFailure
from kb.ingest.extract import Part, Source
from kb.ingest.extract.detect import detect
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.sandbox import Sandbox

Extract = Callable[..., list[Part]]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(lambda: OcrChoice(missing="OCR off", missing_code="no_text"))
    yield made
    made.close()


@pytest.fixture
def extract(sandbox: Sandbox, tmp_path: Path) -> Extract:
    """A file's parts, read in the sandbox as the format that its content says."""

    def run(data: bytes, name: str = "file", **given: Any) -> list[Part]:
        path = tmp_path / "original"
        path.write_bytes(data)
        doc_type = detect(data[:65536], data[-65536:], name).doc_type
        return list(sandbox.parts(doc_type, Source(path, name, **given), lambda: None))

    return run


@pytest.fixture
def fails(extract: Extract) -> Callable[..., str]:
    """The code of the failure that reading a file ends with."""

    def run(data: bytes, name: str = "file") -> str:
        with pytest.raises(JobFailure) as failure:
            extract(data, name)
        return failure.value.code

    return run
