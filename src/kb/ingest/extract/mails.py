"""What a mail, a mailbox and a saved web page begin with."""

import re

# The lines at the start of a mail. A text that merely begins with "From:" and "Subject:" has none of the second kind.
HEADERS = rb"(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*){0,100}?"
TECHNICAL = (
    rb"(?:message-id:\s*<|mime-version:\s*1|received:\s*(?:from|by)\s|return-path:\s*<|delivered-to:\s*\S+@"
    rb"|dkim-signature:\s*\w=)"
)
MAIL = rb"(?=" + HEADERS + rb"(?:from|date|subject):)" + HEADERS + TECHNICAL
# A commit that is sent as a mail begins with a date of its own, and is a text.
FROM_LINE = rb"From (?![0-9a-f]{40} Mon Sep 17)[^\n]+\d{4}[^\n]*\n"
FLAGS = re.IGNORECASE | re.DOTALL

SAVED_PAGE = re.compile(rb"\A\s*" + HEADERS + rb"(?:from:\s*[\"<]?saved by |snapshot-content-location:)", FLAGS)
RELATED = re.compile(rb"\A\s*" + HEADERS + rb"content-type:\s*multipart/related", FLAGS)
MAILBOX = re.compile(rb"\A\s*" + FROM_LINE + rb"(?:>?From[^\n]*\n)?" + MAIL, FLAGS)
MESSAGE = re.compile(rb"\A\s*" + MAIL, FLAGS)
# What travels as a mail may be cut out of one: a signed message without a sender.
ENTITY = re.compile(
    rb"\A\s*(?=" + HEADERS + rb"mime-version:\s*1)" + HEADERS + rb"content-type:\s*(?:multipart/|message/rfc822)", FLAGS
)
# Enough where the name says what it is; some programs put the sender's line before a single mail, without a date.
ANY_HEADER = re.compile(rb"\A\s*(?:From [^\n]*\n)?[\w-]+[ \t]*:[^\n]*\n")
ANY_MAILBOX = re.compile(rb"\A\s*" + FROM_LINE)
PAGE_SUFFIXES = ("mht", "mhtml")
MAIL_SUFFIXES = ("eml",)
MAILBOX_SUFFIXES = ("mbox", "mbx")


def is_saved_page(start: bytes, suffix: str = "") -> bool:
    return bool(SAVED_PAGE.match(start) or (suffix in PAGE_SUFFIXES and RELATED.match(start)))


def is_mailbox(start: bytes, suffix: str = "") -> bool:
    return bool(MAILBOX.match(start) or (suffix in MAILBOX_SUFFIXES and ANY_MAILBOX.match(start)))


def is_mail(start: bytes, suffix: str = "") -> bool:
    is_named = suffix in MAIL_SUFFIXES and ANY_HEADER.match(start)
    return bool(MESSAGE.match(start) or ENTITY.match(start) or is_named)
