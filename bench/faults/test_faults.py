"""Every fault shows in its run, no healthy run shows it, and healthy runs train."""

from __future__ import annotations

import pytest
from smdebug import _core

from faults import symptom
from faults.case import Case, clean_cases, faulty_cases, plain_case
from faults.catalogue import FAULTS
from faults.clean import VARIANTS
from faults.evidence import Evidence
from faults.library import Library

SEED = 1
CHEAPEST_FIRST = ("mlp", "circles", "regressor", "ranks", "trees", "lstm", "cnn", "transformer")


def one_of_each() -> list[Case]:
    """Each form of each fault on the cheapest trainer; the bench itself looks at all of them."""
    cases = sorted(faulty_cases(SEED), key=lambda case: CHEAPEST_FIRST.index(case.trainer))
    chosen: dict[str, Case] = {}
    for case in cases:
        chosen.setdefault(case.what, case)
    return sorted(chosen.values(), key=lambda case: case.what)


def cheapest_variants() -> list[Case]:
    cases = sorted(clean_cases(SEED, 0), key=lambda case: CHEAPEST_FIRST.index(case.trainer))
    chosen: dict[str, Case] = {}
    for case in cases:
        chosen.setdefault(case.what, case)
    return list(chosen.values())


@pytest.mark.parametrize("case", one_of_each(), ids=lambda case: case.key)
def test_fault_shows_in_its_run(case: Case, library: Library) -> None:
    library.evidence(case)
    assert library.is_real(case)


# A pause is a matter of the machine: a healthy run may have one, too.
@pytest.mark.parametrize(
    "case",
    [c for c in one_of_each() if c.fault and c.fault.symptom != "paused"],
    ids=lambda case: case.key,
)
def test_symptom_is_absent_from_the_healthy_run(case: Case, library: Library) -> None:
    twin = plain_case(case.trainer, case.seed)
    healthy = library.evidence(twin)
    assert not symptom.shows(Evidence(case, library.folder(twin)), healthy)


@pytest.mark.parametrize("case", cheapest_variants(), ids=lambda case: case.key)
def test_healthy_run_trains(case: Case, library: Library) -> None:
    library.evidence(case)
    assert library.is_real(case)


def test_catalogue_holds_every_fault_once() -> None:
    assert [fault.number for fault in FAULTS] == list(range(1, 36))
    for fault in FAULTS:
        assert fault.expected, fault.name
        assert set(fault.expected) <= set(_core.builtin_rules()), fault.name
        for form in fault.forms:
            assert (form.symptom or fault.symptom) in symptom.SYMPTOMS, fault.name


def test_there_are_enough_cases_and_their_keys_differ() -> None:
    faulty, clean = faulty_cases(SEED), clean_cases(SEED, len(faulty_cases(SEED)))
    assert len(faulty) >= 90
    assert len(clean) >= len(faulty)
    assert {case.seed % 2 for case in clean} == {SEED % 2}
    assert len({case.key for case in [*faulty, *clean]}) == len(faulty) + len(clean)


def test_named_hard_negatives_are_among_the_variants() -> None:
    wanted = {
        *("frozen layers", "zero residual gains", "warm-up", "cosine to zero", "converged plateau"),
        *("small batches", "rare tokens", "shown mask", "benign spike"),
    }
    assert wanted <= {variant.name for variant in VARIANTS}
