"""What is in archives and mails, as the sandbox hands it over; hostile ones stay within bounds."""

import gzip
import io
import tarfile
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from kb.core.errors import JobFailure
from kb.ingest.extract import Source
from kb.ingest.extract.detect import detect
from kb.ingest.extract.member import About
from kb.ingest.sandbox.sandbox import Sandbox
from made import archive, mail, mailbox, msg, msg_tree, tar

Extract = Callable[..., list]  # type: ignore[type-arg]
Unpack = Callable[..., dict[str, tuple[About, bytes | str]]]


@pytest.fixture
def unpack(sandbox: Sandbox, tmp_path: Path) -> Unpack:
    """The members of a file by their paths, each with its bytes or why they cannot be read."""

    def run(data: bytes, name: str = "file") -> dict[str, tuple[About, bytes | str]]:
        path = tmp_path / "original"
        path.write_bytes(data)
        doc_type = detect(data[:65536], data[-65536:], name).doc_type
        found: dict[str, tuple[About, bytes | str]] = {}
        for member in sandbox.members(doc_type, Source(path, name), lambda: None):
            try:
                content: bytes | str = b"".join(member.pieces)
            except JobFailure as failure:
                content = failure.message
            found[member.about.path] = (member.about, content)
        return found

    return run


def zipped(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for info, content in entries:
            made.writestr(info, content)
    return buffer.getvalue()


def test_names_of_all_kinds_are_read_and_paths_that_lead_out_are_refused(unpack: Unpack) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    data = zipped(
        ("größe/Ünï.txt", b"a"),
        ("/etc/passwd", b"b"),
        ("a/../../b.txt", b"c"),
        (link, b"/etc/passwd"),
        ("bell\x07.txt", b"d"),
        ("folder/", b""),
        (".DS_Store", b"e"),
    )
    found = unpack(data)
    assert found["größe/Ünï.txt"][1] == b"a"
    assert found["bell�.txt"][1] == b"d"
    refused = {path: about.outcome.reason for path, (about, _) in found.items() if about.outcome.state == "failed"}
    assert set(refused) == {"/etc/passwd", "a/../../b.txt", "link"}
    assert "leads out" in (refused["/etc/passwd"] or "")
    assert "link" in (refused["link"] or "")
    assert found[".DS_Store"][0].outcome.state == "empty"
    assert "folder" not in found
    assert found["/etc/passwd"][1] == b""


def test_names_in_an_old_encoding_are_guessed_from_all_of_them(unpack: Unpack) -> None:
    names = ["Договор аренды.txt", "Счёт за октябрь.txt", "Письмо директору.txt"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, encoding="cp866") as made:
        for name in names:
            made.addfile(tarfile.TarInfo(name))
    assert set(unpack(buffer.getvalue())) == set(names)


def test_members_of_the_same_name_are_all_there(unpack: Unpack) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for content in (b"first", b"second"):
            info = tarfile.TarInfo("a.txt")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    found = unpack(buffer.getvalue())
    assert {path: content for path, (_, content) in found.items()} == {"a.txt": b"first", "a.txt (2)": b"second"}
    assert found["a.txt (2)"][0].filename == "a.txt"


def test_links_and_devices_of_a_tar_are_not_followed(unpack: Unpack) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for name, kind in (("sym", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("dev", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            made.addfile(info)
    found = unpack(buffer.getvalue())
    assert {path: about.outcome.state for path, (about, _) in found.items()} == dict.fromkeys(found, "failed")
    assert set(found) == {"sym", "hard", "dev"}


def test_an_archive_that_is_cut_off_gives_what_it_has_and_says_so(unpack: Unpack) -> None:
    whole = tar({"a.txt": b"alpha", "b.txt": b"beta" * 1000})
    cut = unpack(whole[:1800])
    assert cut["a.txt"][1] == b"alpha"
    damaged = bytearray(whole)
    damaged[1024 + 20] ^= 0xFF  # in the header of the second
    found = unpack(bytes(damaged))
    assert found["a.txt"][1] == b"alpha"
    assert "damaged here" in (found["the rest of the archive"][0].outcome.reason or "")


def test_an_encrypted_member_says_so(unpack: Unpack) -> None:
    data = bytearray(archive({"secret.txt": "x"}))
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in (unpack(bytes(data))["secret.txt"][0].outcome.reason or "")


@pytest.mark.parametrize(
    "data",
    [
        archive({"zeros": b"0" * 50 * 2**20}),
        gzip.compress(bytes(200 * 2**20)),
        gzip.compress(tar({"zeros": bytes(100 * 2**20)})),
    ],
    ids=["zip", "gz", "tar.gz"],
)
def test_a_bomb_is_refused_soon(unpack: Unpack, data: bytes) -> None:
    started = time.monotonic()
    try:
        told = [content for _, content in unpack(data).values()]
    except JobFailure as failure:
        told = [failure.message]
    assert all(isinstance(one, str) and "would unpack" in one for one in told)
    assert time.monotonic() - started < 20


def test_a_mail_with_two_forms_of_its_text_is_read_once(extract: Extract) -> None:
    (part,) = extract(mail("Come to tea.", html="<p>Come <b>to</b> tea.</p>"))
    assert part.text.count("tea.") == 1
    assert part.text.startswith("Subject: Tea\nFrom: Anna Smith <anna@example.org>\nTo: bob@example.org\n")
    (part,) = extract(mail("Read this in a browser.", html=f"<h1>Menu</h1><p>{'Scones and jam. ' * 9}</p>"))
    assert "Scones" in part.text


def test_headers_and_texts_are_decoded(extract: Extract) -> None:
    data = (
        b"Subject: =?koi8-r?B?8NLJ18XU?= =?utf-8?Q?_=E2=82=AC?=\nFrom: a@x.org\nMessage-ID: <1>\nMIME-Version: 1.0\n"
        b"Content-Type: text/plain; charset=windows-1251\nContent-Transfer-Encoding: 8bit\n\n"
    ) + "Болотная сова охотится над лугами перед закатом и гнездится на земле.".encode("cp1251")
    (part,) = extract(data)
    assert part.title == "Привет €"
    assert part.text.endswith("гнездится на земле.")
    assert part.outcome.reason == "read as Windows-1251, as it says"


def test_small_pictures_and_signatures_are_left_out_with_a_reason(unpack: Unpack) -> None:
    made = EmailMessage()
    made["Subject"], made["Message-ID"], made["From"] = "x", "<1>", "a@x.org"
    made.set_content("Hello")
    made.add_attachment(b"png", maintype="image", subtype="png", filename="logo.png", disposition="inline", cid="<1>")
    made.add_attachment(b"sig", maintype="application", subtype="pgp-signature", filename="signature.asc")
    made.add_attachment(b"real", maintype="image", subtype="png", filename="../../plan.png")
    found = unpack(made.as_bytes())
    assert found["logo.png"][0].outcome.state == "empty"
    assert found["signature.asc"][0].outcome.state == "empty"
    assert found["plan.png"][1] == b"real", "folders in the name of an attachment mean nothing"


def test_a_mail_that_is_nested_without_end_is_refused(extract: Extract) -> None:
    data = b"Subject: x\nMessage-ID: <1>\nFrom: a\nMIME-Version: 1.0\n"
    for depth in range(3000):
        data += b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (depth, depth)
    with pytest.raises(JobFailure) as failure:
        extract(data, "deep.eml")
    assert failure.value.code in ("too_complex", "timeout", "out_of_memory", "no_text")


def test_a_mailbox_is_split_at_its_messages_only(extract: Extract) -> None:
    parts = extract(mailbox(mail("one\n\n>From the start\n\nFrom here on", subject="A"), mail("two", subject="B")))
    assert [part.name for part in parts] == ["message 1", "message 2"]
    assert parts[0].anchor.message == "2026-11-18 10:30, Anna Smith <anna@example.org>, A"
    assert "From the start" in parts[0].text


def test_a_mailbox_may_have_messages_without_headers(extract: Extract, fails: Callable[..., str]) -> None:
    line = b"From a@x.org Mon Jun 01 10:00:00 2009\n\n"
    parts = extract(line + b"Tea.\n\n" + line + b"From here, 2009\n\nfish.\n", "a.mbox")
    assert [part.text for part in parts] == ["Tea.", "From here, 2009\n\nfish."]
    assert fails(b"From a@x.org in 2009\n\nx", "a.mbox") == "corrupt"


def test_a_mail_of_outlook_has_text_attachments_and_the_mail_that_it_forwards(extract: Extract, unpack: Unpack) -> None:
    inner = msg_tree("Inner", "What was said before", {"deep.txt": b"deep"})
    data = msg("The plan", "Anna sends the plan.", {"plan.txt": b"the plan itself", "was": inner})
    (part,) = extract(data, "plan.msg")
    assert part.title == "The plan"
    assert part.metadata == {
        "subject": "The plan",
        "from": "Anna Smith <anna@example.org>",
        "to": "Bob",
        "date": part.metadata["date"],
    }
    assert part.metadata["date"].startswith("2026-11-18T")
    assert part.text.endswith("Anna sends the plan.")
    found = unpack(data, "plan.msg")
    content = found["plan.txt"][1]
    assert isinstance(content, bytes)
    assert content.rstrip(b"\0") == b"the plan itself"
    forwarded = found["was.eml"][1]
    assert isinstance(forwarded, bytes)
    (part,) = extract(forwarded, "was.eml")
    assert part.title == "Inner"
    assert "What was said before" in part.text


def test_what_is_named_like_a_mail_of_outlook_and_is_none_fails(extract: Extract) -> None:
    with pytest.raises(JobFailure) as failure:
        extract(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "x.msg")
    assert failure.value.code == "corrupt"


def test_a_saved_page_is_read_as_the_page(extract: Extract) -> None:
    data = (
        b"From: <Saved by Blink>\r\nSnapshot-Content-Location: https://x.org/\r\nSubject: x\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n--b\r\nContent-Type: image/png\r\n'
        b"Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: quoted-printable\r\nContent-Location: https://x.org/\r\n\r\n"
        b"<html><title>Herons</title><h1>Herons</h1><p>They stand and w=\r\nait.</p></html>\r\n--b--\r\n"
    )
    (part,) = extract(data, "page.mhtml")
    assert (part.title, "They stand and wait." in part.text) == ("Herons", True)
    assert part.outcome.reason == "1 pictures, styles and frames of the page are not read"


def test_a_saved_page_that_only_its_name_tells_is_read_as_the_page(extract: Extract) -> None:
    data = (
        b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n"
        b"Content-Transfer-Encoding: base64\n\nPGgxPkhlcm9uczwvaDE+\n--b--\n"
    )
    (part,) = extract(data, "page.mht")
    assert part.text == "# Herons"


@pytest.mark.parametrize("mark", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_a_mail_in_wide_characters_is_read_like_another(extract: Extract, mark: str) -> None:
    (part,) = extract(mail("Come to tea.", html="<p>Come <b>to</b> tea.</p>").decode().encode(mark), "tea.eml")
    assert part.text.startswith("Subject: Tea\nFrom: Anna Smith")
    assert part.text.count("tea.") == 1


def test_a_senders_line_before_a_single_mail_is_none_of_its_headers(extract: Extract) -> None:
    (part,) = extract(b"From anna@example.org\n" + mail("Come to tea."), "tea.eml")
    assert part.text.startswith("Subject: Tea\nFrom: Anna Smith")
