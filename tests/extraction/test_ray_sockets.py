"""A Ray of the command's own is for this machine alone: nothing of it listens elsewhere."""

import contextlib
import ipaddress
import os
from pathlib import Path

import pytest

from zsntta_cli.extraction.connection import _NETWORKED, connected

LISTENING = "0A"


def family(process: int) -> set[int]:
    """A process and all that it has started, as /proc has them."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            _, _, after_the_name = (folder / "stat").read_text().rpartition(")")
            parents[int(folder.name)] = int(after_the_name.split()[1])
    members, before = {process}, set()
    while members != before:
        before = members
        members = before | {child for child, parent in parents.items() if parent in before}
    return members


def sockets(processes) -> set[str]:
    """The inodes of their sockets."""
    links = set()
    for process in processes:
        for path in Path(f"/proc/{process}/fd").glob("*"):
            with contextlib.suppress(OSError):
                links.add(os.readlink(path))
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address of /proc/net/tcp or tcp6: words of 32 bits, each in the machine's order."""
    words = bytes.fromhex(text)
    packed = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
    found = ipaddress.ip_address(packed)
    return getattr(found, "ipv4_mapped", None) or found


def listening(processes) -> list[str]:
    """The addresses at which they can be reached."""
    own, addresses = sockets(processes), []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, _, _, _, _, _, inode, *_ = line.split()
            if state == LISTENING and inode in own:
                addresses.append(address(local.partition(":")[0]))
    return addresses


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux shows its sockets")
def test_nothing_listens_but_on_the_loopback(monkeypatch):
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with connected():
        assert ray.get(ray.remote(lambda: 1).remote()) == 1  # a worker is there
        addresses = listening(family(os.getpid()))
        assert len(addresses) >= 5, "those of Ray are found"
        assert [a for a in addresses if not a.is_loopback] == []
    assert _NETWORKED not in os.environ, "a later connection to a cluster is as ever"
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER
