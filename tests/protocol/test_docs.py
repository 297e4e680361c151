from __future__ import annotations

from pathlib import Path

from kafka08.protocol.docs import ERRORS, generate
from kafka08.protocol.registry import APIS

COMMITTED = Path(__file__).parents[2] / "docs" / "protocol.md"


def test_the_committed_file_is_what_the_schemas_say() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == generate()


def test_every_api_is_described() -> None:
    text = generate()
    assert set(ERRORS) == set(APIS)
    for api in APIS.values():
        assert f"\n## {api.key} {api.name}\n" in text
        for request, response in api.versions.values():
            assert f"\n`{request.__name__}`" in text
            assert f"\n`{response.__name__}`" in text
    assert "| `topics[].partitions[].message_set` | message set |" in text
