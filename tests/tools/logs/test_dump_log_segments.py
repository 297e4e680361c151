"""DumpLogSegments against what the original printed for the same files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.log.segments import integrity
from kafka08.message.batch import header_of
from kafka08.message.sets import encode_set
from tests.message.batches import batch, simple, timed
from tools.logs.dump_log_segments import NoDecoderError, hash_map_order, main
from tools.options import UsageError

# A keyed message with a wrong crc; a null one; a wrapper of "a" and an empty one with an empty
# key; text that is not quite UTF-8; offset 9 after offset 4; four bytes that are not an entry.
LOG = bytes.fromhex(
    "0000000000000000000000101fecd70a0000000000016b000000017700000000000000010000000e"
    "a7ec68030000ffffffffffffffff000000000000000300000053935e609b0002ffffffff00000045"
    "82534e415050590000000001000000010000003135000009014c020000000f51df3a320000ffffff"
    "ff0000000161091a4c00030000000ee38a6876000000000000000000000000000000000004000000"
    "114897674b0000ffffffff00000003c3a9ff00000000000000090000001226e63f9d0000ffffffff"
    "000000046a756d70746f726e"
)
# The first entry names offset 5 for offset 1, the last one 5 for 9; zeros follow.
INDEX = bytes.fromhex("000000050000001c0000000200000036000000040000009500000005000000b2")
BASE = f"{0:020d}"
PLAIN = "compresscodec: NoCompressionCodec"
SHALLOW = f"""\
offset: 0 position: 0 isvalid: false payloadsize: 1 magic: 0 {PLAIN} crc: 535615242 keysize: 1
offset: 1 position: 28 isvalid: true payloadsize: -1 magic: 0 {PLAIN} crc: 2817288195
offset: 3 position: 54 isvalid: true payloadsize: 69 magic: 0 compresscodec: SnappyCompressionCodec crc: 2472435867
offset: 4 position: 149 isvalid: true payloadsize: 3 magic: 0 {PLAIN} crc: 1217881931
offset: 9 position: 178 isvalid: true payloadsize: 4 magic: 0 {PLAIN} crc: 652623773
Found 4 invalid bytes at the end of {BASE}.log
"""  # noqa: E501
DEEP = f"""\
offset: 0 position: 0 isvalid: false payloadsize: 1 magic: 0 {PLAIN} crc: 535615242 keysize: 1 key: k payload: w
offset: 1 position: 28 isvalid: true payloadsize: -1 magic: 0 {PLAIN} crc: 2817288195 payload: null
offset: 2 position: 54 isvalid: true payloadsize: 1 magic: 0 {PLAIN} crc: 1373583922 payload: a
offset: 3 position: 54 isvalid: true payloadsize: 0 magic: 0 {PLAIN} crc: 3817498742 keysize: 0 key:  payload:\x20
offset: 4 position: 149 isvalid: true payloadsize: 3 magic: 0 {PLAIN} crc: 1217881931 payload: \xe9\ufffd
offset: 9 position: 178 isvalid: true payloadsize: 4 magic: 0 {PLAIN} crc: 652623773 payload: jump
Found 4 invalid bytes at the end of {BASE}.log
"""  # noqa: E501


@pytest.fixture
def stem(tmp_path: Path) -> str:
    (tmp_path / f"{BASE}.log").write_bytes(LOG)
    (tmp_path / f"{BASE}.index").write_bytes(INDEX + bytes(32))
    return str(tmp_path / BASE)


def test_log(stem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", f"{stem}.log,{stem}.txt"]) == 0
    out, err = capsys.readouterr()
    assert out == f"Dumping {stem}.log\nStarting offset: 0\n{SHALLOW}"
    assert err == f"Non-secutive offsets in :{stem}.log\n  4 is followed by 9\n"


def test_log_with_contents_of_wrappers(stem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", f"{stem}.log", "--print-data-log", "--deep-iteration"]) == 0
    assert capsys.readouterr().out == f"Dumping {stem}.log\nStarting offset: 0\n{DEEP}"


@pytest.mark.parametrize("verify_only", [True, False])
def test_index(stem: str, capsys: pytest.CaptureFixture[str], verify_only: bool) -> None:
    words = ["--verify-index-only"] if verify_only else []
    assert main(["--files", f"{stem}.index", *words]) == 0
    out, err = capsys.readouterr()
    entries = "".join(
        f"offset: {offset} position: {position}\n"
        for offset, position in ((5, 28), (2, 54), (4, 149), (5, 178))
    )
    assert out == f"Dumping {stem}.index\n" + ("" if verify_only else entries)
    assert err == (
        f"Mismatches in :{stem}.index\n"
        "  Index offset: 5, log offset: 9\n"
        "  Index offset: 5, log offset: 1\n"
    )


def test_true_offsets_whatever_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{100:020d}.log"
    wrapper = bytearray(encode_set([(None, b"a"), (None, b"b")], 1))  # inside: 0 and 1
    wrapper[:8] = (101).to_bytes(8, "big")
    path.write_bytes(wrapper)
    main(["--files", str(path), "--deep-iteration"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["100", "101"]


def test_index_of_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / f"{BASE}.log").write_bytes(b"")
    (tmp_path / f"{BASE}.index").write_bytes(bytes(64))
    assert main(["--files", str(tmp_path / f"{BASE}.index")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["offset: 0 position: 0"]


def test_integrity(stem: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{stem}.log"

    def verdict() -> str:
        assert main(["--files", f"{path},{stem}.index", "--verify-integrity"]) == 0
        (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Integrity")]
        return line

    assert verdict() == "Integrity: no side file"
    seal = integrity.summed(path)
    os.replace(integrity.write(path, seal), integrity.seal_path(path))
    assert verdict() == f"Integrity: {len(LOG)} bytes as sealed"
    changed = bytearray(LOG)
    changed[7] ^= 1  # an offset: no message's crc covers it
    Path(path).write_bytes(changed)
    assert verdict() == (
        f"Integrity: {len(LOG)} bytes with crc-32c {integrity.summed(path).crc:08x}, "
        f"sealed with {len(LOG)} bytes with crc-32c {seal.crc:08x}"
    )


def test_decoders(stem: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--files", f"{stem}.log", "--print-data-log"]
    main([*words, "--key-decoder-class", "builtins.len", "--value-decoder-class", "builtins.repr"])
    assert capsys.readouterr().out.splitlines()[2].endswith(" key: 1 payload: b'w'")
    for name in ("no.such.Decoder", "os.sep"):
        with pytest.raises(NoDecoderError, match=name):
            main([*words, "--value-decoder-class", name])


def test_refusals(stem: str) -> None:
    with pytest.raises(UsageError, match="Parse a log file"):
        main([])
    with pytest.raises(UsageError, match="files"):
        main(["--print-data-log"])
    with pytest.raises(InvalidMessageError, match="largest allowable message size"):
        main(["--files", f"{stem}.log", "--max-message-size", "15"])
    with pytest.raises(FileNotFoundError):
        main(["--files", f"{stem[:-1]}1.log"])
    with pytest.raises(KafkaError, match="For input string"):
        main(["--files", f"{stem}x.log"])


def test_batches_are_shown_as_later_releases_show_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{BASE}.log"
    gzip = batch([(None, b"v", 7, []), (b"k", None, 0, [])], 5, 1, base_sequence=3, producer_id=9)
    path.write_bytes(batch(simple(b"a")) + gzip + timed([(b"k", b"w")], 7))
    assert main(["--files", str(path), "--print-data-log"]) == 0
    out, err = capsys.readouterr()
    first, record, second, one, two, old = out.splitlines()[2:]
    assert first == (
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 "
        "producerEpoch: -1 partitionLeaderEpoch: -1 isTransactional: false isControl: false "
        "position: 0 CreateTime: 1000 size: 74 magic: 2 compresscodec: none crc: "
        f"{header_of(path.read_bytes()).crc} isvalid: true"
    )
    assert record == "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 key: k payload: a"
    assert "baseSequence: 3 lastSequence: 4 producerId: 9" in second
    assert "compresscodec: gzip" in second
    assert one == "| offset: 5 CreateTime: 1007 keySize: -1 valueSize: 1 payload: v"
    assert two == "| offset: 6 CreateTime: 1000 keySize: 1 valueSize: -1 key: k payload: null"
    assert old.startswith("offset: 7 position: ")
    assert old.endswith("key: k payload: w")
    assert err == f"Non-secutive offsets in :{path}\n  0 is followed by 5\n"


@pytest.mark.parametrize(
    "numbers",
    [
        [3, 0, 4, 1, 2],
        [3, 10, 7, 0, 4, 11, 8, 12, 1, 5, 9, 2, 13, 6],  # above 12 the table has grown
    ],
    ids=len,
)
def test_files_are_listed_as_the_original_lists_them(numbers: list[int]) -> None:
    put = [f"/tmp/logs-g/{number}.log" for number in range(len(numbers))]
    assert hash_map_order(put) == [f"/tmp/logs-g/{number}.log" for number in numbers]


def test_no_file_is_lost_in_the_list() -> None:
    put = [str(number) for number in range(1000)]
    assert sorted(hash_map_order(put)) == sorted(put)
    assert hash_map_order([]) == []
