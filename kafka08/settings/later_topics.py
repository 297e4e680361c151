"""Topic settings of later releases that change nothing here.

Values that mean what this broker does anyway are accepted, as tools write them as a matter of
course; any other value is refused with the reason. A value that is in ZooKeeper already, written by
a tool without a broker, has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.errors import ConfigError
from kafka08.settings.settings import BOOLEAN, INT, LONG, Kind, Settings, dotted, one_of

_NO_TIERS = "There is no remote storage: all segments are in the data directories."
_NO_CODEC = "No effect, as in Kafka while `compression.type` is producer."
_NO_REMOTE = "No effect, as in Kafka while `remote.storage.enable` is false."


def _lower(text: str) -> str:
    return text.strip().lower()


_SWITCH = BOOLEAN._replace(parse=_lower, choices=("false",))


class LaterTopicSettings(Settings):
    """The settings, with the values that are accepted."""

    compression_type: str = dotted(
        "producer",
        kind=one_of("producer"),
        doc="Messages are stored with the codec of their producer.",
    )
    compression_gzip_level: str = dotted(
        "-1", Kind(INT.name, str.strip, choices=("-1", *"123456789")), doc=_NO_CODEC
    )
    compression_lz4_level: int = dotted(9, low=1, high=17, doc=_NO_CODEC)
    compression_zstd_level: int = dotted(3, low=-131072, high=22, doc=_NO_CODEC)
    preallocate: str = dotted("false", _SWITCH, doc="Segments grow as messages are appended.")
    remote_storage_enable: str = dotted("false", _SWITCH, doc=_NO_TIERS)
    remote_log_copy_disable: str = dotted("false", _SWITCH, doc=_NO_TIERS)
    remote_log_delete_on_disable: str = dotted("false", _SWITCH, doc=_NO_TIERS)
    local_retention_ms: int = dotted(-2, LONG, low=-2, doc=_NO_REMOTE)
    local_retention_bytes: int = dotted(-2, LONG, low=-2, doc=_NO_REMOTE)

    @classmethod
    def refuse_others(cls, properties: Mapping[str, str]) -> None:
        """Raises ConfigError, with the reason, for a value that is not accepted."""
        for described in cls.settings().values():
            value = properties.get(described.key)
            if value is None:
                continue
            try:
                described.parse(value)
            except ConfigError as error:
                reason = "" if described.doc in (_NO_CODEC, _NO_REMOTE) else f" {described.doc}"
                raise ConfigError(f"{error}{reason}") from None
