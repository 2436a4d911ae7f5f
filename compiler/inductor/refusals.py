"""Inductor's words for not fusing two nodes as our rules. The words themselves stay in the refusal's detail."""

from __future__ import annotations

from compiler.report import RefusalRule

_RULES: tuple[tuple[str, RefusalRule], ...] = (
    # the first match counts, so the more specific words come first
    ("split scan", RefusalRule.REDUCTION_SPLIT),
    ("multi-output template", RefusalRule.COMPILER_RULE),
    ("extern", RefusalRule.EXTERN),
    ("is nop", RefusalRule.EXTERN),
    ("triton kernel", RefusalRule.EXTERN),
    ("no shared data due to indexing mismatch", RefusalRule.ACCESS_MISMATCH),
    ("no shared data", RefusalRule.NO_SHARED_DATA),
    ("memory deps did not match", RefusalRule.ACCESS_MISMATCH),
    ("buf layouts", RefusalRule.ACCESS_MISMATCH),
    ("numel", RefusalRule.DOMAIN_MISMATCH),
    ("tiling", RefusalRule.DOMAIN_MISMATCH),
    ("do not have same length", RefusalRule.DOMAIN_MISMATCH),
    ("intermediate nodes between", RefusalRule.CYCLE),
    ("must go before", RefusalRule.CYCLE),
    ("cycle", RefusalRule.CYCLE),
    ("device mismatch", RefusalRule.DEVICE),
    ("exceeds max fusion", RefusalRule.TOO_LARGE),
    ("too_many_reads_and_writes", RefusalRule.TOO_LARGE),
    ("peak memory", RefusalRule.NOT_PROFITABLE),
    ("memory_threshold", RefusalRule.NOT_PROFITABLE),
    ("register spilling", RefusalRule.NOT_PROFITABLE),
    ("will not increase", RefusalRule.NOT_PROFITABLE),
    ("not profitable", RefusalRule.NOT_PROFITABLE),
    ("mutation", RefusalRule.MUTATION),
)


def rule_of(words: str) -> RefusalRule:
    """The rule behind Inductor's words; COMPILER_RULE where it is one of its own that we have no name for."""
    return next((rule for text, rule in _RULES if text in words), RefusalRule.COMPILER_RULE)
