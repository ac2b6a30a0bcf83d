"""The names of a sheet's columns."""


def column_name(index: int) -> str:
    """0 is A, 26 is AA."""
    name = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        name = chr(ord("A") + letter) + name
        index -= 1
    return name


def column_index(name: str) -> int:
    """A is 0, AA is 26."""
    index = 0
    for letter in name:
        index = 26 * index + ord(letter) - ord("A") + 1
    return index - 1
