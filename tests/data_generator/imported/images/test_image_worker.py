"""The process that opens the user's images: however it ends, the run gets a clear error, and nothing is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator.errors import DataError
from data_generator.imported.images import image_input, image_worker
from tests.data_generator.imported.images.pictures import class_folders, encoded, greys

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_process")]

pytest.importorskip("PIL.Image")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    class_folders(tmp_path / "data")
    return tmp_path / "data"


def read(path: Path, rows: int | None = None) -> pa.Table:
    with image_worker.started(image_input.find(path), rows) as answers:
        return pa.Table.from_batches(answers.batches())


def failure(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value).count("\n") <= 1
    return str(caught.value)


def replace_worker(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Run this code instead of the real process; `where` sets the current image, and `frame` answers."""
    prepared = """
        import json, mmap, os, signal, struct, sys, time
        page = mmap.mmap(int(sys.argv[3]), mmap.PAGESIZE)
        def where(text): page[: len(text) + 1] = text.encode() + b"\\0"
        def frame(kind, content): os.write(1, struct.pack("<cQ", kind, len(content)) + content)
    """
    whole = textwrap.dedent(prepared) + textwrap.dedent(code)
    monkeypatch.setattr(image_worker, "COMMAND", (sys.executable, "-P", "-c", whole))


def test_images_are_read_in_order(folders: Path) -> None:
    made = read(folders)
    assert made["label"].to_pylist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert made["channels"].to_pylist() == [3, 0, 3] * 3


def test_no_more_images_than_asked_for_are_opened(folders: Path) -> None:
    (folders / "bee/1.png").write_bytes(b"broken")
    assert read(folders, rows=4).num_rows == 4
    assert "bee/1.png: is not an image" in failure(folders)


def test_a_crash_costs_two_lines_and_names_the_image(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, "where('/data/bee/1.png'); os.kill(os.getpid(), signal.SIGSEGV)")
    said = failure(folders)
    assert said.startswith(
        "/data/bee/1.png: the reading process ended with a crash of the decoder (Segmentation fault)."
    )
    assert "may be damaged or hostile" in said


def test_a_crash_before_the_first_image_names_the_folder(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, "os.abort()")
    assert failure(folders).startswith(f"{folders}: the reading process ended with a crash of the decoder (Aborted).")


def test_a_crash_between_batches_is_noticed(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, "frame(b'n', b'9'); os.write(1, struct.pack('<cQ', b'b', 8) + b'1234')")
    assert "the reading process ended with exit code 0" in failure(folders)


def test_an_end_without_a_word_tells_the_exit_code_and_the_last_line(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_worker(monkeypatch, "print('one\\nno luck\\x1b', file=sys.stderr); sys.exit(3)")
    assert r"ended with exit code 3 (no luck\x1b)" in failure(folders)


def test_no_answer_in_time_ends_it(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_worker, "STALL_S", 0.3)
    replace_worker(monkeypatch, "where('/data/x.png'); time.sleep(600)")
    start = time.monotonic()
    assert failure(folders).startswith("/data/x.png: the reading process sent nothing for 0.3 s")
    assert time.monotonic() - start < 60


def test_slow_answers_are_waited_for(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_worker, "STALL_S", 5)
    reason = b'{"where": "w", "reason": "r", "step": "s"}'
    replace_worker(
        monkeypatch,
        f"""
        answer = struct.pack("<cQ", b"r", {len(reason)}) + {reason!r}
        for place in range(len(answer)):
            os.write(1, answer[place : place + 1]); time.sleep(0.01)
        """,
    )
    assert failure(folders) == "w: r. s"


@pytest.mark.parametrize(
    "code",
    [
        "frame(b'x', b'')",
        "frame(b'e', b'')",
        "frame(b'n', b'-1')",
        "frame(b'n', b'many')",
        "frame(b'n', b'1'); frame(b'n', b'1')",
        "frame(b'n', b'1'); frame(b'b', b'no batch')",
        "os.write(1, struct.pack('<cQ', b'n', 1 << 60))",
        "frame(b'r', b'no json')",
        "frame(b'r', b'[]')",
        "frame(b'r', b'{}')",
    ],
)
def test_answers_that_make_no_sense_are_refused(code: str, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, f"{code}; time.sleep(60)")
    assert "gave an invalid answer" in failure(folders)


def test_images_that_make_no_sense_are_refused(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(
        monkeypatch,
        """
        import pyarrow as pa
        from data_generator import images
        arrays = [pa.array([v], field.type) for v, field in zip([b"xxx", 2, 2, 3, 0], images.SCHEMA)]
        frame(b"n", b"1")
        frame(b"b", pa.RecordBatch.from_arrays(arrays, schema=images.SCHEMA).serialize().to_pybytes())
        time.sleep(60)
        """,
    )
    assert "gave an invalid answer" in failure(folders)


def test_fewer_images_than_said_are_refused(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, "frame(b'n', b'9'); frame(b'e', b'')")
    assert f"{folders}: 0 images were read, but 9 were expected" in failure(folders)


def test_a_refusal_cannot_write_to_the_terminal(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(
        monkeypatch, "frame(b'r', json.dumps({'where': 'a\\x1bb', 'reason': 'c\\nd', 'step': 'e' * 9999}).encode())"
    )
    said = failure(folders)
    assert said.startswith("a\\x1bb: c d.\n  eee")
    assert len(said) < 600


def test_an_image_that_needs_too_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_worker, "MEMORY_BYTES", 400 << 20)
    (tmp_path / "ant").mkdir()
    with open(tmp_path / "ant/1.png", "wb") as stream:
        stream.truncate(10 << 30)
    assert f"{tmp_path}/ant/1.png: needs more memory than the limit of an import (0.4 GiB)" in failure(tmp_path)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some kilobytes whose 64 rows are the same 32 MB."""
    monkeypatch.setattr(image_worker, "MEMORY_BYTES", 600 << 20)
    path = tmp_path / "bomb.parquet"
    large = pa.DictionaryArray.from_arrays(pa.array([0] * 64, pa.int32()), pa.array([bytes(32 << 20)]))
    pq.write_table(pa.table({"image": large, "label": [0] * 64}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 20
    said = failure(path)
    assert said.startswith(f"{path}, row 0: ")
    assert "needs more memory" in said or "a crash of the decoder" in said


def test_the_users_folder_is_not_on_the_path_of_the_process(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL/__init__.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    assert read(folders).num_rows == 9


def as_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("swap", "reason"),
    [
        (Path.unlink, "cannot be opened: No such file or directory"),
        (as_link, "is a link"),
        (as_pipe, "is not a regular file"),
    ],
)
def test_a_file_replaced_after_it_was_found_is_refused(swap, reason: str, folders: Path) -> None:
    found = image_input.find(folders)
    swap(folders / "bee/1.png")
    with (
        image_worker.started(found, None) as answers,
        pytest.raises(DataError, match=rf"^{folders}/bee/1.png: {reason}"),
    ):
        list(answers.batches())


def processes() -> set[str]:
    command = "data_generator.imported.images.image_import"
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if command.encode() in words and str(os.getpid()).encode() in words:
            found.add(entry.parent.name)
    return found


def test_nothing_runs_on_when_the_images_are_not_all_taken(folders: Path) -> None:
    def interrupted() -> None:
        with image_worker.started(image_input.find(folders), None) as answers:
            assert answers.count == 9
            assert len(processes()) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert processes() == set()


def is_gone(process: str) -> bool:
    """Return whether it has ended, even if its exit code was not collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_for(condition, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it has not come about"
        time.sleep(0.02)


def test_the_process_dies_with_its_parent(folders: Path, tmp_path: Path) -> None:
    note = tmp_path / "note"
    child = f"""
import os, sys, time
from data_generator.imported.confinement import confine
confine(int(sys.argv[1]), int(sys.argv[2]))
open({str(note) + ".new"!r}, "w").write(str(os.getpid()))
os.rename({str(note) + ".new"!r}, {str(note)!r})
time.sleep(60)
"""
    code = f"""
import sys
from pathlib import Path
from data_generator.imported.images import image_input, image_worker
image_worker.COMMAND = (sys.executable, "-P", "-c", {child!r})
with image_worker.started(image_input.find(Path({str(folders)!r})), None):
    pass
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for(note.exists)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    process = note.read_text()
    wait_for(lambda: is_gone(process))


def test_the_process_is_confined(tmp_path: Path) -> None:
    code = """
import os, resource
from pathlib import Path
from data_generator.imported.confinement import confine
confine(os.getppid(), 1 << 30)
print(resource.getrlimit(resource.RLIMIT_DATA), resource.getrlimit(resource.RLIMIT_CORE)[1])
print(Path("/proc/self/oom_score_adj").read_text().strip())
try:
    bytearray(2 << 30)
except MemoryError:
    print("no memory")
try:
    Path("large").write_bytes(bytes(2 << 20))
except OSError as error:
    print(error.strerror)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"({1 << 30}, {1 << 30}) 0", "1000", "no memory", "File too large"]


def test_a_process_whose_parent_has_gone_ends_at_once() -> None:
    code = "from data_generator.imported.confinement import confine; confine(1 << 22, 1 << 30); print('here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_what_libraries_print_does_not_disturb_the_answers(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    (noisy / "sitecustomize.py").write_text(
        "import builtins, sys\n"
        "true_import = builtins.__import__\n"
        "def noisy_import(name, *rest, **more):\n"
        "    if name.startswith('PIL'): print('hello from', name, flush=True)\n"
        "    return true_import(name, *rest, **more)\n"
        "builtins.__import__ = noisy_import\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(noisy))
    assert read(folders).num_rows == 9


def test_large_images_are_taken(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant/1.png").write_bytes(encoded(np.tile(greys(100, 100), (80, 80)), compress_level=1))
    made = read(tmp_path)
    assert (made["height"][0].as_py(), made["width"][0].as_py()) == (8000, 8000)
