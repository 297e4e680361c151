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
        assert f"\n`{api.request.__name__}`" in text
        assert f"\n`{api.response.__name__}`" in text
    assert "| `topics[].partitions[].message_set` | message set |  |" in text
    assert "| `topics` | nullable array of string, nullable from 1 |  |" in text
    assert "| `transactional_id` | nullable string | 3+ |" in text
    assert "| `topics[].partitions[].max_num_offsets` | int32 | -0 |" in text
    assert "| `retention_time_ms` | int64 | 2-4 |" in text
