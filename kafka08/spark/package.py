"""Everything that executors import, as one zip for ``spark-submit --py-files``.

    python -m kafka08.spark.package kafka08-spark.zip

kafka08, zk and kazoo are plain Python and go in. Libraries in C cannot run from a zip: zlib of
Python's own stands in for those that are only quicker, while snappy and lz4 messages need
python-snappy, lz4 and xxhash installed where they are read or written, and the data source needs
pyarrow. An error names what is missing.
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import zk

# In a wheel zk is a part of kafka08.
PACKAGES = tuple(dict.fromkeys(name.split(".")[0] for name in ("kafka08", zk.__name__, "kazoo")))
LEFT_OUT = {"__pycache__", "_compiled", "_home", "tests", "testing", "tools"}
# The earliest time a zip can hold: equal sources make equal files.
EPOCH = (1980, 1, 1, 0, 0, 0)


def sources() -> Iterator[tuple[str, Path]]:
    """(name in the zip, file) of all there is to pack."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"package {package} is not installed")
        directory = Path(spec.origin).parent
        for path in sorted(directory.rglob("*.py")):
            name = path.relative_to(directory.parent)
            if not LEFT_OUT & set(name.parts):
                yield str(name), path


def write(target: Path) -> int:
    """The number of files packed. An old ``target`` is replaced when the new one is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.tmp")
    count = 0
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sources():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
            count += 1
    unfinished.replace(target)
    return count


def main(argv: list[str]) -> int:
    if len(argv) != 1 or argv[0].startswith("-"):
        print("Usage: python -m kafka08.spark.package FILE.zip", file=sys.stderr)
        return 1
    target = Path(argv[0])
    print(f"{target}: {write(target)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
