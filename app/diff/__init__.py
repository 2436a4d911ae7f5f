"""Two reports compared: who grouped what, which kernels differ, and what it costs. Torch-free and Qt-free."""

from app.diff.compare import compare
from app.diff.records import Change, Diff, GroupDiff, KernelDiff, NodeMatch, RegionDiff, Status

__all__ = ["Change", "Diff", "GroupDiff", "KernelDiff", "NodeMatch", "RegionDiff", "Status", "compare"]
