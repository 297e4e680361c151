"""The JVM of a driver, and the directories of whichever file systems Hadoop knows by a URI."""

from __future__ import annotations

from typing import Any, TypeAlias

from pyspark import SparkContext

from kafka08.spark.files.offset_log import Files

# An object of py4j, which finds attributes and methods by their names when they are used.
Java: TypeAlias = Any


class HadoopFiles(Files):
    """The directory of ``uri``; a name may be that of a file deeper in it.

    Raises what Hadoop does (Py4JJavaError) for a URI it cannot use.
    """

    def __init__(self, sc: SparkContext, uri: str) -> None:
        jvm: Java = sc._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        given = self._make_path(uri)
        self.system: Java = given.getFileSystem(sc._jsc.hadoopConfiguration())
        self._root = self.system.makeQualified(given)
        self._read_all = jvm.org.apache.commons.io.IOUtils.toByteArray

    def path(self, name: str = "") -> Java:
        """Absolute, with its scheme."""
        return self._make_path(self._root, name) if name else self._root

    def names(self, below: str = "") -> list[str]:
        path = self.path(below)
        if not self.system.exists(path):
            return []
        return [each.getPath().getName() for each in self.system.listStatus(path)]

    def read(self, name: str) -> bytes | None:
        path = self.path(name)
        if not self.system.exists(path):
            return None
        stream = self.system.open(path)
        try:
            return bytes(self._read_all(stream))
        finally:
            stream.close()

    def store(self, name: str, data: bytes) -> None:
        """Durable when it returns; readers may see a part of it before."""
        stream = self.system.create(self.path(name), True)
        try:
            stream.write(data)
            stream.hsync()
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        temporary, path = self.path(f".{name}.tmp"), self.path(name)
        self.store(f".{name}.tmp", data)
        self.system.delete(path, False)
        if not self.system.rename(temporary, path):
            raise OSError(f"{temporary} was not renamed to {path}")

    def remove(self, name: str) -> None:
        """A file, or a directory with all that is in it."""
        self.system.delete(self.path(name), True)
