"""The registry: what runs, what is forced, and what is refused."""

import json

import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.backends import REFERENCE, ROWS, serves, use_backend
from lanczosnet.backends.registry import reference, table
from lanczosnet.cli.app import app
from lanczosnet.krylov.inner_product import project

LONG = torch.ones(2, 40_000), torch.ones(40_000)


def test_a_row_that_serves_is_taken_and_the_plain_function_else() -> None:
    assert serves("project", "float64-sums", *LONG)
    assert serves("project", REFERENCE, LONG[0][:, :5], LONG[1][:5])


def test_a_context_manager_forces_the_plain_function() -> None:
    with use_backend(REFERENCE):
        assert serves("project", REFERENCE, *LONG)
        assert torch.equal(project(*LONG), reference("project")(*LONG))
    with use_backend(REFERENCE, "csr_product"):
        assert serves("project", "float64-sums", *LONG)


def test_the_environment_forces_the_plain_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCZOSNET_BACKEND", "reference")
    assert serves("project", REFERENCE, *LONG)
    monkeypatch.setenv("LANCZOSNET_BACKEND", "fortran")
    with pytest.raises(ValueError, match="LANCZOSNET_BACKEND is 'fortran': choose auto or one of reference"):
        project(*LONG)


@pytest.mark.parametrize(("arguments", "message"), [(("fast",), "unknown backend"), (("numpy", "sort"), "unknown op")])
def test_wrong_names_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message), use_backend(*arguments):
        pass


def test_the_table_has_every_operation_and_a_reason() -> None:
    for device in ("cpu", "cuda"):
        rows = table(device)
        assert [name for name, *_ in rows] == list(ROWS)
        assert all(chosen and why for _, chosen, why in rows)


def test_doctor_prints_the_table() -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["backends"]) == set(ROWS)
