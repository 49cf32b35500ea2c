"""A recorded run, finished or growing: which tensors were saved, when, by whom, and their values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from smdebug import _core
from smdebug._core import ModeKeys
from smdebug.collection import Collection, CollectionKeys, CollectionManager
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import (
    MissingCollectionFiles,
    NoMoreData,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
)
from smdebug.logger import core_log, get_logger
from smdebug.refresh import refresh
from smdebug.step_range import step_range
from smdebug.tensor import StepState, Tensor, mode_argument, step_argument
from smdebug.trial_collections import TrialCollections

if TYPE_CHECKING:
    import numpy as np

    from smdebug.diff import Diff
    from smdebug.exporters import Exporter
    from smdebug.exporters.recorded import Carried
    from smdebug.frame import Frame
    from smdebug.matrix import Matrix
    from smdebug.view import View

# How long one wait for news takes before the state is looked at again, and how many of them pass
# before somebody is told what is missing.
_WAIT_SECS = 2.0
_WAITS_BEFORE_WARNING = 5


class Trial:
    """A recorded run. Every question looks for news first, unless `dynamic_refresh` is False.

    Use `create_trial`, which picks the class by the path.
    """

    def __init__(
        self,
        name: str,
        path: str,
        range_steps: Sequence[int | None] | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
    ) -> None:
        self.name = name
        self.path = path
        self.range_steps = step_range(range_steps)
        self.check = check
        self.index_mode = index_mode  # runs are always read through their index
        self.cache = cache
        self.dynamic_refresh = True
        self.logger = get_logger()
        self._missing_file_retries = _core.missing_event_file_retry_limit()
        self._tensors: dict[str, Tensor] = {}
        begin, end = self.range_steps
        self._storage = _core.Storage.open(path, credentials=botocore_credentials)
        self._core = _core.Trial.open(
            self._storage,
            begin=begin or 0,
            end=end,
            check=check,
            log=core_log,
        )
        self._collections = TrialCollections(self._core)
        self._wait_for_collections()

    def _wait_for_collections(self) -> None:
        waits = 0
        while not self._core.is_open:
            if self._core.has_ended:
                raise MissingCollectionFiles(
                    f"The training job ended with the collections files of {len(self._core.workers)} "
                    f"workers; {self._core.num_workers} were expected: {self.path}"
                )
            waits += 1
            if waits == _WAITS_BEFORE_WARNING:
                self.logger.warning(
                    "Waiting for the run to begin: there are collections files of "
                    f"{len(self._core.workers)} workers so far: {self.path}"
                )
            self._core.wait(_WAIT_SECS)
            self._core.refresh()

    # --- identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, path={self.path!r})"

    def __str__(self) -> str:
        from smdebug.summary import trial_text

        return trial_text(self)

    def _repr_html_(self) -> str:
        from smdebug.summary import trial_html

        return trial_html(self)

    # --- what is new

    def refresh_data(self) -> None:
        """Reads what was written since the last look; does nothing when everything was read."""
        self._core.refresh()

    def _refresh(self) -> None:
        if self.dynamic_refresh:
            self._core.refresh()

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job has ended and all of it was read."""
        return self._core.loaded_all

    @property
    def last_complete_step(self) -> int:
        """The greatest global step that every worker has saved or passed; -1 if there is none."""
        return self._core.last_complete_step

    @property
    def num_workers(self) -> int:
        """How many workers save steps, as the collections say."""
        return self._core.num_workers

    @property
    def last_index_token(self) -> str | None:
        """The index file of the last complete step: what comes before it is not looked at again."""
        step, workers = self.last_complete_step, self._core.workers
        if step < 0 or not workers:
            return None
        return f"{self._token_root()}{_core.index_file_name(step, workers[-1])}"

    def _token_root(self) -> str:
        return os.path.join(self.path, "")

    def training_ended(self) -> bool:
        """Whether the job said that it has ended."""
        self._refresh()
        return self._core.has_ended

    # --- tensors

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Sorted names of saved tensors.

        With `mode` those seen in it, with `step` those of that step of the mode; with `regex` those
        in which one of the patterns is found, with `collection` those that it holds.
        """
        if regex is not None and collection is not None:
            raise SMDebugValueError("Give regex or collection, not both.")
        mode = mode_argument(mode)
        step = None if step is None else step_argument(step)
        self._refresh()
        if isinstance(collection, str):
            collection = self._collections.find(collection)
        elif collection is not None and not isinstance(collection, _core.Collection):
            raise SMDebugTypeError(
                f"collection must be a name or a Collection, not {collection!r}."
            )
        names = self._core.tensor_names(mode, step, regex, collection)
        if not names and (regex is not None or collection is not None):
            what = f"pattern {regex!r}" if regex is not None else f"collection '{collection.name}'"  # type: ignore[union-attr]
            self.logger.warning(f"No saved tensor belongs to the {what}.")
        return names

    tensors = tensor_names

    def tensor(self, tname: str) -> Tensor:
        """The tensor of this name."""
        if not self.has_tensor(tname):
            names = self._core.tensor_names(ModeKeys.GLOBAL, None, None, None)
            hint = _core.did_you_mean(tname, names)
            inside = next((name for name in names if tname in name), None)
            if not hint and inside is not None:
                hint = f" Did you mean '{inside}'?"
            raise TensorUnavailable(tname, hint)
        found = self._tensors.get(tname)
        if found is None:
            found = self._tensors[tname] = Tensor(tname, self)
        return found

    def has_tensor(self, tname: str) -> bool:
        """Whether a tensor of this name was saved by now."""
        if not isinstance(tname, str):
            raise SMDebugTypeError(f"A tensor's name must be a str, not {tname!r}.")
        if self._core.has_tensor(tname):
            return True
        self._refresh()
        return self._core.has_tensor(tname)

    # --- steps

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Sorted steps that all workers saved; steps of the mode, or global ones."""
        self._refresh()
        return self._core.steps(mode_argument(mode), bool(show_incomplete_steps))

    def modes(self) -> list[ModeKeys]:
        """Modes in which something was saved, without GLOBAL."""
        self._refresh()
        return self._core.modes()

    def mode(self, global_step: int) -> ModeKeys | None:
        """The mode of a global step; None if the step is not known."""
        self._refresh()
        info = self._core.step_info(step_argument(global_step))
        return None if info is None else info[0]

    def mode_step(self, global_step: int) -> int | None:
        """The number that a global step has in its mode; None if the step is not known."""
        self._refresh()
        info = self._core.step_info(step_argument(global_step))
        return None if info is None else info[1]

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """The global number of a step of a mode; None if it is not known."""
        self._refresh()
        return self._core.global_step(mode_argument(mode), step_argument(mode_step))

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step is there, will not come, or may still come."""
        self._refresh()
        return StepState(self._core.state(mode_argument(mode), step_argument(step)))

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL
    ) -> None:
        """Returns when all these steps are there.

        Raises StepUnavailable for one that will not come, and NoMoreData if the job ended before it.
        """
        mode = mode_argument(mode)
        with refresh(self):
            self._core.refresh()
            for step in required_steps:
                self._wait_for_step(step_argument(step), mode)

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        while True:
            state = StepState(self._core.state(mode, step))
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                last = self._core.last_step(mode)
                if not self.loaded_all_steps or (last is not None and step < last):
                    raise StepUnavailable(step, mode)
                raise NoMoreData(step, mode, -1 if last is None else last)
            self._core.wait(_WAIT_SECS)
            self._core.refresh()

    def findings(self) -> list[dict[str, Any]]:
        """What the hook found out about the training, one dict per file below `findings`.

        First bad tensors have the key "tensor"; dumps of a flight recorder have "reason", and where
        their steps could not join the run "folder": open it with create_trial, too.
        """
        files = [path for path, *_ in self._storage.list("findings") if path.endswith(".json")]
        import json  # costs more than the rest of the import of the package

        return [{"file": path} | json.loads(self._storage.read(path)) for path in sorted(files)]

    # --- workers and collections

    def workers(self) -> list[str]:
        """Sorted names of the workers."""
        self._refresh()
        return self._core.workers

    @property
    def collection_manager(self) -> CollectionManager:
        """All collections of the run; names that other workers add later join them."""
        return self._collections.manager

    def collections(self) -> dict[str, Collection]:
        """All collections by name."""
        self._refresh()
        return self.collection_manager.get_collections()

    def collection(self, coll_name: str) -> Collection:
        """The collection of this name; an empty one if there is none."""
        self._refresh()
        return self.collection_manager.get(coll_name)

    # --- tables and comparisons

    def frame(
        self,
        tensors: Iterable[str] | None = None,
        reductions: Iterable[str] | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        *,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Frame:
        """The run's numbers as a table for pandas, Polars, DuckDB and everything that reads Arrow.

        One row per step, worker and tensor, one column per reduction, and `value` for single numbers.
        Tensors by name, pattern or collection; steps of the mode from `start` on, before `end`.
        """
        from smdebug.frame import Frame

        names = self._chosen(tensors, regex, collection)
        wanted = [reductions] if isinstance(reductions, str) else reductions
        return Frame(
            _core.make_frame(
                self._core,
                names,
                None if wanted is None else list(wanted),
                mode_argument(mode),
                worker,
                start,
                end,
            )
        )

    def _chosen(
        self,
        tensors: Iterable[str] | None,
        regex: str | Iterable[Any] | None,
        collection: str | Collection | None,
    ) -> list[str] | None:
        """The names that were asked for; None: all."""
        if regex is not None or collection is not None:
            if tensors is not None:
                raise SMDebugValueError("Give tensors, regex or collection, only one of them.")
            return self.tensor_names(regex=regex, collection=collection)
        self._refresh()
        if tensors is None:
            return None
        return [tensors] if isinstance(tensors, str) else list(tensors)

    def matrix(
        self,
        reduction: str | None = "mean",
        tensors: Iterable[str] | None = None,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
        mode: ModeKeys | None = None,
        start_step: int | None = None,
        end_step: int | None = None,
        worker: str | None = None,
        *,
        show_incomplete_steps: bool = False,
    ) -> Matrix:
        """One statistic of many tensors over many steps as one array of tensors × steps.

        `reduction=None` gives the values of tensors that are a single number. Tensors by name,
        pattern or collection; steps of the mode from `start_step` on, before `end_step`. Without
        `worker` each number is that of the first worker that has it.
        """
        from smdebug.matrix import Matrix

        names = self._chosen(tensors, regex, collection)
        start = None if start_step is None else step_argument(start_step)
        end = None if end_step is None else step_argument(end_step)
        wanted = "value" if reduction is None else reduction
        if not isinstance(wanted, str):
            raise SMDebugTypeError(f"reduction must be a name, not {reduction!r}.")
        by_mode = ModeKeys.GLOBAL if mode is None else mode_argument(mode)
        found: Any = _core.read_matrix(
            self._core,
            wanted,
            names,
            by_mode,
            worker,
            start,
            end,
            bool(show_incomplete_steps),
        )
        return Matrix(wanted, *found)

    def compact(self, directory: str | os.PathLike[str]) -> None:
        """Writes the run's numbers as Parquet files, sorted by tensor, for DuckDB, Polars and others.

        `statistics.parquet`, `tensors.parquet`, `steps.parquet` and `pyramid.parquet`; files of an
        earlier call are replaced.
        """
        from smdebug.compact import compact

        self._refresh()
        compact(self._core, directory)

    def export(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Writes `frame(...)` to a file: .parquet, .arrow, .feather, .csv or .jsonl."""
        self.frame(*args, **kwargs).export(path)

    def export_to(
        self,
        exporter: Exporter,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        *,
        regex: str | Iterable[Any] | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Carried:
        """Carries the run's numbers over to another tool, step by step; see `smdebug.exporters`.

        Single numbers, and the reductions that the exporter was made for; with `regex` only of tensors
        in which one of the patterns is found. Does not close the exporter.
        """
        from smdebug.exporters import Exporter
        from smdebug.exporters.recorded import Selection, carry

        if not isinstance(exporter, Exporter):
            raise SMDebugTypeError(f"A run can be carried over by an Exporter, not {exporter!r}.")
        mode = mode_argument(mode)
        names = None if regex is None else self.tensor_names(mode=mode, regex=regex)
        self._refresh()
        return carry(self._core, exporter, Selection(names, mode, worker, start, end))

    def diff(
        self,
        other: Trial,
        *,
        absolute: float = 0.0,
        relative: float = 0.0,
        patterns: str | Iterable[str] = (),
        mode: ModeKeys = ModeKeys.GLOBAL,
        top: int = 20,
        progress: Any = None,
    ) -> Diff:
        """Where two runs part: the first tensor and step that differ, and the largest differences.

        Numbers are equal if they differ by no more than `absolute`, or `relative` times the larger.
        `progress(done, total)` may return False to stop.
        """
        from smdebug.diff import Diff

        if not isinstance(other, Trial):
            raise SMDebugTypeError(f"A run can be compared with another trial, not with {other!r}.")
        self._refresh()
        other._refresh()
        return Diff(
            _core.diff_trials(
                self._core,
                other._core,
                absolute=absolute,
                relative=relative,
                patterns=[patterns] if isinstance(patterns, str) else list(patterns),
                mode=mode_argument(mode),
                top=top,
                progress=progress,
            )
        )

    # --- what a model was given and gave

    def view(self, live: bool | None = None, height: int = 720) -> View:
        """The page of the run, for notebooks: show it as the last line of a cell.

        A live view has a server, which the browser must be able to reach: the notebook runs on the
        machine of the browser. Otherwise the page holds the data of now. Without `live`, runs that
        have ended are shown so.
        """
        from smdebug.view import View

        return View(self.path, not self.training_ended() if live is None else live, height)

    def inputs(
        self, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> list[np.ndarray]:
        """Values of the collection `inputs` at a step, by the number at the end of their names."""
        names = self.tensor_names(step=step, mode=mode, collection=CollectionKeys.INPUTS)
        return self._values_of(names, step, mode, worker)

    def labels(
        self, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> list[np.ndarray]:
        """Values of the tensors `labels…` at a step, by the number at the end of their names."""
        names = self.tensor_names(step=step, mode=mode, regex="^labels")
        return self._values_of(names, step, mode, worker)

    def predictions(
        self, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> list[np.ndarray]:
        """Values of the tensors `predictions…` at a step, by the number at the end of their names."""
        names = self.tensor_names(step=step, mode=mode, regex="^predictions")
        return self._values_of(names, step, mode, worker)

    def _values_of(
        self, names: list[str], step_num: int, mode: ModeKeys, worker: str | None
    ) -> list[np.ndarray]:
        def number(name: str) -> tuple[int, str]:
            found = re.search(r"(\d+)$", name)
            return (int(found.group(1)) if found else -1, name)

        return [self.tensor(n).value(step_num, mode, worker) for n in sorted(names, key=number)]
