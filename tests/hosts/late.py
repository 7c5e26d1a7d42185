# SPDX-License-Identifier: Apache-2.0
"""Forwards frames between two network interfaces with a delay, like a long cable.

usage: late.py INTERFACE INTERFACE DELAY     DELAY as 20ms, 500us, 1s
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


def take(port, other, due, waiting):
    for _ in range(64):
        try:
            waiting.append((due, other, port.recv(1 << 17)))
        except OSError:  # nothing more to read, or the interface is down
            return


def main():
    one, two = open_port(sys.argv[1]), open_port(sys.argv[2])
    delay = seconds(sys.argv[3])
    waiting = collections.deque()  # in the order of their times, because all are delayed equally
    print("ready", flush=True)
    while True:
        limit = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for port in select.select([one, two], [], [], limit)[0]:
            take(port, two if port is one else one, time.monotonic() + delay, waiting)
        while waiting and waiting[0][0] <= time.monotonic():
            _, port, frame = waiting.popleft()
            try:
                port.send(frame)
            except OSError:
                pass


if __name__ == "__main__":
    main()
