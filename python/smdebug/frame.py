"""The numbers of a run as a table.

A `Frame` reads nothing by itself. Libraries that understand Arrow (pandas, Polars, DuckDB, pyarrow)
take it as it is and read it batch by batch.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from smdebug import _core
from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugValueError,
)

_KEYS = 5  # tensor, mode, step, mode_step, worker: the columns before the numbers


def _import(name: str, purpose: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise SMDebugNotImplementedError(
            f"{purpose} needs the package {package}, which is not installed; "
            f"install it with: pip install {package}"
        ) from error


class Frame:
    """One row per step, worker and tensor, one column per reduction, and `value` for single numbers.

    Pass it to `polars.DataFrame`, `pyarrow.table` or a DuckDB query, or use the methods below.
    It shows what was known of the run when it was made, and can be read any number of times.
    """

    def __init__(self, core: _core.Frame) -> None:
        self._core = core

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._core.columns)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        pa = _import("pyarrow", "to_arrow()")
        with _reading():
            return pa.table(self)

    def batches(self) -> Iterator[Any]:
        """One `pyarrow.RecordBatch` after the other; memory does not grow with the run."""
        pa = _import("pyarrow", "batches()")
        with _reading():
            reader = pa.RecordBatchReader.from_stream(self)
        while True:
            with _reading():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; tensors, modes and workers are categories, missing numbers NaN."""
        _import("pandas", "to_pandas()")
        pa = _import("pyarrow", "to_pandas()")
        with _reading():
            return pa.table(self).to_pandas()

    def to_polars(self) -> Any:
        """A `polars.DataFrame`; missing numbers are null."""
        return _import("polars", "to_polars()").DataFrame(self)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the table to a file, in the format of its suffix.

        `.parquet`, `.arrow` or `.feather`, `.csv`, `.jsonl`. The file appears when it is complete;
        memory does not grow with the run.
        """
        target = Path(path)
        write = _FORMATS.get(target.suffix.lower())
        if write is None:
            raise SMDebugValueError(
                f"'{target.suffix}' is no format of tables; the file name must end in one of "
                f"{', '.join(sorted(_FORMATS))}: {target}"
            )
        pa = _import("pyarrow", "export()")
        reader = pa.RecordBatchReader.from_stream(self)
        with _appearing(target) as file, _reading():
            write(reader, file)

    def __repr__(self) -> str:
        return (
            f"<Frame of {len(self._core.tensors)} tensors in {self._core.run}: "
            f"{', '.join(self.columns)}>"
        )


@contextmanager
def _reading() -> Iterator[None]:
    """Gives Arrow's errors the class that ours have: what it read came from a run."""
    try:
        yield
    except Exception as error:
        # Errors of the file that is written have a number.
        of_stream = isinstance(error, OSError) and error.errno is None
        if of_stream or type(error).__module__.partition(".")[0] == "pyarrow":
            raise SMDebugRuntimeError(str(error)) from error
        raise


@contextmanager
def _appearing(target: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name once it is complete, and vanishes otherwise."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with open(temporary, "xb") as file:
        try:
            yield file
            file.flush()
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink()
            raise


def _write_parquet(reader: Any, file: IO[bytes]) -> None:
    parquet = _import("pyarrow.parquet", "export()")
    with parquet.ParquetWriter(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_ipc(reader: Any, file: IO[bytes]) -> None:
    ipc = _import("pyarrow.ipc", "export()")
    with ipc.new_file(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_csv(reader: Any, file: IO[bytes]) -> None:
    csv = _import("pyarrow.csv", "export()")
    pa = _import("pyarrow", "export()")
    # The text formats have no dictionaries.
    schema = pa.schema(
        [
            pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
            for f in reader.schema
        ]
    )
    with csv.CSVWriter(file, schema) as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))


def _write_jsonl(reader: Any, file: IO[bytes]) -> None:
    # JSON has no NaN and no infinity: they are the strings "NaN", "Infinity" and "-Infinity".
    names = reader.schema.names
    for batch in reader:
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            # Only the numbers it has: most tensors have few of the columns.
            line = dict(zip(names[:_KEYS], row, strict=False))
            for name, number in zip(names[_KEYS:], row[_KEYS:], strict=True):
                if number is not None:
                    line[name] = _json_number(number)
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _json_number(number: float) -> float | str:
    if number - number == 0:
        return number
    return json.dumps(number)


_FORMATS: dict[str, Callable[[Any, IO[bytes]], None]] = {
    ".arrow": _write_ipc,
    ".csv": _write_csv,
    ".feather": _write_ipc,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
