"""docs/python.md is held against the code: its examples load, its tables name what there is, and no more."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from worker_kit import python_contract

import resumed
from resumed.actors.worker import answers, authors, effects
from resumed.schemas.workflow import Contract

HOUSE = Path(__file__).resolve().parent.parent
TEXT = (HOUSE / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
NAMES = {"captions": "Captions", "pay": "Pay"}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each example as a module."""
    folder = tmp_path_factory.mktemp("examples")
    for name, text in zip(NAMES, EXAMPLES, strict=True):
        (folder / f"example_{name}.py").write_text(f'"""An example."""\n\n{text}')
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_an_example_loads(name: str, modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example is a workflow as it stands."""
    monkeypatch.syspath_prepend(str(modules))
    module = __import__(f"example_{name}")
    entry = f"example_{name}:{NAMES[name]}"
    found: Contract = authors.contract_of(getattr(module, NAMES[name]), python_contract(entry, name))

    assert name == found.workflow
    assert (["bank.transfer"] if name == "pay" else []) == [each.tool for each in found.effects]


@pytest.mark.timeout(120)
def test_the_examples_pass_a_type_checker(modules: Path) -> None:
    """mypy, as strict as it can be, finds nothing in them."""
    settings = str(HOUSE / "pyproject.toml")
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file",
            settings,
            *map(str, modules.glob("*.py")),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=modules,
    )

    assert "Success" in checked.stdout, checked.stdout


def test_the_table_names_what_an_effect_may_say() -> None:
    """Every word of `@effect` stands in its table, and `by` has all of its own."""
    table = TEXT[TEXT.index("| of `@effect` |") : TEXT.index("`send` answers")]
    words = set(
        re.findall(r"`([a-z_]+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line))
    )
    wanted = set(inspect.signature(effects.effect).parameters) - {"name"}
    given = set(re.findall(r"([a-z_]+)=", next(line for line in table.splitlines() if "`approve`" in line)))

    assert wanted == words
    assert set(inspect.signature(effects.by).parameters) - {"who"} == given


def test_the_table_names_every_decision() -> None:
    """What a step may return stands in the table of decisions."""
    forms = {form.__name__ for form in (*answers.JOB_FORMS, *answers.ITEM_FORMS)}

    assert [] == sorted(form for form in forms if f"`{form}(" not in TEXT)
    assert forms <= set(resumed.__all__)
