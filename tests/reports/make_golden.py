"""Renew the pinned texts of the reports with `python -m tests.reports.make_golden`, then read the diff."""

from tests.reports.factory import make_run
from tests.reports.sources.test_reproduction import reproduced
from tests.reports.text.test_terminal import GOLDEN, shown
from tests.reports.text.test_thesis_csv import written


def main() -> None:
    texts = {
        "terminal.txt": shown(make_run(datasets=("eq", "core"), tracks=("plain",))),
        "reproduction.txt": reproduced(make_run(datasets=("eq", "str", "core"), tracks=("plain",))),
    }
    for name, text in texts.items():
        (GOLDEN / name).write_text("".join(f"{line.rstrip()}\n" for line in text.splitlines()))
    (GOLDEN / "results-core-plain.csv").write_text(written(make_run(datasets=("core",)))["results-core-plain.csv"])


if __name__ == "__main__":
    main()
