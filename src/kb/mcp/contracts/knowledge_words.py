"""The engine's values in the words of contract `knowledge`, and the other way round."""

import re
import uuid
from datetime import date, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from kb.core.types import Json
from kb.core.values import DocType
from kb.mcp.tools import Refusal
from kb.mcp.uploads.files import ALIASES, FORMATS, file_format

DOC_TYPES: dict[str, DocType] = {
    "pdf": "pdf",
    "docx": "docx",
    "pptx": "pptx",
    "xlsx": "xlsx",
    "html": "html",
    "svg": "svg",
    "note": "note",
}
MEDIA_TYPES = {"jpg": "image/jpeg", "png": "image/png"}


class DateRange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: Annotated[str | None, Field(description="First day, such as 2025-01-01.")] = None
    end: Annotated[str | None, Field(description="Last day, included.")] = None


class Filters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Annotated[str | None, Field(description="pdf, docx, pptx, xlsx, html, jpg, png, svg, or note.")] = None
    date_range: Annotated[DateRange | None, Field(description="Only what was added on these days.")] = None


def refusal(kind: str, message: str, /, **fields: Any) -> Refusal:
    return Refusal({"success": False, "error": kind, "message": message, **fields})


def unsupported(extension: str) -> Refusal:
    named = f".{extension}" if extension else "none"
    message = f"Unsupported file format: {named}. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG"
    return refusal("unsupported_format", message, supported_formats=list(FORMATS))


def is_uuid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def name_of(document: Json) -> str:
    return str(document["filename"] or document["title"])


def format_of(document: Json) -> str:
    """The format of a document: by its type, else by its file name."""
    if document["doc_type"] == "image":
        kind = str(document["media_type"]).rpartition("/")[2]
        return ALIASES.get(kind, kind)
    if document["doc_type"] in DOC_TYPES:
        return str(document["doc_type"])
    return file_format(document["filename"] or "") or str(document["doc_type"])


def found(hit: Json) -> Json:
    about = {**hit["metadata"], "format": format_of(hit), "date_added": hit["created_at"]}
    if "page" in hit["anchor"]:
        about["page_num"] = hit["anchor"]["page"]
    if "metadata" in hit["anchor"]:
        about["from_metadata"] = True
    if "hidden" in hit:  # a reader of the original does not see the text
        about["hidden"] = True
    if "also_in" in hit:  # the shape of a result is the contract's, its metadata is open
        about["also_in"] = [copied(copy) for copy in hit["also_in"]]
    return {
        "document_id": hit["uid"],
        "chunk_id": str(uuid.uuid5(uuid.UUID(hit["uid"]), str(hit["chunk_id"]))),
        "filename": name_of(hit),
        "chunk_text": hit["text"],
        "relevance_score": hit["score"],
        "metadata": about,
    }


def copied(copy: Json) -> Json:
    """Where else the same passage stands."""
    page = {"page_num": copy["anchor"]["page"]} if "page" in copy["anchor"] else {}
    return {"filename": name_of(copy), **page}


def listed(document: Json) -> Json:
    return {
        "id": document["uid"],
        "filename": name_of(document),
        "format": format_of(document),
        "size_bytes": document["size_bytes"],
        "date_added": document["created_at"],
        "chunk_count": document["chunk_count"],
        "processing_status": "completed",
        "processing_method": document["processing_method"],
    }


def task(job: Json) -> Json:
    """A job in the words of the contract."""
    answer: Json = {"success": job["status"] != "failed", "task_id": job["id"], "status": job["status"]}
    if job["status"] == "failed":
        error = job["error"]
        return answer | {
            "error": error["code"],
            "message": error["message"],
            "elapsed_time_seconds": job["elapsed_seconds"],
        }
    answer["progress"] = job["progress"]
    if job["status"] == "completed":
        result = {"document_id": job["uid"], "filename": job["filename"], "chunks_created": job["chunks_created"]}
        return answer | {"result": result, "total_time_seconds": job["elapsed_seconds"]}
    return answer | {
        "current_step": job["current_step"],
        "completed_steps": job["completed_steps"],
        "total_steps": job["total_steps"],
        "elapsed_time_seconds": job["elapsed_seconds"],
        "estimated_remaining_seconds": job["estimated_remaining_seconds"],
    }


def engine_filter(filters: Filters) -> dict[str, Any]:
    """The contract's filters in the engine's words."""
    given: dict[str, Any] = {}
    if filters.format is not None:
        named = filters.format.lower().removeprefix(".")
        wanted = ALIASES.get(named, named)
        if wanted in MEDIA_TYPES:
            given["media_type"] = MEDIA_TYPES[wanted]
        elif wanted in DOC_TYPES:
            given["doc_type"] = DOC_TYPES[wanted]
        else:
            message = f"filters.format is {filters.format[:50]!r}. Use one of {', '.join([*FORMATS, 'note'])}."
            raise refusal("invalid_parameter", message, parameter="filters.format")
    days = filters.date_range or DateRange()
    if days.start is not None:
        given["created_after"] = f"{_day(days.start, 'start')}T00:00:00Z"
    if days.end is not None:
        end = _day(days.end, "end")
        if end < date.max:  # nothing is later
            given["created_before"] = f"{end + timedelta(days=1)}T00:00:00Z"
    return given


def _day(text: str, name: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        where = f"filters.date_range.{name}"
        message = f"{where} is {text[:50]!r}. Write a day as 2025-12-31."
        raise refusal("invalid_parameter", message, parameter=where) from None


def tags_and_rest(metadata: Json | None) -> tuple[list[str] | None, Json | None]:
    """Tags are tags; everything else stays metadata."""
    if metadata is None:
        return None, None
    tags = metadata.get("tags")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise refusal("invalid_parameter", "metadata.tags must be a list of strings.", parameter="metadata.tags")
    return tags, {key: value for key, value in metadata.items() if key != "tags"}


def megabytes(size: int) -> float:
    return round(size / 2**20, 1)
