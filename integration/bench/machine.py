"""The facts about a machine that change the numbers of a benchmark."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_TCP = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def described() -> str:
    """``x86_64, 2 CPUs, Python 3.11.7, TCP with cubic``. Some kinds of TCP pace what is sent, which
    takes CPU time also on the loopback device."""
    tcp = _TCP.read_text().strip() if _TCP.exists() else "unknown congestion control"
    return (
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, "
        f"TCP with {tcp}"
    )
