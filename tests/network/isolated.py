"""A command in a network namespace without a way out, and a record of everything that it tried to reach.

    isolated.py RECORD COMMAND...

The namespace has a loopback interface only, and every route leads there: what is sent elsewhere is lost, but a packet
socket has seen it, whoever sent it and from which language. The exit code is that of the command, or UNABLE where no
such namespace can be made. Needs neither root nor another program.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

UNABLE = 77
LATE_SECONDS = 1.0  # for what a process that was left behind still sends
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCADDRT, IFF_UP, RTF_UP, RTF_LOCAL = 0x8913, 0x8914, 0x890B, 1, 1, 0x80000000
ETH_P_ALL, PACKET_OUTGOING, SOL_PACKET, PACKET_STATISTICS = 3, 4, 263, 6
PROTOCOLS = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp"}
DNS = 53
# Names are asked for on the network alone, where the question is seen, and never of another process.
FILES = {
    "/etc/resolv.conf": "nameserver 192.0.2.53\noptions timeout:1 attempts:1\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/var/run/nscd/socket": "",
}


def isolate() -> None:
    """Leave the network for an empty one, in which this process is root."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    for path, text in FILES.items():
        if os.path.exists(path):
            with tempfile.NamedTemporaryFile("w", delete=False) as file:
                file.write(text)
            os.chmod(file.name, 0o644)
            checked(libc.mount(file.name.encode(), path.encode(), None, MS_BIND, None))
            os.unlink(file.name)
    lead_everything_to_loopback()


def checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def lead_everything_to_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        flags = struct.unpack("16sH22x", request)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))
        name = ctypes.create_string_buffer(b"lo")
        anywhere = struct.pack("H14x", socket.AF_INET)
        route = (0, anywhere, anywhere, anywhere, RTF_UP, 0, 0, 0, 0, ctypes.addressof(name), 0, 0, 0)
        fcntl.ioctl(any_socket, SIOCADDRT, struct.pack("L16s16s16sHhLPhPLLH", *route))
    if not socket.has_ipv6:
        return
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
            index = socket.if_nametoindex("lo")
            route6 = struct.pack("16s16s16sIHHILIi", b"", b"", b"", 0, 0, 0, 1, 0, RTF_UP | RTF_LOCAL, index)
            fcntl.ioctl(any_socket, SIOCADDRT, route6)
    except OSError as without:  # a kernel without IPv6 has nothing to record
        sys.stderr.write(f"no IPv6 here: {without}\n")


class Recorder:
    """Sees every packet of the loopback interface and keeps where those went that were meant for elsewhere."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
        self._socket.bind(("lo", 0))
        self._found: dict[str, None] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def found(self) -> list[str]:
        time.sleep(LATE_SECONDS)
        _, missed = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return [*self._found, *([f"{missed} packets that were not looked at"] if missed else [])]

    def _listen(self) -> None:
        while True:
            packet, (_, _, direction, *_) = self._socket.recvfrom(512)
            if direction == PACKET_OUTGOING and (reached := foreign(packet)):
                self._found[reached] = None


def foreign(packet: bytes) -> str | None:
    """Where a packet goes, as people write it; None if it stays here. A question for a name never stays here."""
    if packet[0] >> 4 == 4:
        protocol, target, payload = packet[9], ip_address(packet[16:20]), packet[(packet[0] & 15) * 4 :]
    else:
        protocol, target, payload = packet[6], ip_address(packet[24:40]), packet[40:]
    if protocol not in PROTOCOLS:
        return None if target.is_loopback or target.is_multicast else f"protocol {protocol} to {target}"
    port = int.from_bytes(payload[2:4], "big")
    if target.is_loopback and port != DNS:
        return None
    name = f" for {asked_name(payload[8 + 12 :])}" if protocol == socket.IPPROTO_UDP and port == DNS else ""
    return f"{PROTOCOLS[protocol]} to {target} port {port}{name}"


def asked_name(question: bytes) -> str:
    labels = []
    while question and question[0]:
        labels.append(question[1 : 1 + question[0]].decode("ascii", "replace"))
        question = question[1 + question[0] :]
    return ".".join(labels)


def run(record: Path, command: list[str], environment: Mapping[str, str]) -> int:
    try:
        isolate()
        recorder = Recorder()
    except OSError as refused:
        sys.stderr.write(f"no network namespace can be made here: {refused}\n")
        return UNABLE
    code = subprocess.run(command, env=environment, check=False).returncode
    record.write_text(json.dumps(recorder.found()))
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:], os.environ))
