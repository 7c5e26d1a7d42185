# SPDX-License-Identifier: Apache-2.0
"""Messages between horo.run() and ranks reach only ends that know the key, and reach them unchanged."""

import socket
import threading

import pytest

from horo._runner import talk as _talk

KEY = b"k" * 32


def pair(keys=(KEY, KEY), between=None):
    """Both ends of a connection; `between`, if given, relays their bytes. An end that has refused the
    other one is its OSError."""
    ends = [None, None]
    if between is None:
        sockets = socket.socketpair()
    else:
        (first, mine), (theirs, second) = socket.socketpair(), socket.socketpair()
        between(mine, theirs)
        sockets = (first, second)

    def begin(index):
        try:
            ends[index] = _talk.Talk(sockets[index], keys[index], asks=index == 0)
        except OSError as error:
            ends[index] = error

    threads = [threading.Thread(target=begin, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def relay(change):
    """Relays pieces. Those from the first to the second end go through `change(number, piece)`."""

    def pass_on(source, target, through):
        number = 0
        while True:
            piece = source.recv(1 << 16)
            if not piece:
                target.close()
                return
            target.sendall(through(number, piece))
            number += 1

    def between(first, second):
        for source, target, through in (
            (first, second, change),
            (second, first, lambda _number, piece: piece),
        ):
            threading.Thread(target=pass_on, args=(source, target, through), daemon=True).start()

    return between


def test_messages_of_any_length():
    rank, run = pair()
    messages = [b"", b"x", bytes(range(256)) * 20000]
    sender = threading.Thread(target=lambda: [rank.send(message) for message in messages])
    sender.start()
    assert [bytes(run.receive()) for _ in messages] == messages
    sender.join()
    run.send(b"back")
    assert rank.receive() == b"back"


@pytest.mark.parametrize("keys", ((KEY, b"x" * 32), (b"x" * 32, KEY)))
def test_another_key_is_refused_by_both_ends(keys):
    assert all(isinstance(end, OSError) for end in pair(keys))


def test_a_proof_cannot_be_sent_back():
    """An end without the key repeats the bytes that it receives."""
    connection, mine = socket.socketpair()

    def mirror():
        mine.sendall(mine.recv(1 << 10))
        mine.sendall(mine.recv(1 << 10) or b"0" * 32)

    threading.Thread(target=mirror, daemon=True).start()
    with pytest.raises(OSError):
        _talk.Talk(connection, KEY, asks=True)


def test_a_changed_message_is_refused():
    changing = threading.Event()

    def change(_number, piece):
        return piece.replace(b"good", b"evil") if changing.is_set() else piece

    rank, run = pair(between=relay(change))
    rank.send(b"good")
    assert run.receive() == b"good"
    changing.set()
    rank.send(b"good")
    with pytest.raises(OSError, match="changed"):
        run.receive()


def test_a_repeated_message_is_refused():
    kept = []

    def change(_number, piece):
        kept.append(piece)
        return piece

    rank, run = pair(between=relay(change))
    begun = len(kept)
    rank.send(b"once")
    assert run.receive() == b"once"
    run._socket, again = socket.socketpair()
    again.sendall(b"".join(kept[begun:]))
    with pytest.raises(OSError, match="changed"):
        run.receive()


def test_a_connection_that_ends_in_a_message_is_an_error():
    rank, run = pair()
    rank._socket.sendall(b"\xff" * 8)  # an impossible length
    rank._socket.close()
    with pytest.raises(OSError, match="closed"):
        run.receive()


def test_the_first_host_that_knows_the_key():
    """On the other hosts, another program may listen at this port."""
    listener = _talk.listen(everywhere=False)
    port = listener.getsockname()[1]
    strangers = []

    def accept():
        strangers.append(_accepted(listener, b"x" * 32))
        strangers.append(_accepted(listener, KEY))

    thread = threading.Thread(target=accept)
    thread.start()
    with _talk.connect(["127.0.0.1", "localhost"], port, KEY) as talk:
        thread.join()
        talk.send(b"hello")
        assert isinstance(strangers[0], OSError) and strangers[1].receive() == b"hello"
    listener.close()
    with pytest.raises(OSError, match=f"127.0.0.1:{port}.*; localhost:{port}"):
        _talk.connect(["127.0.0.1", "localhost"], port, KEY)


def _accepted(listener, key):
    try:
        return _talk.Talk(listener.accept()[0], key, asks=False)
    except OSError as error:
        return error


def test_listens_where_asked():
    with _talk.listen(everywhere=False) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    with _talk.listen(everywhere=True) as listener:
        assert listener.getsockname()[0] in ("::", "0.0.0.0")
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1])):
            pass
