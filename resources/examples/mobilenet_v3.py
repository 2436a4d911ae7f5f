"""MobileNetV3-Large (Howard et al., 2019) for inference."""

import torch
from torch import Tensor, nn

TITLE = "MobileNetV3-Large"
DESCRIPTION = "Depthwise convolutions, squeeze-and-excitation and hard-swish: many tiny kernels between convolutions."
TRAINING = False

# kernel, expanded channels, output channels, squeeze-and-excitation, activation, stride (table 1 of the paper)
BLOCKS = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)


def make_divisible(channels: float, divisor: int = 8) -> int:
    """``channels`` rounded to a multiple of ``divisor``, by at most a tenth downwards."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


class ConvBNActivation(nn.Sequential):
    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, stride: int, groups: int, activation: type[nn.Module]
    ) -> None:
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(out_channels, eps=1e-3, momentum=0.01),
            activation(),
        )


class SqueezeExcitation(nn.Module):
    """Scales each channel by a gate computed from the channel means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = make_divisible(channels / 4)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.relu = nn.ReLU()
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.hardsigmoid = nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        gate = self.relu(self.fc1(self.avgpool(x)))
        return x * self.hardsigmoid(self.fc2(gate))


class InvertedResidual(nn.Module):
    def __init__(
        self,
        in_channels: int,
        kernel: int,
        expanded: int,
        out_channels: int,
        squeeze: bool,
        activation: type[nn.Module],
        stride: int,
    ) -> None:
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        self.expand: nn.Module = nn.Identity()
        if expanded != in_channels:
            self.expand = ConvBNActivation(in_channels, expanded, 1, 1, 1, activation)
        self.depthwise = ConvBNActivation(expanded, expanded, kernel, stride, expanded, activation)
        self.squeeze = SqueezeExcitation(expanded) if squeeze else nn.Identity()
        self.project = ConvBNActivation(expanded, out_channels, 1, 1, 1, nn.Identity)

    def forward(self, x: Tensor) -> Tensor:
        out = self.project(self.squeeze(self.depthwise(self.expand(x))))
        return x + out if self.use_residual else out


class MobileNetV3(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        channels = 16
        self.stem = ConvBNActivation(3, channels, 3, 2, 1, nn.Hardswish)
        blocks = []
        for kernel, expanded, out_channels, squeeze, activation, stride in BLOCKS:
            blocks.append(InvertedResidual(channels, kernel, expanded, out_channels, squeeze, activation, stride))
            channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvBNActivation(channels, 6 * channels, 1, 1, 1, nn.Hardswish)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * channels, 1280), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1280, classes)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        x = self.head(self.blocks(self.stem(x)))
        return self.classifier(self.avgpool(x).flatten(1))


def mobilenet_v3(
    batch: int = 1, size: int = 224, classes: int = 1000, dtype: str = "float32"
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    return MobileNetV3(classes).to(scalar_type).eval(), (torch.randn(batch, 3, size, size, dtype=scalar_type),)
