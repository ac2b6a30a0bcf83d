"""Sizes as a person reads them. 1 KB has 2^10 bytes, 1 MB has 2^20."""


def readable_size(size: float) -> str:
    """The size in the largest unit of which there is at least one: `5 bytes`, `64.0 KB`, `1.5 MB`."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size:.0f} bytes"
    units = ["KB", "MB", "GB", "TB"]
    size /= 1024
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.1f} {units[0]}"
