from __future__ import annotations

from contextlib import closing

import pytest

from integration.harness import EPHEMERAL_PORTS, claim_ports


def test_processes_side_by_side_have_ports_of_their_own() -> None:
    one, ports = claim_ports("30000-30099")
    with closing(one):
        other, next_ports = claim_ports("30000-30099")
        with closing(other):
            assert len(ports) == len(next_ports) == 99
            assert not set(ports) & set(next_ports)
            assert one.getsockname()[1] == ports.start - 1
    again, same_ports = claim_ports(f"{ports.start - 1}-{ports.stop - 1}")
    with closing(again):
        assert same_ports == ports


def test_all_ports_are_claimed() -> None:
    last = f"{EPHEMERAL_PORTS - 99}-{EPHEMERAL_PORTS}"
    with pytest.raises(RuntimeError, match=f"all ports from {EPHEMERAL_PORTS - 99} on"):
        claim_ports(last)
