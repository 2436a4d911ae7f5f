"""A folder for what torch writes while it compiles, that is gone when the process is, however that ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Waits until nobody can write to its stdin any more: for the end of whoever started it, be it by SIGKILL.
_REMOVE = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"


@contextmanager
def own_torch_cache() -> Iterator[Path]:
    """Inductor's cache of this process and those that it starts, from here on; without it, each compilation leaves a
    folder in the user's, which nothing ever reads.

    Another process removes the folder where this one ends without a word, as a worker does. Triton's kernels stay where
    Triton itself keeps them, for Inductor would move those of the whole process into its own cache.
    """
    owner = os.getpid()
    folder = tempfile.mkdtemp(prefix="fusescope-")
    remover = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REMOVE, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what ends the others all at once leaves it alone
    )
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder, "inductor"))
    home = os.environ.get("TRITON_HOME") or Path.home()
    os.environ.setdefault("TRITON_CACHE_DIR", str(Path(home, ".triton", "cache")))
    try:
        yield Path(folder)
    finally:
        if os.getpid() == owner:  # and not a fork of it
            remover.kill()
            remover.wait()
            shutil.rmtree(folder, ignore_errors=True)
