"""The command that says what is missing on this machine, and how to get it."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

_QT_LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
}
_X11_LIBRARIES = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
_VIEWER_PACKAGES = ("PySide6-Essentials", "numpy", "msgspec", "Pygments")
# Run by a child: torch takes seconds to import and may be broken.
_ASK_TORCH = """
import json, torch
gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda or torch.version.hip or "", "gpu": gpu}))
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``needed`` for the viewer; else only one of the uses goes without it."""

    ok: bool
    text: str
    needed: bool = False


def doctor_command(_options: argparse.Namespace) -> int:
    """Print what is there and what is missing. Returns 1 where the viewer itself cannot run."""
    findings = [_python(), *_packages(), *_libraries(), _display(), *_compiler()]
    for finding in findings:
        mark = "ok     " if finding.ok else "MISSING" if finding.needed else "without"
        print(f"{mark}  {finding.text}")
    return 1 if any(finding.needed and not finding.ok for finding in findings) else 0


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(sys.version_info >= (3, 11), f"Python {version} (3.11 or newer is needed)", needed=True)


def _packages() -> list[Finding]:
    findings = []
    for package in _VIEWER_PACKAGES:
        try:
            findings.append(Finding(True, f"{package} {metadata.version(package)}", needed=True))
        except metadata.PackageNotFoundError:
            findings.append(Finding(False, f"{package}: pip install fusescope", needed=True))
    return findings


def _libraries() -> list[Finding]:
    if sys.platform != "linux":
        return []
    missing = [package for name, package in _QT_LIBRARIES.items() if not _loads(name)]
    found = "Qt's system libraries" + (f": apt-get install {' '.join(missing)}" if missing else "")
    missing_x11 = [package for name, package in _X11_LIBRARIES.items() if not _loads(name)]
    found_x11 = "Qt's X11 libraries" + (f": apt-get install {' '.join(missing_x11)}" if missing_x11 else "")
    return [Finding(not missing, found, needed=True), Finding(not missing_x11, found_x11)]


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _display() -> Finding:
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return Finding(True, "a display")
    return Finding(False, "no display: the app cannot open here, but compile, show and screenshot work")


def _compiler() -> list[Finding]:
    asked = subprocess.run([sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        last = asked.stderr.strip().splitlines()[-1:] or ["no reason given"]
        advice = "to compile models: pip install 'fusescope[compile]'"
        return [Finding(False, f"torch does not import ({last[0]}); {advice}")]
    torch = json.loads(asked.stdout)
    findings = [Finding(True, f"torch {torch['torch']}"), _triton(), _backend()]
    if torch["gpu"]:
        findings += [Finding(True, f"GPU: {torch['gpu']}"), _c_compiler()]
    elif shutil.which("nvidia-smi") and not torch["cuda"]:
        findings.append(
            Finding(False, "GPU: this torch is a CPU build, so it cannot use the NVIDIA GPU of this machine")
        )
    else:
        text = "GPU: none, so nothing can be timed; models compile for a named target, recorded sessions play back"
        findings.append(Finding(False, text))
    return findings


def _c_compiler() -> Finding:
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "")
    return Finding(
        bool(found), "a C compiler" + ("" if found else ": apt-get install gcc; Triton builds its launcher with it")
    )


def _triton() -> Finding:
    try:
        return Finding(True, f"triton {metadata.version('triton')}")
    except metadata.PackageNotFoundError:
        return Finding(False, "triton: pip install 'fusescope[compile]' (Linux only) to generate kernels")


def _backend() -> Finding:
    found = metadata.entry_points(group="torch_dynamo_backends", name="fusescope")
    text = 'torch.compile(model, backend="fusescope")'
    return Finding(bool(found), text if found else f"{text}: pip install -e . registers it")
