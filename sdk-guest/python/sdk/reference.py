"""Converts between percent-encoded references and decoded paths and names.

Encode once when listing, decode once when reading.
"""

from urllib.parse import quote, unquote_to_bytes

from .errors import Invalid

# The characters that a segment may contain besides letters, digits and "-._~" (RFC 3986, section 3.3). A ":" is allowed,
# but not in the first segment of a relative reference (section 4.2), so it is encoded everywhere.
_SEGMENT = "!$&'()*+,;=@"


def encode_segment(segment: str) -> str:
    """Encodes one segment of a path, such as a file name. A ``/`` in it becomes ``%2F``."""
    return quote(segment, safe=_SEGMENT)


def encode_path(path: str) -> str:
    """Encodes a relative path. Each ``/`` stays a ``/``."""
    return quote(path, safe=_SEGMENT + "/")


def decode(reference: str) -> str:
    """Decodes a reference, or a part of one. Raises ``Invalid`` when it is not UTF-8 once decoded."""
    try:
        return unquote_to_bytes(reference).decode()
    except UnicodeDecodeError:
        raise Invalid(f'"{reference}" is not UTF-8 once decoded') from None


def split(reference: str) -> tuple[str, dict[str, str]]:
    """Splits a reference at its first ``?`` into its path, still encoded, and the decoded values of its query."""
    path, _, query = reference.partition("?")
    values: dict[str, str] = {}
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            values.setdefault(decode(name), decode(value))
    return path, values
