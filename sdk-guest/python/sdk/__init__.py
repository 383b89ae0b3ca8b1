"""Write belljar resource providers in Python.

A provider needs no belljar: it runs in Python 3.11 as in a component. ``belljar_guest.component`` makes a component of
a provider.
"""

from .errors import Denied, Failed, Invalid, NotFound, ProviderError, Unavailable
from .model import Annotations, Argument, Contents, Icon, Info, Json, Page, Reading, Resource, Suggestions, Template
from .provider import Completion, Provider, Revisions
from .reference import decode, encode_path, encode_segment, split

__all__ = [
    "Annotations",
    "Argument",
    "Completion",
    "Contents",
    "Denied",
    "Failed",
    "Icon",
    "Info",
    "Invalid",
    "Json",
    "NotFound",
    "Page",
    "Provider",
    "ProviderError",
    "Reading",
    "Resource",
    "Revisions",
    "Suggestions",
    "Template",
    "Unavailable",
    "decode",
    "encode_path",
    "encode_segment",
    "split",
]
