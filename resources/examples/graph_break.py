"""A model that prints half-way: Dynamo ends one region there and begins another."""

import torch
from torch import Tensor, nn

TITLE = "Graph break"
DESCRIPTION = "Prints in the middle of forward, so Dynamo splits the model into two compiled regions."
TRAINING = False


class TalkativeMLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x)) * 2
        print("hidden:", tuple(hidden.shape))
        return torch.softmax(self.second(hidden) + x, dim=-1)


def graph_break(batch: int = 64, width: int = 512, dtype: str = "float32") -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    return TalkativeMLP(width).to(scalar_type).eval(), (torch.randn(batch, width, dtype=scalar_type),)
