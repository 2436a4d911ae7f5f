"""Collected only where the interpreter is on: without it these kernels cannot run on a CPU."""

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
