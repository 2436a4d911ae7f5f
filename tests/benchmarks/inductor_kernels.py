"""Is the code that Inductor emits for a GPU that is not there the code it emits on it?

    python -m tests.benchmarks.inductor_kernels record FILE.json [--target h200] [--models gpt2,mlp] [--digests]
    python -m tests.benchmarks.inductor_kernels compare FOLDER [--workers N]

``record`` compiles every gallery model and writes each kernel source in the order of the launches, with names and
paths normalised; for the target "local" as it really runs. ``compare`` needs a GPU: it records both ways, each
model in a process of its own, for the named target with no GPU visible, ``--workers`` of them side by side, and writes
what is the same and how the rest differs to FOLDER/inductor_kernels.md.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
SHOWN_DIFFERENCES = 3
SHOWN_LINES = 40

# What differs between two runs on one machine, too: the installation's hash and names.
_VOLATILE = re.compile(r"""'(?:backend_hash|kernel_name|store_cubin)': [^,}]*,? ?""")


def gallery() -> list[str]:
    """Names of the gallery's models."""
    return sorted(p.stem for p in (ROOT / "resources" / "examples").glob("*.py") if not p.stem.startswith("_"))


def normalised(name: str, source: str) -> str:
    """A kernel's source without its own name, paths and hashes."""
    source = _VOLATILE.sub("", source.replace(name, "KERNEL"))
    return re.sub(r"/\S*?/(?=[\w.-]+\.(?:py|cu|so)\b)", "", source)


def recorded(model_name: str, target_name: str) -> dict[str, Any]:
    """Each region of one model with its kernels in the order of their launches, and what Inductor decided by timing."""
    import torch
    from torch._inductor.fx_passes import pad_mm

    from compiler.inductor.kernels import kernels_in, launches_in
    from compiler.inductor.run import InductorRun, inductor_backend
    from compiler.patching import replaced
    from compiler.pipeline import run_once, to_gpu
    from compiler.retarget.tracing import traced_for
    from compiler.targets import resolve

    torch._dynamo.reset()
    module = importlib.import_module(f"resources.examples.{model_name}")
    model, inputs = getattr(module, model_name)()
    target = resolve(target_name)
    if target.local:
        model, inputs = to_gpu(model, inputs)
    run = InductorRun(target, {}, lambda event: None)
    decided: list[bool] = []
    tracing = nullcontext() if target.local else traced_for(target)
    with tracing, replaced(pad_mm, "_should_pad", _noting(pad_mm._should_pad, decided)):
        run_once(torch.compile(model, backend=inductor_backend(run)), inputs, module.TRAINING)
    regions: list[dict[str, Any]] = []
    for region in run.regions:
        sources = {n: normalised(n, k.source) for n, k in kernels_in(region.facts.wrapper).items()}
        launched = [sources[n] for n in launches_in(region.facts.wrapper)]
        calls = [unit.operation for unit in region.facts.after if unit.kind == "extern"]
        regions.append({"region": region.name, "kernels": launched, "calls": calls})
    return {"regions": regions, "asked": len(decided), "padded": sum(decided)}


def _noting(real: Callable[..., bool], decided: list[bool]) -> Callable[..., bool]:
    """Inductor's decision whether to pad a matrix product, each kept in ``decided``."""

    def call(*args: Any, **keywords: Any) -> bool:
        decided.append(bool(real(*args, **keywords)))
        return decided[-1]

    return call


def record(file: Path, target: str, models: Sequence[str], digests: bool) -> None:
    """Write all models' kernels; a model that fails is recorded with its error."""
    import torch
    import triton

    found: dict[str, Any] = {}
    for name in models:
        try:
            found[name] = recorded(name, target)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if digests and not isinstance(found[name], str):
            for region in found[name]["regions"]:
                region["kernels"] = [digest(source) for source in region["kernels"]]
        print(name, flush=True)
    versions = {"torch": str(torch.__version__), "triton": triton.__version__}
    file.write_text(json.dumps({"target": target, "versions": versions, "models": found}, indent=1) + "\n")


def digest(source: str) -> str:
    """A short name for a source."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def compare(folder: Path, target: str, models: Sequence[str], workers: int) -> str:
    """Record without and with the GPU, and the table of what differs."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(workers) as pool:
        found = {
            side: [pool.submit(_in_a_process, folder, model, name, environment) for model in models]
            for side, name, environment in (("no GPU", target, {"CUDA_VISIBLE_DEVICES": ""}), ("GPU", "local", {}))
        }
        sides = {side: _joined([future.result() for future in futures]) for side, futures in found.items()}
    lines = [
        f"# Inductor's kernels for {target}: emitted with no GPU against emitted on the GPU",
        "",
        f"torch {sides['GPU']['versions']['torch']}, triton {sides['GPU']['versions']['triton']}. Sources are compared "
        "after normalising names and paths, launch by launch.",
        "",
        "| model | region | launches | same | only with no GPU | only on the GPU | calls |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    details: list[str] = []
    for model in models:
        ours, real = sides["no GPU"]["models"][model], sides["GPU"]["models"][model]
        if isinstance(ours, str) or isinstance(real, str):
            problem = ours if isinstance(ours, str) else real
            lines.append(f"| {model} | failed: {problem} | | | | | |")
            continue
        by_name = {region["region"]: region for region in ours["regions"]}
        for region in real["regions"]:
            mine = by_name.pop(region["region"], {"kernels": [], "calls": []})
            lines.append(_row(model, region, mine))
            found = _differences(f"{model} {region['region']}", mine, region)
            details += [*found[:2], f"Why: {_reason(ours, real)}", "", *found[2:]] if found else []
        lines += [f"| {model} | {name} | only with no GPU | | | | |" for name in by_name]
    text = "\n".join([*lines, "", *details]) + "\n"
    (folder / "inductor_kernels.md").write_text(text)
    return text


def _in_a_process(folder: Path, model: str, target: str, environment: dict[str, str]) -> dict[str, Any]:
    """What ``record`` writes of one model, in a process with this environment; of one that dies, that it did."""
    file = folder / f"kernels_{target}_{model}.json"
    command = [sys.executable, "-m", "tests.benchmarks.inductor_kernels", "record", str(file)]
    command += ["--target", target, "--models", model]
    told = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=ROOT, check=False, env=told)
    if not file.exists():
        return {"models": {model: f"the process ended with {done.returncode}"}}
    recorded: dict[str, Any] = json.loads(file.read_text())
    file.unlink()
    return recorded


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    versions = next((part["versions"] for part in parts if "versions" in part), {"torch": "?", "triton": "?"})
    models = {name: kernels for part in parts for name, kernels in part["models"].items()}
    return {"versions": versions, "models": models}


def _reason(ours: dict[str, Any], real: dict[str, Any]) -> str:
    """Why the two sides differ, as far as what they recorded says."""
    if real["padded"] != ours["padded"]:
        return (
            f"Inductor asked for {real['asked']} matrix products whether to pad them to an aligned size, which it "
            f"decides by timing both ways. On the GPU it padded {real['padded']}; with no GPU nothing was timed and "
            f"{ours['padded'] or 'none'} was padded. Each padding is a kernel of its own."
        )
    return "not known; both sides decided alike about everything that is recorded."


def _only(a: Sequence[str], b: Sequence[str]) -> list[str]:
    """What of ``a`` is not in ``b``, counting repeats."""
    left = list(b)
    found = []
    for item in a:
        if item in left:
            left.remove(item)
        else:
            found.append(item)
    return found


def _row(model: str, real: dict[str, Any], mine: dict[str, Any]) -> str:
    only_mine, only_real = _only(mine["kernels"], real["kernels"]), _only(real["kernels"], mine["kernels"])
    same = len(real["kernels"]) - len(only_real)
    calls = "same" if mine["calls"] == real["calls"] else f"{len(mine['calls'])} against {len(real['calls'])}"
    if len(mine["calls"]) == len(real["calls"]) and calls != "same":
        calls = "differ"
    return (
        f"| {model} | {real['region']} | {len(real['kernels'])} | {same} | {len(only_mine)} | {len(only_real)} "
        f"| {calls} |"
    )


def _differences(title: str, mine: dict[str, Any], real: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    only_mine, only_real = _only(mine["kernels"], real["kernels"]), _only(real["kernels"], mine["kernels"])
    for source in list(dict.fromkeys(only_real))[:SHOWN_DIFFERENCES]:
        near = difflib.get_close_matches(source, only_mine, n=1, cutoff=0.1)
        diff = difflib.unified_diff(
            (near[0] if near else "").splitlines(), source.splitlines(), "no GPU", "GPU", lineterm="", n=0
        )
        lines += ["```diff", *list(diff)[:SHOWN_LINES], "```"]
    missing, added = _only(mine["calls"], real["calls"]), _only(real["calls"], mine["calls"])
    if missing or added:
        lines.append(f"Calls only with no GPU: {sorted(set(missing))}; only on the GPU: {sorted(set(added))}.")
    return [f"## {title}", "", *lines, ""] if lines else []


def main() -> None:
    """The command line above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("place", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--models", default=",".join(gallery()))
    parser.add_argument("--workers", type=int, default=2, help="models compiled side by side by compare")
    parser.add_argument("--digests", action="store_true", help="digests in place of sources")
    options = parser.parse_args()
    models = options.models.split(",")
    if options.command == "record":
        record(options.place, options.target, models, options.digests)
    else:
        print(compare(options.place, options.target, models, options.workers))


if __name__ == "__main__":
    main()
