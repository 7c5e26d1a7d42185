# SPDX-License-Identifier: Apache-2.0
"""Forwards frames between two network interfaces with a delay, like a long cable, or like a bad one or a firewall.

usage: late.py INTERFACE INTERFACE DELAY [lose=N] [deny=out|in[:ADDRESS]]     DELAY as 20ms, 500us, 1s

lose=N leaves out every Nth frame. deny=out leaves out the frames that open a TCP connection to another port than that of ssh
and come from the first interface, deny=in those that come from the second; with an address only connections to it.
"""

import collections
import re
import select
import socket
import struct
import sys
import time

SOL_PACKET, ADD_MEMBERSHIP, VNET_HDR, IGNORE_OUTGOING = 263, 1, 15, 23
PROMISCUOUS = 1
VNET_BYTES = 10  # The kernel puts so many bytes in front of each frame.
TCP, SYN, ACK = 6, 2, 16
EVERY_PROTOCOL = 3
BUFFER = 1 << 26
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def seconds(text):
    match = re.fullmatch(r"([0-9.]+)(s|ms|us)", text)
    if not match:
        sys.exit(f"not a delay: {text}")
    return float(match.group(1)) * UNITS[match.group(2)]


def open_port(interface):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, VNET_HDR, 1)  # large segments stay whole
    port.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    for option in (33, 32):  # SO_RCVBUFFORCE, SO_SNDBUFFORCE
        port.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    port.bind((interface, EVERY_PROTOCOL))
    port.setsockopt(SOL_PACKET, ADD_MEMBERSHIP,
                    struct.pack("IHH8s", socket.if_nametoindex(interface), PROMISCUOUS, 0, b""))
    port.setblocking(False)
    return port


def opens_connection(frame, address):
    """Whether the frame has the first packet of a TCP connection by IPv4 to this address, or to any; but for ssh."""
    packet = frame[VNET_BYTES + 14:]
    if frame[VNET_BYTES + 12:VNET_BYTES + 14] != b"\x08\x00" or len(packet) < 40 or packet[9] != TCP:
        return False
    if address and packet[16:20] != socket.inet_aton(address):
        return False
    segment = packet[4 * (packet[0] & 15):]
    return segment[13] & (SYN | ACK) == SYN and segment[2:4] != b"\x00\x16"


class Line:
    """One direction. `every`: every so many frames are lost, 0: none. `denies`: no connection to this address is opened in this
    direction; empty: to none; None: all are."""

    def __init__(self, port, other, every, denies):
        self.port, self._other, self._every, self._denies = port, other, every, denies
        self._seen = 0

    def take(self, due, waiting):
        for _ in range(64):
            try:
                frame = self.port.recv(1 << 17)
            except OSError:  # nothing more to read, or the interface is down
                return
            self._seen += 1
            lost = self._every and self._seen % self._every == 0
            if not lost and not (self._denies is not None and opens_connection(frame, self._denies)):
                waiting.append((due, self._other, frame))


def main():
    one, two = open_port(sys.argv[1]), open_port(sys.argv[2])
    delay = seconds(sys.argv[3])
    options = dict(word.split("=") for word in sys.argv[4:])
    every = int(options.get("lose", 0))
    direction, _, address = options.get("deny", "").partition(":")
    lines = {one: Line(one, two, every, address if direction == "out" else None),
             two: Line(two, one, every, address if direction == "in" else None)}
    waiting = collections.deque()  # in the order of their times, because all are delayed equally
    print("ready", flush=True)
    while True:
        limit = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for port in select.select([one, two], [], [], limit)[0]:
            lines[port].take(time.monotonic() + delay, waiting)
        while waiting and waiting[0][0] <= time.monotonic():
            _, port, frame = waiting.popleft()
            try:
                port.send(frame)
            except OSError:
                pass


if __name__ == "__main__":
    main()
