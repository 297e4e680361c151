"""The tables of APIs, and which version of a request is read and sent."""

from __future__ import annotations

from typing import Any, ForwardRef

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.registry import APIS, ORIGINAL_APIS, api_of, find_api, served_by
from kafka08.protocol.types import Struct


def test_the_tables() -> None:
    assert list(ORIGINAL_APIS) == [*range(13), 15, 19, 20, 32, 33, 37]
    assert all(api.last == (key in (8, 9, 19)) for key, api in ORIGINAL_APIS.items())
    checked = [key for key, api in ORIGINAL_APIS.items() if api.checks_version]
    assert checked == [8, 15, 19, 20, 32, 33, 37]
    assert all(api.checks_version for api in APIS.values())
    for api in [*APIS.values(), *ORIGINAL_APIS.values()]:
        version = 1 if api.key in (8, 9, 19, 29, 30, 31) else 0
        assert api_of(api.request) == (api.key, version, Struct(api.response, version))
    with pytest.raises(KeyError):
        api_of(g.HeartbeatResponse(0))


def test_schemas_keep_no_compiled_text_of_their_annotations() -> None:
    for api in [*APIS.values(), *ORIGINAL_APIS.values()]:
        for schema in (api.request, api.response):
            kinds = schema.__annotations__.values()
            assert not any(isinstance(each, ForwardRef) for each in kinds), schema


@pytest.mark.parametrize(
    ("request_class", "key"),
    [(s.OffsetCommitRequestV0, 8), (s.OffsetFetchRequestV0, 9), (a.CreateTopicsRequestV0, 19)],
)
def test_clients_choose_version_0_by_a_class(request_class: Any, key: int) -> None:
    assert api_of(request_class) == (key, 0, Struct(APIS[key].response))


def test_settings_with_their_sources_have_a_class() -> None:
    assert api_of(a.DescribeConfigsRequestV1) == (32, 1, Struct(a.DescribeConfigsResponse, 1))


def test_offsets_by_time_have_a_class() -> None:
    assert api_of(s.ListOffsetsRequest) == (2, 1, Struct(s.OffsetsResponse, 1))


def test_a_handler_of_a_later_version_serves_what_the_table_has() -> None:
    served = served_by(ORIGINAL_APIS, {0: 8, 8: 0, 18: 3})
    assert {key: list(api.versions) for key, api in served.items()} == {0: [0], 8: [0]}
    assert ORIGINAL_APIS[8].last == 1, "the table itself stays"


def test_the_version_that_is_read() -> None:
    assert [find_api(APIS, 1).version_read(version) for version in (0, 4, 11)] == [0, 4, 11]
    assert [find_api(ORIGINAL_APIS, 1).version_read(version) for version in (-1, 0, 9)] == [0] * 3
    with pytest.raises(ProtocolError, match="Version 12 is invalid for Fetch"):
        find_api(APIS, 1).version_read(12)
    with pytest.raises(ProtocolError, match="Wrong request type 18"):
        find_api(ORIGINAL_APIS, 18)
