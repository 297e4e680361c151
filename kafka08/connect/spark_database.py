"""A database with a JDBC driver, read and written by Spark.

Spark's JDBC source reads, maps each database's types and pushes conditions down to it. Rows are
written by Spark into a staging table beside the target, and moved from there in one transaction of
plain SQL: DELETE the rows with these keys, INSERT the new ones.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kafka08.connect.database import DatabaseError, Query, Row, TableChange, quoted, table_name
from kafka08.connect.interface import ConnectError, Value
from kafka08.connect.spark_session import session
from kafka08.spark.errors import JobError
from kafka08.spark.files.hadoop import Java

TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_SIZED = re.compile(r"(N?VAR)?CHAR2?|CHARACTER( VARYING)?|BPCHAR|NVARCHAR2?", re.IGNORECASE)
_EXACT = re.compile(r"DECIMAL|NUMERIC|NUMBER", re.IGNORECASE)


class SparkDatabase:
    """``name`` is the task's; the staging table is named after it."""

    def __init__(self, url: str, properties: Mapping[str, str], name: str) -> None:
        self._suffix = "_kafka08_" + re.sub(r"\W", "_", name)
        self._options = {"url": url, "preferTimestampNTZ": "true"}
        for option in ("user", "password", "driver"):
            if properties.get(f"connection.{option}"):
                self._options[option] = properties[f"connection.{option}"]
        self._staged: set[str] = set()
        with _errors():
            try:
                self._spark = session(properties, properties.get("connection.jar", ""))
            except JobError as error:
                raise ConnectError(str(error)) from None
            jvm: Java = self._spark.sparkContext._jvm
            if "driver" in self._options:
                jvm.java.lang.Class.forName(self._options["driver"])
            login = jvm.java.util.Properties()
            for option in ("user", "password"):
                if option in self._options:
                    login.setProperty(option, self._options[option])
            self._connection = jvm.java.sql.DriverManager.getConnection(url, login)

    def close(self) -> None:
        with _errors():
            self._connection.close()

    # --- plain SQL

    def execute(self, statements: Iterable[str]) -> None:
        with _errors():
            self._connection.setAutoCommit(False)
            statement = self._connection.createStatement()
            try:
                for sql in statements:
                    statement.executeUpdate(sql)
                self._connection.commit()
            except BaseException:
                with suppress(Py4JError):
                    self._connection.rollback()
                raise
            finally:
                with suppress(Py4JError):
                    statement.close()
                    self._connection.setAutoCommit(True)

    def columns(self, table: str) -> list[str]:
        return [name for name, _ in self._described(table)]

    def _described(self, table: str) -> list[tuple[str, str]]:
        """(column, its type in DDL); empty if the table does not exist."""
        with _errors():
            valid = self._connection.isValid(10)
        if not valid:
            raise DatabaseError("the connection is closed")
        with _errors():
            statement = self._connection.createStatement()
            try:
                rows = statement.executeQuery(f"SELECT * FROM {table_name(table)} WHERE 1 = 0")
            except Py4JJavaError:
                return []
            about = rows.getMetaData()
            found = [
                (about.getColumnLabel(n), _ddl(about, n))
                for n in range(1, about.getColumnCount() + 1)
            ]
            statement.close()
            return found

    # --- reading

    def _load(self, table: str) -> DataFrame:
        return self._spark.read.format("jdbc").options(**self._options, dbtable=table).load()

    def rows(self, query: Query) -> Iterator[Row]:
        source = query.source
        with _errors():
            frame = self._load(f"{source} q" if source.startswith("(") else table_name(source))
            types = {field.name.lower(): field.dataType for field in frame.schema.fields}
            for name in (query.timestamp, query.incrementing):
                if name and name.lower() not in types:
                    raise DatabaseError(
                        f"there is no column {name}, only {', '.join(frame.columns)}"
                    )
            for condition in _conditions(query, types):
                frame = frame.where(condition)
            order = [F.col(name) for name in (query.timestamp, query.incrementing) if name]
            if order:
                frame = frame.orderBy(*order)
            frame = frame.select(*map(_plain, frame.schema.fields))
            for row in frame.toLocalIterator():
                yield {
                    name: bytes(value) if isinstance(value, bytearray) else value
                    for name, value in row.asDict().items()
                }

    # --- writing

    def replace(self, change: TableChange) -> None:
        if change.gone:
            self._merge(change._replace(columns=change.keys, rows=change.gone), insert=False)
        if change.rows:
            self._merge(change, insert=True)

    def _merge(self, change: TableChange, *, insert: bool) -> None:
        table, columns, keys, rows, _ = change
        stage = self._stage(table)
        self.execute([f"DELETE FROM {stage}"])
        with _errors():
            fields = [f for f in self._load(stage).schema.fields if f.name in columns]
            for present, alike in _by_fields(fields, rows).items():
                self._append(stage, StructType(list(present)), alike)
        target, names = table_name(table), ", ".join(map(quoted, columns))
        same = " AND ".join(f"s.{quoted(key)} = {target}.{quoted(key)}" for key in keys)
        statements = []
        if keys:
            inner = f"SELECT 1 FROM {stage} s WHERE {same}"
            statements.append(f"DELETE FROM {target} WHERE EXISTS ({inner})")
        if insert:
            statements.append(f"INSERT INTO {target} ({names}) SELECT {names} FROM {stage}")
        self.execute(statements)

    def _append(self, stage: str, schema: StructType, rows: Sequence[Row]) -> None:
        documents = ({name: row.get(name) for name in schema.names} for row in rows)
        texts = [(json.dumps(document, default=_text),) for document in documents]
        frame = self._spark.createDataFrame(texts, "value string")
        parsed = F.from_json("value", schema, {"mode": "FAILFAST"})
        frame = frame.select(parsed.alias("v")).select("v.*")
        frame.write.format("jdbc").options(**self._options, dbtable=stage).mode("append").save()

    def _stage(self, table: str) -> str:
        """The staging table of ``table``, with its columns. Each connection recreates it."""
        stage = table_name(table.replace('"', "") + self._suffix)
        if stage not in self._staged:
            with suppress(DatabaseError):
                self.execute([f"DROP TABLE {stage}"])
            columns = ", ".join(f"{quoted(name)} {ddl}" for name, ddl in self._described(table))
            self.execute([f"CREATE TABLE {stage} ({columns})"])
            self._staged.add(stage)
        return stage


def _by_fields(
    fields: Sequence[StructField], rows: Sequence[Row]
) -> dict[tuple[StructField, ...], list[Row]]:
    """Rows grouped by the fields to write. Null strings and bytes are left out, because Spark
    writes them to Derby and DB2 as null CLOBs and BLOBs, which other columns do not accept."""
    found: dict[tuple[StructField, ...], list[Row]] = {}
    for row in rows:
        present = tuple(
            field
            for field in fields
            if not isinstance(field.dataType, StringType | BinaryType)
            or row.get(field.name) is not None
        )
        found.setdefault(present or tuple(fields), []).append(row)
    return found


def _ddl(about: Java, number: int) -> str:
    name, size = about.getColumnTypeName(number), about.getPrecision(number)
    if "()" in name:  # Derby: VARCHAR () FOR BIT DATA
        return str(name.replace("()", f"({size})"))
    if _SIZED.fullmatch(name) and 0 < size < 1 << 20:
        return f"{name}({size})"
    if _EXACT.fullmatch(name) and size > 0:
        return f"{name}({size}, {about.getScale(number)})"
    return str(name)


def _conditions(query: Query, types: Mapping[str, DataType]) -> Iterator[Column]:
    def literal(value: Value, name: str) -> Column:
        return F.lit(value).cast(types[name.lower()])

    moment, number = query.after
    if query.timestamp:
        timestamp = F.col(query.timestamp)
        yield timestamp.isNotNull()
        if query.delay_ms:
            now = F.unix_millis(F.current_timestamp())
            limit = F.timestamp_millis(now - query.delay_ms)
            yield timestamp <= limit.cast(types[query.timestamp.lower()])
        if moment is not None and query.incrementing:
            then = literal(moment, query.timestamp)
            more = F.col(query.incrementing) > literal(number, query.incrementing)
            yield (timestamp > then) | ((timestamp == then) & more)
        elif moment is not None:
            yield timestamp > literal(moment, query.timestamp)
    elif query.incrementing and number is not None:
        yield F.col(query.incrementing) > literal(number, query.incrementing)


def _plain(field: StructField) -> Column:
    column = F.col(quoted(field.name).replace('"', "`"))
    if isinstance(field.dataType, TimestampType | TimestampNTZType):
        return F.date_format(column, TIME).alias(field.name)
    if isinstance(field.dataType, DateType | DecimalType):
        return column.cast("string").alias(field.name)
    return column


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise DatabaseError(_first_line(str(error.java_exception))) from error
    except (Py4JError, PySparkException, OSError) as error:
        raise DatabaseError(_first_line(str(error))) from error


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
