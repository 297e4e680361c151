from __future__ import annotations

from typing import Any

from kafka08.protocol import acl_schemas as a
from kafka08.server.apis.no_acls import handlers

HEADER: Any = None
DISABLED = (54, "No Authorizer is configured.")
FILTER = a.AclFilter(2, "t", None, None, 1, 1)
NEW = a.NewAcl(2, "t", "User:a", "*", 3, 3)


def test_the_answer_says_that_there_are_no_rules() -> None:
    describe, create, delete = handlers()
    assert describe.handle(HEADER, a.DescribeAclsRequest(*FILTER)) == (0, *DISABLED, [])
    assert create.handle(HEADER, a.CreateAclsRequest([NEW, NEW])).results == [DISABLED] * 2
    assert delete.handle(HEADER, a.DeleteAclsRequest([FILTER])).results == [(*DISABLED, [])]


def test_a_failure_is_told_for_each_part_of_a_request() -> None:
    describe, create, delete = handlers()
    assert describe.failure(HEADER, a.DescribeAclsRequest(*FILTER), 7) == (0, 7, None, [])
    assert create.failure(HEADER, a.CreateAclsRequest([NEW]), 7).results == [(7, None)]
    answer = delete.failure(HEADER, a.DeleteAclsRequest([FILTER, FILTER]), 7)
    assert answer.results == [(7, None, [])] * 2
