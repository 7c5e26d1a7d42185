# SPDX-License-Identifier: Apache-2.0
"""Messages between horo.run() and its ranks over TCP, also between hosts.

Both ends prove that they know the key of the call before they read each other's messages, because
messages are unpickled. Every message ends with a tag over its bytes, its number and its direction.
An attacker between the two ends can therefore read messages, but cannot change, repeat or drop
them unnoticed.
"""

import hmac
import secrets
import socket
import struct

PATIENCE_S = 20  # limit for connecting and for both proofs
STALLED_S = 300  # limit without any byte in the middle of a message
_NONCE = 32
_TAG = 32
_PIECE = 1 << 20
_LENGTH = struct.Struct("<Q")
_NUMBER = struct.Struct("<Q")


class Refused(OSError):
    """The other end does not know the key, or a message was changed."""


def _mac(key, *parts):
    code = hmac.new(key, digestmod="sha256")
    for part in parts:
        code.update(part)
    return code.digest()


class Talk:
    """A connection whose two ends have proved that they know the key. `with` closes the socket."""

    def __init__(self, connection, key, asks):
        """`asks`: whether this end has connected to the other one. Fails: OSError."""
        self._socket = connection
        self._sent, self._received = 0, 0
        self._ways = (b"to run", b"to rank") if asks else (b"to rank", b"to run")
        connection.settimeout(PATIENCE_S)
        try:
            self._session = self._prove(key, asks)
        except BaseException:
            connection.close()
            raise
        connection.settimeout(STALLED_S)

    def _prove(self, key, asks):
        mine = secrets.token_bytes(_NONCE)
        self._socket.sendall(mine)
        theirs = self._take(_NONCE)
        nonces = mine + theirs if asks else theirs + mine
        own, other = (b"rank", b"run") if asks else (b"run", b"rank")
        if asks:
            self._socket.sendall(_mac(key, own, nonces))
        if not hmac.compare_digest(self._take(_TAG), _mac(key, other, nonces)):
            raise Refused("it does not know the key of this horo.run()")
        if not asks:
            self._socket.sendall(_mac(key, own, nonces))
        return _mac(key, b"session", nonces)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, message):
        tag = _mac(self._session, self._ways[0], _NUMBER.pack(self._sent), message)
        self._sent += 1
        self._socket.sendall(_LENGTH.pack(len(message)))
        self._socket.sendall(message)
        self._socket.sendall(tag)

    def receive(self):
        """The next message. Fails: OSError."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
        message = self._take(length)
        tag = _mac(self._session, self._ways[1], _NUMBER.pack(self._received), message)
        self._received += 1
        if not hmac.compare_digest(self._take(_TAG), tag):
            raise Refused("a message was changed on its way")
        return message

    def _take(self, count):
        taken = bytearray()  # grows as bytes arrive: a received length alone allocates nothing
        while len(taken) < count:
            piece = self._socket.recv(min(count - len(taken), _PIECE))
            if not piece:
                raise Refused("it closed the connection")
            taken += piece
        return taken


def listen(everywhere):
    """A listening socket, on all addresses of this host or on its loopback only."""
    if not everywhere:
        return socket.create_server(("127.0.0.1", 0), backlog=1024)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", 0), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True
        )
    return socket.create_server(("", 0), backlog=1024)


def connect(hosts, port, key):
    """A Talk with the first of the hosts that knows the key. Fails: OSError, with the reason of
    each host."""
    problems = []
    for host in dict.fromkeys(hosts):
        try:
            return Talk(socket.create_connection((host, port), timeout=PATIENCE_S), key, asks=True)
        except OSError as error:
            problems.append(f"{host}:{port}: {error}")
    raise OSError("; ".join(problems))
