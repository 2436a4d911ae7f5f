"""Convolution, batch normalisation and ReLU: the unit that convolutional networks repeat."""

import torch
from torch import Tensor, nn

TITLE = "Conv + BatchNorm + ReLU"
DESCRIPTION = "A convolution of the library, followed by batch normalisation and ReLU, which fuse into one kernel."
TRAINING = False


class ConvBNReLU(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)))


def conv_bn_relu(
    batch: int = 8, channels: int = 64, size: int = 56, dtype: str = "float32"
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    block = ConvBNReLU(channels, channels)
    # Statistics as a trained network has them, so that the normalisation is not the identity.
    nn.init.normal_(block.bn.running_mean, std=0.1)
    nn.init.uniform_(block.bn.running_var, 0.5, 1.5)
    scalar_type = getattr(torch, dtype)
    return block.to(scalar_type).eval(), (torch.randn(batch, channels, size, size, dtype=scalar_type),)
