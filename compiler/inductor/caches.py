"""Compilation without torch's caches: a hit would skip what is watched, and what is watched is of no use to others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# AOTAutograd's own switches; not every torch has them all
_AOT_AUTOGRAD = ("enable_autograd_cache", "enable_remote_autograd_cache")


@contextmanager
def without_caches() -> Iterator[None]:
    """Nothing is taken from a cache or put into one inside: neither Inductor's, local or remote, nor AOTAutograd's.

    AOTAutograd looks into its cache before it calls a compiler, so this must be open around it, and once more around
    a backward, which is compiled when it is first called.
    """
    from torch._functorch import config as functorch_config
    from torch._inductor import config

    off = {name: False for name in _AOT_AUTOGRAD if hasattr(functorch_config, name)}
    with ExitStack() as stack:
        stack.enter_context(config.patch({"force_disable_caches": True}))  # the same as torch.compiler's
        stack.enter_context(functorch_config.patch(off))
        yield
