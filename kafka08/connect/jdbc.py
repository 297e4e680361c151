"""Connectors that copy rows of tables to topics, and messages to rows.

The options are those of the well-known JDBC connectors (io.confluent.connect.jdbc). The source
finds new rows by an incrementing column, a timestamp of the last change, or both. The sink inserts
rows, or replaces them by key so that messages written twice leave one row. ``database`` connects
to databases.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from kafka08.common import TopicPartition
from kafka08.connect.database import (
    Database,
    DatabaseError,
    Position,
    Query,
    Row,
    TableChange,
    create_table,
    database_class,
)
from kafka08.connect.interface import (
    ConnectError,
    Connector,
    DataError,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    Task,
    Value,
)
from kafka08.errors import ConfigError
from kafka08.settings.settings import LIST, Settings, dotted, one_of

logger = logging.getLogger("io.confluent.connect.jdbc")

_PASSWORD = re.compile(r"(password=|pwd=|://[^/@:]*:(?=[^/]*@))[^&;@]*", re.IGNORECASE)
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")


class ConnectionConfig(Settings):
    """All ``spark.*`` options go to the Spark session, which JDBC URLs need."""

    connection_url: str = dotted(doc="jdbc:..., or sqlite:PATH")
    connection_user: str = dotted("", doc="the database user")
    connection_password: str = dotted("", doc="the user's password")
    connection_driver: str = dotted("", doc="the driver's Java class")
    connection_jar: str = dotted("", doc="the driver's jar file")

    @property
    def shown_url(self) -> str:
        """The URL for errors and logs, without a password."""
        return _PASSWORD.sub(r"\1***", self.connection_url)

    def check(self) -> None:
        if not self.connection_url.startswith(("jdbc:", "sqlite:")):
            raise ConfigError(
                f"connection.url has value {self.shown_url} which is not jdbc:... or sqlite:..."
            )
        jar = self.connection_jar
        if jar and "://" not in jar and not Path(jar).is_file():
            raise ConfigError(f"connection.jar has value {jar} which is not a file.")


class SourceConfig(ConnectionConfig):
    mode: str = dotted(
        kind=one_of("bulk", "incrementing", "timestamp", "timestamp+incrementing"),
        doc="how new and changed rows are found; bulk: all rows each time",
    )
    table_whitelist: tuple[str, ...] = dotted((), LIST, doc="the tables")
    query: str = dotted("", doc="a SELECT instead of tables")
    topic_prefix: str = dotted(doc="prefix of the table's name; for a query, the whole topic")
    incrementing_column_name: str = dotted(
        "", doc="a column whose values only increase with new rows"
    )
    timestamp_column_name: str = dotted("", doc="a column with the time of a row's last change")
    timestamp_delay_interval_ms: int = dotted(
        0,
        low=0,
        doc="age at which changes are read, so that transactions that commit late are not missed",
    )
    poll_interval_ms: int = dotted(5000, low=0, doc="pause between two queries of a table")
    batch_max_rows: int = dotted(100, low=1, doc="most rows of one poll")
    connection_attempts: int = dotted(3, low=1, doc="tries before the task fails")
    connection_backoff_ms: int = dotted(10000, low=0, doc="pause between tries")

    def check(self) -> None:
        super().check()
        if bool(self.table_whitelist) == bool(self.query):
            raise ConfigError(
                "A JDBC source needs one of table.whitelist and query: table.whitelist has value "
                f"{','.join(self.table_whitelist)!r}, query has value {self.query!r}"
            )
        for name in ("incrementing", "timestamp"):
            if name in self.mode and not getattr(self, f"{name}_column_name"):
                raise ConfigError(f"mode has value {self.mode}, which needs {name}.column.name")


class JdbcTask(Task):
    """A task's connection, made when it is first needed."""

    _properties: Mapping[str, str]
    _database: Database | None = None

    def _connected(self) -> Database:
        """Raises DatabaseError."""
        if self._database is None:
            url = self._properties["connection.url"]
            self._database = database_class(url)(url, self._properties, self.context.name)
        return self._database

    def stop(self) -> None:
        if self._database is not None:
            try:
                self._database.close()
            except DatabaseError:
                logger.debug("A lost database", exc_info=True)
            self._database = None


class JdbcConnector(Connector):
    def start(self, properties: Mapping[str, str]) -> None:
        super().start(properties)
        database_class(properties["connection.url"])


class JdbcSourceTask(JdbcTask, SourceTask):
    """Offsets are {"timestamp": ..., "incrementing": ...} for each table or query."""

    def start(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._config = config = SourceConfig.from_properties(properties)
        self._tables = list(config.table_whitelist) or [""]
        self._after: dict[str, Position] = {}
        self._open_rows: Iterator[SourceRecord] | None = None
        self._turn = 0
        self._failures = 0

    def poll(self) -> Sequence[SourceRecord]:
        """Raises ConnectError if the database cannot be reached within all tries."""
        try:
            records = self._records()
        except DatabaseError as error:
            self.stop()
            self._failures += 1
            text = f"connection.url has value {self._config.shown_url}: {error}"
            if self._failures >= self._config.connection_attempts:
                raise ConnectError(text) from error
            logger.warning("%s; trying again", text)
            self.context.stopping.wait(self._config.connection_backoff_ms / 1000)
            return []
        self._failures = 0
        return records

    def stop(self) -> None:
        self._open_rows = None
        super().stop()

    def _records(self) -> list[SourceRecord]:
        database = self._connected()
        if self._open_rows is None:
            self._open_rows = self._look(database, self._tables[self._turn])
        records = list(islice(self._open_rows, self._config.batch_max_rows))
        if not records:
            self._open_rows = None
            self._turn = (self._turn + 1) % len(self._tables)
            if self._turn == 0:
                self.context.stopping.wait(self._config.poll_interval_ms / 1000)
        return records

    # --- reading one table

    def _look(self, database: Database, table: str) -> Iterator[SourceRecord]:
        config = self._config
        source = {"table": table} if table else {"query": config.query}
        topic = config.topic_prefix + table
        query = Query(
            table or f"({config.query})",
            config.timestamp_column_name if "timestamp" in config.mode else "",
            config.incrementing_column_name if "incrementing" in config.mode else "",
            self._place(table, source),
            config.timestamp_delay_interval_ms,
        )
        place = query.after
        before: tuple[Row, Position] | None = None
        for row in database.rows(query):
            here = (_value(row, query.timestamp), _value(row, query.incrementing))
            # Rows with one timestamp are one step: until all are read, the one before is kept.
            if before is not None:
                if query.incrementing or before[1] != here:
                    place = before[1]
                yield self._record(source, place, topic, before[0])
            before = (row, here)
        if before is not None:
            place = before[1]
            yield self._record(source, place, topic, before[0])
        self._after[table] = place

    def _place(self, table: str, source: Mapping[str, str]) -> Position:
        if table not in self._after:
            stored = self.context.offset(source) or {}
            self._after[table] = (stored.get("timestamp"), stored.get("incrementing"))
        return self._after[table]

    def _record(
        self, source: Mapping[str, str], place: Position, topic: str, row: Row
    ) -> SourceRecord:
        offset = {"timestamp": place[0], "incrementing": place[1]}
        return SourceRecord(source, offset, topic, dict(row))


def _value(row: Row, column: str) -> Value:
    """A row's value; the column's name may differ in case. Raises DatabaseError."""
    if not column:
        return None
    if column in row:
        return row[column]
    for name, value in row.items():
        if name.lower() == column.lower():
            return value
    raise DatabaseError(f"there is no column {column}, only {', '.join(row)}")


class JdbcSource(JdbcConnector, SourceConnector):
    settings = SourceConfig
    task_class = JdbcSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The tables, divided among the tasks."""
        tables = SourceConfig.from_properties(self.properties).table_whitelist
        shares = [tables[number::max_tasks] for number in range(max_tasks)]
        configs = [
            {**self.properties, "table.whitelist": ",".join(share)} for share in shares if share
        ]
        return configs or [dict(self.properties)]


# --- sink


class JdbcSinkConfig(ConnectionConfig):
    table_name_format: str = dotted("${topic}", doc="the table; ${topic} stands for the topic")
    insert_mode: str = dotted(
        "insert", kind=one_of("insert", "upsert"), doc="upsert: a row replaces the one with its key"
    )
    pk_mode: str = dotted(
        "none",
        kind=one_of("none", "kafka", "record_key", "record_value"),
        doc="what the primary key is: topic, partition and offset, or the message's key, or "
        "fields of its value",
    )
    pk_fields: tuple[str, ...] = dotted(
        (), LIST, doc="columns of the primary key; with kafka, three names"
    )
    auto_create: bool = dotted(False, doc="create missing tables")
    delete_enabled: bool = dotted(
        False, doc="a null value removes the row; needs pk.mode=record_key"
    )
    batch_size: int = dotted(3000, low=1, doc="messages written in one transaction")
    max_retries: int = dotted(10, low=0, doc="further tries after an error")

    def check(self) -> None:
        super().check()
        if self.insert_mode == "upsert" and self.pk_mode == "none":
            raise ConfigError("pk.mode has value none, but insert.mode=upsert needs a key")
        if self.pk_mode == "record_value" and not self.pk_fields:
            raise ConfigError("pk.mode has value record_value, which needs pk.fields")
        if self.pk_mode == "kafka" and len(self.pk_fields) not in (0, 3):
            raise ConfigError(
                f"pk.fields has value {','.join(self.pk_fields)}: pk.mode=kafka takes three names"
            )
        if self.delete_enabled and (self.pk_mode, self.insert_mode) != ("record_key", "upsert"):
            raise ConfigError(
                f"pk.mode has value {self.pk_mode} and insert.mode {self.insert_mode}, but "
                "delete.enabled needs record_key and upsert"
            )


class JdbcSinkTask(JdbcTask, SinkTask):
    def start(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._config = JdbcSinkConfig.from_properties(properties)
        self._failures = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records, in a transaction per table and ``batch.size`` messages.

        Raises RetriableError while tries are left, ConnectError afterwards.
        """
        try:
            for start in range(0, len(records), self._config.batch_size):
                self._write(records[start : start + self._config.batch_size])
        except DatabaseError as error:
            self.stop()
            self._failures += 1
            text = f"connection.url has value {self._config.shown_url}: {error}"
            if self._failures > self._config.max_retries:
                raise ConnectError(text) from error
            raise RetriableError(text) from error
        self._failures = 0

    def _write(self, records: Sequence[SinkRecord]) -> None:
        database = self._connected()
        tables: dict[str, list[SinkRecord]] = {}
        for record in records:
            name = self._config.table_name_format.replace("${topic}", record.topic)
            tables.setdefault(name, []).append(record)
        for table, own in tables.items():
            self._write_table(database, table, own)

    def _write_table(self, database: Database, table: str, records: Sequence[SinkRecord]) -> None:
        made = [rows_of(record, self._config) for record in records]
        keys = made[-1][0]
        rows = [row for _, row, gone in made if not gone]
        gone = [row for _, row, is_gone in made if is_gone]
        upsert = self._config.insert_mode == "upsert"
        if upsert:
            last = {tuple(row[key] for key in keys): (row, is_gone) for _, row, is_gone in made}
            rows = [row for row, is_gone in last.values() if not is_gone]
            gone = [row for row, is_gone in last.values() if is_gone]
        columns = list(dict.fromkeys(name for row in (*rows, *gone) for name in row))
        names = self._names(database, table, rows, columns, keys)
        own, removed = ([{names[c]: v for c, v in r.items()} for r in rs] for rs in (rows, gone))
        replaced = [names[key] for key in keys] if upsert else []
        database.replace(TableChange(table, list(names.values()), replaced, own, removed))

    def _names(
        self,
        database: Database,
        table: str,
        rows: Sequence[Row],
        columns: Sequence[str],
        keys: Sequence[str],
    ) -> dict[str, str]:
        """Field -> column of the table, whose name may differ in case."""
        there = database.columns(table)
        if not there and self._config.auto_create and rows:
            example = {name: _first(rows, name) for name in columns}
            database.execute([create_table(table, example, keys)])
            return {name: name for name in columns}
        if not there:
            raise ConnectError(
                f"table.name.format has value {self._config.table_name_format}, but there is no "
                f"table {table}, and auto.create is false"
            )
        lower = {name.lower(): name for name in there}
        names = {name: name if name in there else lower.get(name.lower(), "") for name in columns}
        missing = [name for name, found in names.items() if not found]
        if missing:
            raise ConnectError(
                f"Table {table} has no column {', '.join(missing)}; it has {', '.join(there)}"
            )
        return names

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Does nothing: ``put`` has written everything."""


def _first(rows: Sequence[Row], name: str) -> Value:
    return next((row[name] for row in rows if row.get(name) is not None), None)


def rows_of(record: SinkRecord, config: JdbcSinkConfig) -> tuple[tuple[str, ...], Row, bool]:
    """(key columns, the row, whether it is to be removed). Raises DataError."""
    where = f"The message at offset {record.offset} of {record.topic}-{record.partition}"
    gone = record.value is None
    if gone and not config.delete_enabled:
        raise DataError(f"{where} has no value; delete.enabled=true removes its row")
    if not gone and not isinstance(record.value, Mapping):
        raise DataError(
            f"{where} is not an object with fields: value.converter must make one of it"
        )
    row = dict(record.value or {})
    keys: tuple[str, ...] = config.pk_fields
    if config.pk_mode == "none":
        return (), row, gone
    if config.pk_mode == "kafka":
        keys = keys or KAFKA_COLUMNS
        row.update(zip(keys, (record.topic, record.partition, record.offset), strict=True))
    elif config.pk_mode == "record_key":
        found = record.key
        if not isinstance(found, Mapping):
            if len(keys) != 1 or found is None:
                raise DataError(
                    f"{where} has key {found!r}; pk.fields has value {','.join(keys)}: "
                    "one name for a plain key, any for an object"
                )
            found = {keys[0]: found}
        keys = keys or tuple(found)
        row.update({key: found.get(key) for key in keys})
    absent = [key for key in keys if row.get(key) is None]
    if absent:
        raise DataError(f"{where} has no {', '.join(absent)}, which pk.fields asks for")
    return keys, row, gone


class JdbcSink(JdbcConnector, SinkConnector):
    settings = JdbcSinkConfig
    task_class = JdbcSinkTask
