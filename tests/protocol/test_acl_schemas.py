"""Requests and answers about access rules, byte by byte, as later releases lay them out."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.protocol import acl_schemas as a
from tests.protocol.values import check_every_cut

USER, ANY_HOST = "0006 557365723a61", "0001 2a"
RULE = f"{USER} {ANY_HOST} 03 03"
BYTES: list[tuple[Any, int, str]] = [
    (a.DescribeAclsRequest(2, "t", None, None, 1, 1), 0, "02 0001 74 ffff ffff 01 01"),
    (a.DescribeAclsRequest(2, "t", None, None, 1, 1, 4), 1, "02 0001 74 04 ffff ffff 01 01"),
    (a.DescribeAclsRequest(1, None, "User:a", "*", 3, 3, 1), 1, f"01 ffff 01 {RULE}"),
    (a.DescribeAclsResponse(0, 54, "no", []), 1, "00000000 0036 0002 6e6f 00000000"),
    (
        a.DescribeAclsResponse(
            0, 0, None, [a.DescribedAcls(2, "t", [a.DescribedAcl("User:a", "*", 3, 3)], 4)]
        ),
        1,
        f"00000000 0000 ffff 00000001 02 0001 74 04 00000001 {RULE}",
    ),
    (
        a.CreateAclsRequest([a.NewAcl(2, "t", "User:a", "*", 3, 3)]),
        0,
        f"00000001 02 0001 74 {RULE}",
    ),
    (
        a.CreateAclsRequest([a.NewAcl(2, "t", "User:a", "*", 3, 3, 4)]),
        1,
        f"00000001 02 0001 74 04 {RULE}",
    ),
    (
        a.CreateAclsResponse(0, [a.CreatedAcl(0, None), a.CreatedAcl(42, "no")]),
        1,
        "00000000 00000002 0000 ffff 002a 0002 6e6f",
    ),
    (
        a.DeleteAclsRequest([a.AclFilter(1, None, None, None, 1, 1, 1)]),
        1,
        "00000001 01 ffff 01 ffff ffff 01 01",
    ),
    (
        a.DeleteAclsResponse(
            0, [a.DeletedAcls(0, None, [a.DeletedAcl(0, None, 2, "t", "User:a", "*", 3, 3, 4)])]
        ),
        1,
        f"00000000 00000001 0000 ffff 00000001 0000 ffff 02 0001 74 04 {RULE}",
    ),
]


@pytest.mark.parametrize(("value", "version", "data"), BYTES)
def test_bytes(value: Any, version: int, data: str) -> None:
    assert check_every_cut(type(value), bytes.fromhex(data), version) == value
