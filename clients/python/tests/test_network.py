"""Against a lab: SUBLET_RUN says where its server is."""

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from sublet import BadInput, Conflict, Error, Link, NotFound, Node, Refused, Request, Sublet, bits

lab = pytest.mark.skipif("SUBLET_RUN" not in os.environ, reason="needs a lab: SUBLET_RUN is not set")


@pytest.fixture
def server():
    return Sublet()


def request(name, **link):
    return Request(name, nodes=[Node("a", memory="64MiB"), Node("b")], links=[Link("a", "b", **link)])


@lab
def test_life(server):
    with server.network(request("life", min="10Mbit", max="50Mbit")) as net:
        assert net.lease.state == "running"
        assert net.exec("a", "ping", "-c", "1", "-W", "5", "b").returncode == 0
        assert net.exec("a", "sh", "-c", "exit 7").returncode == 7
        assert net.exec("a", "sh", "-c", "cat; echo oops >&2", input="said").stdout == "said"
        with pytest.raises(subprocess.TimeoutExpired):
            net.exec("a", "sleep", "1000", timeout=1)
        assert "life" in [lease.request.network for lease in server.leases() if lease.state == "running"]
        with pytest.raises(Conflict):
            server.network(request("life", rate="1Mbit"))
    with pytest.raises(NotFound):
        server.lease(net.tenant, "never")
    assert server.lease(net.tenant, "life").state == "ended"


@lab
def test_sessions(server):
    with server.network(request("spoken", rate="10Mbit")) as net:
        with net.session("a", "sh", "-c", "wc -c; exit 7") as command:
            command.write(b"x" * 700_000)
            command.end_input()
            assert command.read().strip() == b"700000"
            assert command.exit == 7
        with pytest.raises(Error, match="no such node|no node"), net.session("c", "true") as command:
            command.read()
        with net.session("a", "sh", "-c", "echo ready; exec ping -i 0.1 b") as ping:
            assert next(iter(ping))[1].startswith(b"ready")
            with net.capture("a-b", count=2, seconds=30) as capture:
                assert capture.read().startswith(bytes.fromhex("0a0d0d0a"))
            ping.signal(2)
            ping.read()
            assert ping.exit == 0


@lab
def test_samples(server):
    with server.network(request("seen", rate="10Mbit")) as net:
        net.exec("a", "ping", "-c", "20", "-i", "0.05", "b")
        samples = net.samples(seconds=3)
        assert samples.values("a-b", "a")[-1] >= 20 * 98
        assert len(samples.rate("a-b", "a")) == len(samples.at("a-b", "a")) - 1
        assert samples.values("a-b", "b", "entered", "packets")[-1] >= 20
        assert samples.array("a-b", "a")["entered_bytes"].tolist() == samples.values("a-b", "a")


@lab
def test_released_after_an_error(server):
    with pytest.raises(ZeroDivisionError), server.network(request("gone", rate="1Mbit")) as net:
        1 / 0
    assert server.lease(net.tenant, "gone").state == "ended"


@lab
def test_refusals(server):
    with pytest.raises(Refused) as refused:
        server.network(request("much", min="900Gbit"))
    assert refused.value.reasons and refused.value.offers
    with server.network(request("much", min="900Gbit"), accept=True) as net:
        assert net.lease.state == "running"
    with pytest.raises(BadInput) as bad:
        server.network({"network": "no", "nodes": [{"name": "a", "memory_bytes": -1}]})
    assert "memory" in bad.value.path


@lab
def test_down(server):
    with server.network(request("cut", rate="1Mbit")) as net:
        net.link_down("a-b")
        assert net.exec("a", "ping", "-c", "1", "-W", "1", "b").returncode != 0


@pytest.mark.parametrize("text,number", [("10Mbit", 10**7), ("1.5Gbit", 1500000000), (7, 7), ("64 kbit", 64000)])
def test_rates(text, number):
    assert bits(text) == number


@pytest.mark.parametrize("text", ["10MB", "fast", "-1Mbit", "1e9"])
def test_rates_that_are_none(text):
    with pytest.raises(ValueError):
        bits(text)


@lab
def test_what_else_a_server_says(server):
    assert server.version().split(".")[0] == "1"
    assert server.waiting() == [] and server.maintenance() == []
    assert not server.notify().url
    with pytest.raises(NotFound):
        server.end_waiting("root", "never")


@lab
def test_waiting(server):
    answer = server.ask(request("later", min="900Gbit"), waiting="offer")
    assert answer.waiting and answer.waiting.why
    [one] = server.waiting()
    server.end_waiting(one.request.tenant, "later")
    assert server.waiting() == []


@lab
def test_maintenance(server):
    planned = server.add_maintenance("h1", timedelta(hours=1), datetime.now(UTC) + timedelta(days=30), note="a disk")
    assert [one.id for one in server.maintenance()] == [planned.id]
    server.remove_maintenance(planned.id)
    assert server.maintenance() == []


@lab
def test_by_token(server):
    made = server.call("POST", "/v1/tokens", {"scope": "write", "for_ns": 3600 * 10**9})
    try:
        with Sublet(token=made["token"]).network(request("shown", rate="1Mbit")) as net:
            assert net.exec("a", "echo", "hello").stdout == "hello\n"
        with pytest.raises(Error), Sublet(token=made["token"] + "x") as wrong:
            wrong.leases()
    finally:
        server.call("DELETE", f"/v1/tokens/{made['id']}")
