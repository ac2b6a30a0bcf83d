"""XML of unknown origin: no entity is expanded, nothing is fetched, and what would explode is refused."""

from lxml import etree

from kb.core.errors import JobFailure

OFF = ("0", "false", "off")  # how Office writes no
RESOURCE_LIMITS = ("Excessive depth", "nesting depth", "huge text node", "amplification", "Memory")


def parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )


def parse(data: bytes) -> etree._Element:
    try:
        root = etree.fromstring(data, parser())
    except etree.XMLSyntaxError as error:
        raise unreadable(error) from None
    refuse_bomb(root.getroottree())
    return root


def refuse_bomb(tree: etree._ElementTree) -> None:
    """Refuse entities made of entities: a kilobyte of them can stand for gigabytes. No real document has them."""
    dtd = tree.docinfo.internalDTD
    if dtd is not None and any("&" in (entity.content or "") for entity in dtd.iterentities()):
        raise JobFailure("too_complex", "Its XML declares entities that are made of entities, as XML bombs do.")


def unreadable(error: etree.XMLSyntaxError) -> JobFailure:
    text = str(error)
    if any(sign in text for sign in RESOURCE_LIMITS):
        return JobFailure("too_complex", f"Its XML is beyond what is read: {text[:200]}")
    return JobFailure("corrupt", f"Its XML is damaged: {text[:200]}")


def local(element: etree._Element) -> str:
    """An element's name without its namespace: strict and transitional files differ only there."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: etree._Element, name: str) -> str | None:
    """An attribute by its name without a namespace."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return None


def relation_id(element: etree._Element) -> str:
    """The id that leads to another part; slides and sheets also have an id of their own, without a namespace."""
    return next((str(value) for key, value in element.attrib.items() if str(key).endswith("}id")), "")


def child_value(element: etree._Element, name: str) -> str | None:
    """The `val` of a child: how Office writes a property."""
    child = element.find("{*}" + name)
    return None if child is None else attribute(child, "val")
