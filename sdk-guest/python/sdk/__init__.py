"""Write belljar providers of resources, tools, prompts and skills in Python.

A provider needs no belljar: it runs in Python 3.11 as in a component. ``belljar_guest.component`` makes a component of
a provider.
"""

from . import progress
from .calls import (
    Answer,
    Ask,
    Audio,
    Block,
    Context,
    Embedded,
    Image,
    Link,
    Message,
    PromptArgument,
    PromptInfo,
    PromptResult,
    Question,
    Skill,
    SkillPage,
    Text,
    ToolInfo,
    ToolResult,
    View,
)
from .errors import Denied, Failed, Invalid, NotFound, ProviderError, Unavailable
from .model import Annotations, Argument, Contents, Icon, Info, Json, Page, Reading, Resource, Suggestions, Template
from .parts import Extent, PartialReading, Range
from .prompts import prompt
from .provider import Completion, Parts, Provider, Revisions, Skills
from .reference import decode, encode_path, encode_segment, split
from .schema import Field
from .tools import tool

__all__ = [
    "Annotations",
    "Answer",
    "Argument",
    "Ask",
    "Audio",
    "Block",
    "Completion",
    "Contents",
    "Context",
    "Denied",
    "Embedded",
    "Extent",
    "Failed",
    "Field",
    "Icon",
    "Image",
    "Info",
    "Invalid",
    "Json",
    "Link",
    "Message",
    "NotFound",
    "Page",
    "PartialReading",
    "Parts",
    "PromptArgument",
    "PromptInfo",
    "PromptResult",
    "Provider",
    "ProviderError",
    "Question",
    "Range",
    "Reading",
    "Resource",
    "Revisions",
    "Skill",
    "SkillPage",
    "Skills",
    "Suggestions",
    "Template",
    "Text",
    "ToolInfo",
    "ToolResult",
    "Unavailable",
    "View",
    "decode",
    "encode_path",
    "encode_segment",
    "progress",
    "prompt",
    "split",
    "tool",
]
