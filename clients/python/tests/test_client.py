"""Against a server that is none (fake.py): no lab, no root."""

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trustme
from fake import Fake, Speaker, by_socket, by_tls

from sublet import BadInput, Error, Link, Network, Node, NotFound, Refused, Request, Samples, Sublet

VARIABLES = "RUN", "SERVER", "CA", "CERT", "KEY", "TOKEN", "TOKEN_FILE"
LEASE = "/v1/leases/alice/hello"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"SUBLET_{name}", raising=False)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake({"GET /v1/version": (200, {"api_version": "1.3"})})
    with by_socket(fake, tmp_path):
        yield fake


@pytest.fixture
def server(fake: Fake, tmp_path: Path) -> Iterator[Sublet]:
    with Sublet(str(tmp_path)) as server:
        yield server


@pytest.fixture
def net(server: Sublet) -> Network:
    return Network(server, {"tenant": "alice", "network": "hello", "links": [{"name": "a-b", "ends": ["a", "b"]}]})


def test_token_from_each_place(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.token = "secret"
    file = tmp_path / "token"
    file.write_text("secret\n")
    run = str(tmp_path)
    with pytest.raises(Error, match="show a token"):
        Sublet(run).version()
    assert Sublet(run, token="secret").version() == "1.3"
    assert Sublet(run, token_file=file).version() == "1.3"
    monkeypatch.setenv("SUBLET_TOKEN", "secret")
    assert Sublet(run).version() == "1.3"
    monkeypatch.setenv("SUBLET_TOKEN", "another")
    monkeypatch.setenv("SUBLET_TOKEN_FILE", str(file))
    assert Sublet(run).version() == "1.3"
    with pytest.raises(Error, match="show a token"):
        Sublet(run, token="stated").version()


@pytest.mark.parametrize("content", ["", " \n", "x" * 5000, "a b", "a\tb", "ä"])
def test_files_that_hold_no_token(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(ValueError, match="token"):
        Sublet(token_file=file)


def test_what_cannot_be_stated() -> None:
    for wrong in ({"token": "a", "token_file": "b"}, {"server": "there:1"}, {"server": "there", "token": "x"},
                  {"server": "one:1, two:2", "token": "x"}, {"token": "a\nb"}):
        with pytest.raises(ValueError):
            Sublet(**wrong)


def test_tls_by_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    fake = Fake({"GET /v1/version": (200, {"api_version": "1.3"})}, speak=echo, token="secret")
    with by_tls(fake, context) as address:
        ca = str(tmp_path / "ca.pem")
        with Sublet(server=address, ca=ca, token="secret") as server:
            assert server.version() == "1.3"
            assert Network(server, {"tenant": "alice", "network": "hello"}).exec("a", "cat", input="x").stdout == "x"
        with Sublet(server=address, ca=ca, token="wrong") as server, pytest.raises(Error, match="show a token"):
            server.session(f"{LEASE}/nodes/a/exec", {"argv": ["cat"]})
        with Sublet(server=f"localhost:1,{address}", ca=ca, token="secret") as server:
            assert server.version() == "1.3"
            assert Network(server, {"tenant": "alice", "network": "hello"}).exec("a", "cat", input="x").stdout == "x"
        with Sublet(server="localhost:1,localhost:2", ca=ca, token="secret") as server, pytest.raises(httpx.ConnectError):
            server.version()
        for name, value in (("SERVER", address), ("CA", ca), ("TOKEN", "secret")):
            monkeypatch.setenv(f"SUBLET_{name}", value)
        assert Sublet().version() == "1.3"


def echo(session: Speaker) -> None:
    """A cat: gives back what it gets, by a window of 256 KiB; exits with 3 if it is called false."""
    messages = session.messages()
    argv = json.loads(next(messages))["argv"]
    for message in messages:
        if message[0] == 2 and len(message) == 1:
            session.send(4, b"the end")
            session.exit(3 if argv == ["false"] else 0)
        elif message[0] == 2:
            session.send(3, message[1:])
            session.send(7, (len(message) - 1).to_bytes(4, "big"))


def test_exec(fake: Fake, net: Network) -> None:
    fake.speak = echo
    much = "0123456789" * 100_000
    done = net.exec("a", "cat", input=much)
    assert (done.args, done.returncode, done.stdout, done.stderr) == (["cat"], 0, much, "the end")
    assert net.exec("a", "false").returncode == 3
    with pytest.raises(subprocess.CalledProcessError) as failed:
        net.exec("a", "false", check=True)
    assert failed.value.stderr == "the end"
    assert {what for what, _ in fake.asked} == {f"GET {LEASE}/nodes/a/exec"}


def test_exec_that_is_over_at_once(fake: Fake, net: Network) -> None:
    def true(session: Speaker) -> None:
        next(session.messages())
        session.send(3, b"done")
        session.exit(0)

    fake.speak = true
    for _ in range(20):  # its end and the end of input cross each other
        assert net.exec("a", "true", input="x" * 100_000).stdout == "done"


def test_exec_that_takes_too_long(fake: Fake, net: Network) -> None:
    ended: list[bool] = []

    def sleep(session: Speaker) -> None:
        for _ in session.messages():
            pass
        ended.append(True)

    fake.speak = sleep
    with pytest.raises(subprocess.TimeoutExpired):
        net.exec("a", "sleep", "1h", timeout=0.2)
    until = time.monotonic() + 60
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    assert ended


def test_exec_that_goes_wrong(fake: Fake, net: Network) -> None:
    with pytest.raises(NotFound, match="nothing there"):
        net.exec("c", "true")
    fake.speak = lambda session: session.end(9, b"no such program")
    with pytest.raises(Error, match="no such program"):
        net.exec("a", "flase")
    fake.speak = lambda session: None
    with pytest.raises(Error, match="broke off"):
        net.exec("a", "true")


def test_life(fake: Fake, server: Sublet) -> None:
    request = Request("hello", nodes=[Node("a"), Node("b")], links=[Link("a", "b", rate="1Mbit")])
    fake.answers |= {
        "POST /v1/leases": (201, {"lease": {"request": {"tenant": "alice", "network": "hello"}}}),
        f"GET {LEASE}": (200, {"state": "running"}),
        f"DELETE {LEASE}": (200, {}),
    }
    with pytest.raises(ZeroDivisionError), server.network(request):
        1 / 0  # noqa: B018
    assert fake.asked[0] == ("POST /v1/leases", {"request": request.json(), "accept": False})
    assert [what.partition("?")[0] for what, _ in fake.asked[1:]] == [f"GET {LEASE}", f"DELETE {LEASE}", f"GET {LEASE}"]


def test_network_that_fails_is_released(fake: Fake, server: Sublet) -> None:
    fake.answers |= {
        "POST /v1/leases": (201, {"lease": {"request": {"tenant": "alice", "network": "hello"}}}),
        f"GET {LEASE}": (200, {"state": "failed", "message": "no image"}),
    }
    with pytest.raises(Error, match="hello is failed: no image"):
        server.network(Request("hello"))
    assert ("DELETE " + LEASE, None) in fake.asked


def test_errors(fake: Fake, server: Sublet) -> None:
    fake.answers["POST /v1/leases"] = 409, {"type": "urn:sublet:refused", "detail": "no room", "reasons": ["h1 is full"], "offers": [{}]}
    with pytest.raises(Refused, match="no room") as refused:
        server.ask(Request("hello"))
    assert (refused.value.reasons, refused.value.offers) == (["h1 is full"], [{}])
    fake.answers["POST /v1/leases"] = 400, {"type": "urn:sublet:bad-input", "detail": "not so", "path": "nodes[0]"}
    with pytest.raises(BadInput) as bad:
        server.ask(Request("hello"))
    assert bad.value.path == "nodes[0]"
    fake.answers["GET /v1/leases"] = 502, b"<h1>a proxy</h1>"
    with pytest.raises(Error, match="a proxy"):
        server.leases()
    fake.answers["GET /v1/watch"] = 403, {"detail": "not by this token"}
    with pytest.raises(Error, match="not by this token"):
        Network(server, {"tenant": "alice", "network": "hello"}).samples()


def test_waiting(fake: Fake, server: Sublet) -> None:
    waiting = {"request": {"network": "hello"}, "then": "admit", "why": "no room"}
    fake.answers |= {
        "POST /v1/leases": (202, {"waiting": waiting}),
        "GET /v1/waiting": (200, [waiting]),
        "DELETE /v1/waiting/alice/hello": (200, waiting),
    }
    answer = server.ask({"network": "hello"}, waiting="admit")
    assert answer.waiting and answer.waiting.why == "no room" and not answer.lease
    assert fake.asked[-1][1] == {"request": {"network": "hello"}, "accept": False, "waiting": "admit"}
    assert [one.then for one in server.waiting()] == ["admit"]
    assert server.end_waiting("alice", "hello").why == "no room"


def test_notify(fake: Fake, server: Sublet) -> None:
    fake.answers |= {
        "GET /v1/notify": (200, {"url": "https://here"}),
        "PUT /v1/notify": (200, {"url": "https://here", "secret": "s"}),
        "DELETE /v1/notify": (200, {}),
    }
    assert server.set_notify(url="https://here", tenant="a/b").secret == "s"
    assert fake.asked[-1] == ("PUT /v1/notify?tenant=a%2Fb", {"url": "https://here"})
    assert server.notify().url == "https://here"
    assert not server.remove_notify().url


def test_maintenance(fake: Fake, server: Sublet) -> None:
    planned = {"id": "m1", "host": "h1", "start": "2026-11-24T18:00:00Z", "leases": [{"tenant": "alice", "network": "hello"}]}
    fake.answers |= {
        "POST /v1/maintenance": (201, planned),
        "GET /v1/maintenance": (200, [planned]),
        "DELETE /v1/maintenance/m1": (200, planned),
    }
    start = datetime(2026, 11, 24, 18, tzinfo=UTC)
    assert server.add_maintenance("h1", timedelta(hours=2), start, note="a disk").start == start
    body = fake.asked[-1][1]
    assert datetime.fromisoformat(body.pop("start")) == start
    assert body == {"of": "h1", "for_ns": 7_200_000_000_000, "note": "a disk"}
    assert [one.host for one in server.maintenance()] == ["h1"]
    assert server.remove_maintenance("m1").id == "m1"


def sample(second: int, direction: int, value: int, name: str = "entered", cause: str = "") -> dict[str, object]:
    return {
        "kind": "vxlink", "at": f"2026-11-24T18:00:{second:02d}.5Z", "lease": {"tenant": "alice", "network": "hello"},
        "labels": {"link": "a-b", "direction": str(direction), "enters": "true"} | ({"cause": cause} if cause else {}),
        "counters": [{"name": name, "unit": "bytes", "value": value}],
    }


def seen() -> Samples:
    samples = Samples({"a-b": ["a", "b"]})
    for second, value in enumerate([0, 1000, 3000]):
        samples.add(sample(second, 0, value))
        samples.add(sample(second, 1, 7))
    for cause in "full", "down":
        samples.add(sample(2, 0, 50, "dropped", cause))
    return samples


def test_samples_as_lists() -> None:
    samples = seen()
    assert samples.values("a-b", "a") == [0, 1000, 3000]
    assert samples.values("a-b", "a", "dropped") == [100]
    assert samples.rate("a-b", "a") == [8000, 16000]
    assert samples.at("a-b", "b")[0] == datetime(2026, 11, 24, 18, 0, 0, 500_000, UTC)
    assert samples.values("a-b", "a", "never") == []
    for ends in ("a-c", "a"), ("a-b", "c"):
        with pytest.raises(KeyError):
            samples.values(*ends)


def test_samples_as_array() -> None:
    numpy = pytest.importorskip("numpy")
    table = seen().array("a-b", "a")
    assert table.dtype.names == ("at", "bps", "entered_bytes", "dropped_bytes")
    assert table["entered_bytes"].tolist() == [0, 1000, 3000]
    assert table["dropped_bytes"].tolist() == [0, 0, 100]
    assert numpy.isnan(table["bps"][0]) and table["bps"][1:].tolist() == [8000, 16000]
    assert table["at"][0] == numpy.datetime64("2026-11-24T18:00:00.5")
    assert len(Samples({"a-b": ["a", "b"]}).array("a-b", "a")) == 0


def test_samples_of_the_stream(fake: Fake, net: Network) -> None:
    others = sample(1, 0, 9) | {"lease": {"tenant": "bob", "network": "hello"}}
    lines = "".join(f"event: samples\ndata: {json.dumps(data)}\n\n" for data in ([sample(0, 0, 1), others], [sample(1, 0, 5)]))
    fake.answers["GET /v1/watch"] = 200, ("event: state\ndata: {}\n\n" + lines).encode()
    assert net.samples().values("a-b", "a") == [1, 5]


def test_captures_and_logs(fake: Fake, net: Network) -> None:
    def packets(session: Speaker) -> None:
        session.send(3, b"packets")
        session.exit(0)

    fake.speak = packets
    with net.capture("a-b", count=2, seconds=1.5) as capture:
        assert capture.read() == b"packets"
    with net.log("a", follow=True) as log:
        assert log.read() == b"packets"
    assert [what for what, _ in fake.asked] == [f"GET {LEASE}/links/a-b/capture?end=0&count=2&for=1.5s",
                                                f"GET {LEASE}/nodes/a/log?follow=true"]
