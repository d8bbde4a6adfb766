import subprocess
import sys
from pathlib import Path

import pytest

FREED = """
from pathlib import Path
import torch
from lanczosnet.backends.host_memory import return_freed_blocks

def resident():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

return_freed_blocks()
large = torch.ones(2**23)  # frees 32 MB: glibc keeps blocks of this size from then on
del large
blocks = [torch.ones(2**20) for _ in range(20)]
kept = torch.ones(2**10)  # behind them on the heap
before = resident()
del blocks
print(before - resident())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
def test_freed_tensors_give_their_memory_back():
    run = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert float(run.stdout) > 70  # of 80 MB
