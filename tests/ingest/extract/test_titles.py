"""The title of a document: what a person wrote, not what a program made up."""

import pytest

from kb.ingest.extract.titles import real_title


@pytest.mark.parametrize(
    "title",
    [
        "",
        " \x00",
        "(anonymous)",
        "untitled",
        "Untitled-1",
        "(untitled)",
        "Sans titre 3",
        "0001018724-18-000005",
        "report.pdf",
        "Screenshot 2025-07-29 at 00.15.56.png",
        "Microsoft Word - x.doc",
        "Microsoft Word - Document1",
        "Microsoft Excel - Book1",
        "Book1",
        "Document 3",
        "Slide 1",
        "Diapositive 1",
        "スライド 1",
        "PowerPoint Presentation",
        "Présentation PowerPoint",
        "PowerPoint-Präsentation",
        "Presentazione standard di PowerPoint",
        "PowerPoint 演示文稿",
    ],
)
def test_what_a_program_made_up_is_no_title(title: str) -> None:
    assert real_title(title) is None


@pytest.mark.parametrize(
    "title",
    [
        "Herons",
        "Book of Kells",
        "2001: A Space Odyssey",
        "Introduction to Node.js",
        "How to give a presentation",
        "Presentation of the new features of PowerPoint in Helsinki",
        "Unknown Pleasures",
        "Slide rules",
        "Title IX",
        "1,2-双(二苯基膦)乙烷",
    ],
)
def test_what_a_person_wrote_stays(title: str) -> None:
    assert real_title(title) == title


def test_a_printed_file_has_the_name_that_a_person_chose() -> None:
    assert real_title("Microsoft Word - Annual Report 2007.doc") == "Annual Report 2007"
