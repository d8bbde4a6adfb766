"""Files that say which process has which node."""

import numpy as np
import pytest

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats import partition_file
from lanczosnet.graphs.formats.partition_file import read_partition

PARTS = [0, 3, 1, 2, 2, 3, 0]


@pytest.fixture(params=["npy", "txt", "csv"])
def file(request, tmp_path):
    path = tmp_path / f"parts.{request.param}"
    if request.param == "npy":
        np.save(path, np.array(PARTS, np.uint8))
    else:
        name = ["part"] if request.param == "csv" else []
        path.write_text("\n".join([*name, *map(str, PARTS)]) + "\n")
    return path


@pytest.mark.parametrize("at_a_time", [2, 2**20])
@pytest.mark.parametrize(("processes", "wanted"), [(4, PARTS), (2, [0, 1, 0, 1, 1, 1, 0]), (1, [0] * 7)])
def test_parts_are_processes_or_neighbouring_parts_share_one(file, processes, wanted, at_a_time, monkeypatch):
    monkeypatch.setattr(partition_file, "AT_A_TIME", at_a_time)
    found = read_partition(file, 7, processes)
    assert found.tolist() == wanted
    assert found.dtype == np.int8


@pytest.mark.parametrize(
    ("lines", "processes", "said"),
    [
        (["0", "1"], 2, "it has 2 numbers, but the graph has 3 nodes"),
        (["0", "-1", "1"], 2, "node 1 has the negative number -1"),
        (["0", "2", "2"], 3, "part 1 has no nodes. Number the parts from 0 to 1"),
        (["0", "1", "2"], 2, "3 parts for 2 processes. Their number must be that of the processes, or a multiple"),
        (["0", "1.5", "1"], 2, "row 2: '1.5' is no number of a part"),
        (["part", "0", "", "1"], 2, "row 3: '' is no number of a part"),
        (["0", "1", "9" * 30], 2, "row 3: .* is no number of a part"),
        (["0", "1", "900000000"], 2, "there is a part 900000000, but only 3 nodes"),
    ],
)
def test_a_column_that_is_no_partition_is_refused_with_its_place(lines, processes, said, tmp_path):
    path = tmp_path / "parts.txt"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=said):
        read_partition(path, 3, processes)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((3, 1), np.int64), r"int64 \[3, 1\], not whole numbers"),
        (np.zeros(3), "float64"),
        (np.array([None]), "cannot be read"),
    ],
)
def test_an_array_that_is_no_partition_is_refused(array, said, tmp_path):
    np.save(tmp_path / "parts.npy", array, allow_pickle=True)
    with pytest.raises(DataError, match=said):
        read_partition(tmp_path / "parts.npy", 3, 1)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_partition(tmp_path / "parts.npy", 3, 1)
