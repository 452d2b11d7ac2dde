"""Lease virtual networks with guaranteed bandwidth."""

from .client import Sublet
from .errors import BadInput, Conflict, Error, NotFound, Refused
from .network import Network
from .request import Link, Node, Request, bits
from .samples import Samples
from .session import Session

__all__ = [
    "BadInput", "Conflict", "Error", "Link", "Network", "Node", "NotFound",
    "Refused", "Request", "Samples", "Session", "Sublet", "bits",
]
