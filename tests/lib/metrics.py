"""Asks podqos-nri for its pages, over a unix socket ("unix:/path") or a loopback address ("127.0.0.1:9464")."""

import http.client
import re
import socket

import patience


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=patience.PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(patience.PATIENCE)
        self.sock.connect(self.path)


def request(address, path, method="GET"):
    """The answer, with its `text`."""
    if address.startswith("unix:"):
        connection = _UnixConnection(address.removeprefix("unix:"))
    else:
        host, port = address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=patience.PATIENCE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        return answer
    finally:
        connection.close()


def samples(address):
    """{'podqos_pods{qos_class="Burstable",owner="podqos"}': 1.0, ...}"""
    lines = request(address, "/metrics").text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def tiers(address, name):
    """{cgroup: value} of a metric of the tiers."""
    found = ((re.search(f'^{name}{{.*cgroup="([^"]*)"', sample), value) for sample, value in samples(address).items())
    return {match[1]: value for match, value in found if match}
