"""Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages."""

import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from belljar_guest import Contents, Provider

PIECES = (b"one ", b"two ", b"three")


class Relay(Provider):
    def read(self, reference: str) -> Contents:
        order, _, path = reference.partition("/")
        data = {"send": iter(PIECES), "post": b"".join(PIECES)}.get(order)
        request = Request(f"{os.environ['UPSTREAM']}/{path}", data, {"X-Own": "mine"})
        try:
            response = urlopen(request, timeout=0.1) if order == "soon" else urlopen(request)
        except HTTPError as error:
            if error.code != 404:
                raise
            response = error
        with response:
            if order != "count":
                return Contents(reference, f"{response.status} {response.read().decode()}")
            length = 0
            while piece := response.read(65536):
                length += len(piece)
            return Contents(reference, f"{response.status} {length}")
