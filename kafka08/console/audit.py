"""The record of changes: who changed what, when, from where, before and after."""

from __future__ import annotations

import json
import logging

from kafka08.console import shown
from kafka08.errors import ConfigError
from kafka08.runtime import Clock

logger = logging.getLogger("kafka.console.Audit")


class Audit:
    """One line of JSON for each change, in the log, and in a file unless ``path`` is "".

    ``cluster``: its name, which the line has where the console shows several. Raises ConfigError if
    the file cannot be written.
    """

    def __init__(self, path: str, clock: Clock, cluster: str = "") -> None:
        self._path = path
        self._cluster = {"cluster": cluster} if cluster else {}
        self._clock = clock
        if path:
            try:
                with open(path, "a", encoding="utf-8"):
                    pass
            except OSError as error:
                raise ConfigError(
                    f"console.audit.file has value {path}: {error.strerror}"
                ) from None

    def record(
        self, user: str, address: str, action: str, target: str, before: object, after: object
    ) -> None:
        line = json.dumps(
            {
                "time": shown.moment(self._clock.millis()),
                "user": user,
                "from": address,
                **self._cluster,
                "action": action,
                "target": target,
                "before": before,
                "after": after,
            }
        )
        logger.info("%s", line)
        if self._path:
            try:
                with open(self._path, "a", encoding="utf-8") as file:
                    file.write(line + "\n")
            except OSError as error:
                logger.error("console.audit.file: %s: %s", self._path, error.strerror)
