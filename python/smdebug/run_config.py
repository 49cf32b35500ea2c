"""What `smdebug run` records: the options of the command as a JSON configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from smdebug import _core
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError

# In one pass over the memory, and each says something that the others do not.
STATISTICS = ("min", "max", "mean", "std", "sum", "l1", "l2", "abs_min", "abs_max", "abs_mean")
SAVED = ("weights", "biases", "gradients", "outputs")
LONGEST_INTERVAL = 100
MAX_OVERHEAD = 0.01

# Tensors of the model itself, whatever they are called.
_PARAMETERS = r"^(?!gradient/|optimizer/|scalar/|smdebug/)(?!.*_(?:in|out)put_\d+$)"
PATTERNS = {
    "weights": [_PARAMETERS + "(?!.*bias)"],
    "inputs": [r"^(?!.*[Ll]oss\d*_input).*_input_\d+$"],
    "outputs": [r"^(?!.*[Ll]oss\d*_output).*_output_\d+$"],
}
COLLECTIONS = (
    *("all", "average_shap", "biases", "feature_importance", "full_shap", "gradients"),
    *("hyperparameters", "inputs", "labels", "losses", "metrics", "optimizer_variables"),
    *("outputs", "predictions", "trees", "weights"),
)


@dataclass(frozen=True)
class Choice:
    """What was asked for on the command line."""

    config: str | None = None
    out: str | None = None
    save: str | None = None
    include: tuple[str, ...] = ()
    reductions: str | None = None
    raw: bool = False
    interval: int | None = None
    workers: str | None = None
    layout: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing but the place of the run was chosen."""
        return self == Choice(out=self.out)


def unknown(what: str, typed: str, choices: Iterable[str]) -> SMDebugValueError:
    """An error that names the choices and the nearest of them."""
    known = list(choices)
    near = get_close_matches(typed, known, 1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return SMDebugValueError(f"{what} does not know '{typed}'; there are {', '.join(known)}.{hint}")


def intervals_of(save: str) -> dict[str, int | None]:
    """`weights,gradients:10` as {"weights": None, "gradients": 10}."""
    found: dict[str, int | None] = {}
    for word in save.split(","):
        name, colon, digits = word.strip().partition(":")
        if name not in COLLECTIONS:
            raise unknown("--save", name, COLLECTIONS)
        if colon and (not digits.isdigit() or int(digits) < 1):
            raise SMDebugValueError(
                f"--save {word} has no whole number of steps of at least 1 behind the colon."
            )
        found[name] = int(digits) if colon else None
    return found


def reductions_of(text: str) -> list[str]:
    """The names in a comma list of statistics."""
    plain = [name for name, _ in _core.reduction_names()]
    known = [*plain, *(f"abs_{name}" for name in plain)]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name.removesuffix("_norm") not in known:
            raise unknown("--reductions", name, known)
    return names


def read_config(path: str) -> dict[str, Any]:
    """A JSON configuration that a hook would accept."""
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        document: Any = _core.parse_json(file.read(), path)
    check(document)
    return document


def check(document: dict[str, Any]) -> None:
    """Raises for what a hook would refuse."""
    parsed = _core.parse_hook_config(document)
    for given in [parsed, *parsed["collections"]]:
        collection = _core.Collection("checked")
        collection.include_regex = [*given["include_regex"], *given["exclude_regex"]]


def document_of(choice: Choice, place: str) -> dict[str, Any]:
    """The configuration for a run at `place`."""
    if choice.config is not None:
        if choice != Choice(config=choice.config, out=choice.out):
            raise SMDebugValueError(
                "--config says what is saved; of the other options only --out goes with it."
            )
        document = read_config(choice.config)
        return {**document, "LocalPath": place} if choice.out is not None else document
    parameters: dict[str, Any] = {
        "layout": choice.layout or "packed",
        "include_workers": choice.workers or "one",
        "reductions": reductions_of(choice.reductions) if choice.reductions else list(STATISTICS),
        "save_raw_tensor": choice.raw,
        "save_interval": choice.interval or 1,
    }
    if choice.interval is None:
        parameters |= {"max_overhead": MAX_OVERHEAD, "max_interval": LONGEST_INTERVAL}
    if choice.include:
        parameters["include_regex"] = list(choice.include)
    wanted: dict[str, int | None] = {"losses": 1}
    if choice.save is not None:
        wanted |= intervals_of(choice.save)
    elif not choice.include:
        wanted |= dict.fromkeys(SAVED)
    if "all" in wanted:
        parameters["save_all"] = True
    document = {
        "LocalPath": place,
        "HookParameters": parameters,
        "CollectionConfigurations": [
            _collection(name, interval) for name, interval in wanted.items()
        ],
    }
    check(document)
    return document


def _collection(name: str, interval: int | None) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if name in PATTERNS:
        parameters["include_regex"] = PATTERNS[name]
    if interval is not None:
        parameters["save_interval"] = interval
    return {"CollectionName": name, "CollectionParameters": parameters}


def place_of(out: str | None, script: str) -> str:
    """The directory of the run, from the root, so that the script may change its own."""
    if out is None:
        stem = os.path.splitext(os.path.basename(script))[0] or "run"
        free = next(
            name
            for name in (f"{stem}-{n}" if n > 1 else stem for n in range(1, 1_000_000))
            if not os.path.exists(os.path.join("runs", name))
        )
        return os.path.abspath(os.path.join("runs", free))
    if "://" in out:
        return out
    place = os.path.abspath(os.path.expanduser(out))
    if os.path.exists(os.path.join(place, _core.END_MARKER)):
        raise SMDebugRuntimeError(f"A job has ended there; choose another --out: {out}")
    if os.path.exists(place) and not os.path.isdir(place):
        raise SMDebugValueError(f"--out is not a directory: {out}")
    return place


def describe(document: dict[str, Any]) -> str:
    """One sentence about what a configuration of ours records."""
    parameters = document["HookParameters"]
    if "max_overhead" in parameters:
        usual = f"as often as {parameters['max_overhead']:.0%} of the time allows"
    else:
        usual = f"at every {ordinal(parameters['save_interval'])} step"
    by_time: dict[str, list[str]] = {}
    for collection in document["CollectionConfigurations"]:
        interval = collection.get("CollectionParameters", {}).get("save_interval")
        if collection["CollectionName"] != "losses":
            when = usual if interval is None else f"at every {ordinal(interval)} step"
            by_time.setdefault(when, []).append(collection["CollectionName"])
    if "include_regex" in parameters:
        by_time.setdefault(usual, []).append("tensors that --include matches")
    numbers = ", ".join(parameters["reductions"])
    values = " and all values" if parameters["save_raw_tensor"] else ""
    what = ", and of ".join(f"{', '.join(names)} {when}" for when, names in by_time.items())
    return (
        f"recording the loss at every step, and {numbers}{values} of {what}: "
        f"{document['LocalPath']}"
    )


def ordinal(number: int) -> str:
    """10th; of 1, single."""
    if number == 1:
        return "single"
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def write(document: dict[str, Any], folder: str) -> str:
    """Writes the configuration into a folder; its path."""
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    return path
