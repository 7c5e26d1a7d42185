#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo timeline-view --serve gives the page to browsers of this machine that know its address.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

trace=$HORO_SOURCE/tests/data/horovod-straggler.json.gz
horo timeline-view --serve "$trace" >"$scratch/address" 2>"$scratch/errors" </dev/null &
server=$!
until [ -s "$scratch/address" ]; do
  kill -0 $server 2>/dev/null || fail "the server has ended: $(cat "$scratch/errors")"
  sleep 0.05
done
try horo timeline-view --html "$scratch/page.html" "$trace"
python3 - "$(cat "$scratch/address")" "$scratch/page.html" <<'PY' || fail "what is served is wrong"
import http.client, re, socket, sys
port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", sys.argv[1]).groups()

def ask(path="/%s/" % token, method="GET", host="127.0.0.1:" + port, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders(body)
    answer = connection.getresponse()
    return answer, answer.read()

answer, page = ask()
assert answer.status == 200 and page == open(sys.argv[2], "rb").read(), answer.status
assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
assert "default-src 'none'" in answer.getheader("Content-Security-Policy")
assert answer.getheader("Referrer-Policy") == "no-referrer" and answer.getheader("Cache-Control") == "no-store"
assert ask(host="localhost:" + port)[0].status == 200
answer, body = ask(method="HEAD")
assert answer.status == 200 and body == b"" and int(answer.getheader("Content-Length")) == len(page)
# A site whose name resolves to this machine, or a request with a guessed key, gets nothing.
for host in "evil.example", "evil.example:" + port, "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:" + port, "":
    assert ask(host=host)[0].status == 421, host
assert ask(host=None)[0].status == 400
for path in "/", "/favicon.ico", "/%s" % token, "/%s/x" % token, "/" + "0" * 32 + "/", "//" + token + "/":
    assert ask(path)[0].status == 404, path
assert ask(method="POST", body=b"x")[0].status == 405
# Data that is not a request, or a request without an end, is refused.
def raw(text):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as connection:
        connection.sendall(text)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)
assert raw(b"hello\r\n\r\n").startswith(b"HTTP/1.1 400 ")
assert raw(b"GET / HTTP/1.1\r\nX: " + b"y" * 20000 + b"\r\n").startswith(b"HTTP/1.1 431 ")
# Many connections at once, some of which send nothing.
idle = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(20)]
assert ask()[0].status == 200
for connection in idle:
    connection.close()
# The server does not listen on other addresses of this machine.
try:
    socket.create_connection(("127.0.0.2", int(port)), timeout=5).close()
    raise SystemExit("another address answers")
except OSError:
    pass
PY
kill -TERM $server
wait $server
expect "exit code" $? 143
expect "standard error" "$(cat "$scratch/errors")" ""
expect "lines of standard output" "$(wc -l <"$scratch/address")" 1

try horo timeline-view --serve "$scratch/none"
expect "exit code without a file" "$code" 1
refused "exclude each other" horo timeline-view --serve --json "$trace"
