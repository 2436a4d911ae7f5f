"""Real models from their configurations, with random weights and small enough to compile in seconds.

Every builder returns (model, inputs) on the CPU. Models return tensors; dropout is off, so that results compare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Any, ...]]


class Output(nn.Module):
    """A model of transformers, called by keyword, that returns one tensor of its output."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], output: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.output, self.fixed = model, names, output, fixed

    def forward(self, *inputs: Tensor) -> Tensor:
        result = self.model(**dict(zip(self.names, inputs, strict=True)), **self.fixed)
        return getattr(result, self.output)


def tokens(batch: int = 2, length: int = 64, vocabulary: int = 1000) -> Tensor:
    return torch.randint(0, vocabulary, (batch, length))


def images(size: int = 224, batch: int = 2) -> Tensor:
    return torch.randn(batch, 3, size, size)


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
    return model


# --- language ------------------------------------------------------------------------------------------------------


def causal(config_name: str, model_name: str, **changes: Any) -> Built:
    """A decoder of transformers."""
    import transformers

    sizes: dict[str, Any] = {
        "vocab_size": 1000, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "attention_dropout": 0.0,
    }  # fmt: skip
    config = getattr(transformers, config_name)(**{**sizes, **changes})
    model = getattr(transformers, model_name)(config)
    return Output(model, ("input_ids",), "logits", use_cache=False), (tokens(),)


def gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=3, n_head=4,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)  # fmt: skip
    return Output(GPT2LMHeadModel(config), ("input_ids",), "logits", use_cache=False), (tokens(),)


def llama() -> Built:
    return causal("LlamaConfig", "LlamaForCausalLM")


def qwen() -> Built:
    return causal("Qwen3Config", "Qwen3ForCausalLM", head_dim=32)


def mixtral() -> Built:
    batched = {"experts_implementation": "batched_mm"}  # which knows float64, too
    return causal("MixtralConfig", "MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2, **batched)


def gemma() -> Built:
    return causal("Gemma2Config", "Gemma2ForCausalLM", head_dim=32, sliding_window=32, query_pre_attn_scalar=32)


def phi() -> Built:
    return causal("PhiConfig", "PhiForCausalLM", resid_pdrop=0.0, embd_pdrop=0.0)


def encoder(config_name: str, model_name: str) -> Built:
    """A masked language model of transformers, with padding."""
    import transformers

    config = getattr(transformers, config_name)(
        vocab_size=1000, hidden_size=128, embedding_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=256, max_position_embeddings=130, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.0,
    )  # fmt: skip
    mask = torch.ones(2, 64, dtype=torch.int64)
    mask[1, 50:] = 0
    ids = tokens(vocabulary=900) + 2  # beyond the numbers with a meaning of their own
    return Output(getattr(transformers, model_name)(config), ("input_ids", "attention_mask"), "logits"), (ids, mask)


def bert() -> Built:
    return encoder("BertConfig", "BertForMaskedLM")


def roberta() -> Built:
    return encoder("RobertaConfig", "RobertaForMaskedLM")


def albert() -> Built:
    return encoder("AlbertConfig", "AlbertForMaskedLM")


def t5() -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=1000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, dropout_rate=0.0)
    model = Output(T5ForConditionalGeneration(config), ("input_ids", "decoder_input_ids"), "logits", use_cache=False)
    return model, (tokens(length=48), tokens(length=32))


# --- sound ---------------------------------------------------------------------------------------------------------


def whisper_encoder() -> Built:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=128, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=256,
                           max_source_positions=150, num_mel_bins=40, dropout=0.0)  # fmt: skip
    return Output(WhisperEncoder(config), ("input_features",), "last_hidden_state"), (torch.randn(2, 40, 300),)


def wav2vec2() -> Built:
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, conv_dim=(64,) * 7,
        hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, layerdrop=0.0,
        mask_time_prob=0.0, num_conv_pos_embedding_groups=8,
    )  # fmt: skip
    return Output(Wav2Vec2Model(config), ("input_values",), "last_hidden_state"), (torch.randn(2, 8000),)


# --- vision --------------------------------------------------------------------------------------------------------


def from_timm(name: str, size: int = 224, **options: Any) -> Built:
    import timm

    return timm.create_model(name, pretrained=False, num_classes=100, **options), (images(size),)


def vit() -> Built:
    return from_timm("vit_tiny_patch16_224", depth=4)


def swin() -> Built:
    return from_timm("swin_tiny_patch4_window7_224", depths=(1, 1, 2, 1), embed_dim=48, drop_path_rate=0.0)


def convnext() -> Built:
    return from_timm("convnext_atto")


def efficientnet() -> Built:
    return from_timm("efficientnet_b0", size=128)


def mixer() -> Built:
    return from_timm("mixer_s32_224")


def densenet() -> Built:
    return from_timm("densenet121", size=128)


def regnet() -> Built:
    return from_timm("regnety_002", size=128)


def resnet50() -> Built:
    from torchvision.models import resnet50

    return resnet50(weights=None, num_classes=100), (images(128),)


class Segmentation(nn.Module):
    """The "out" of a segmentation model's dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)["out"]


def deeplab() -> Built:
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    model = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=21)
    return Segmentation(without_dropout(model)), (images(128),)


def segformer() -> Built:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 64, 128], drop_path_rate=0.0,
                             classifier_dropout_prob=0.0, hidden_dropout_prob=0.0)  # fmt: skip
    return Output(SegformerForSemanticSegmentation(config), ("pixel_values",), "logits"), (images(128),)


def sam_encoder() -> Built:
    from transformers import SamVisionConfig
    from transformers.models.sam.modeling_sam import SamVisionEncoder

    config = SamVisionConfig(hidden_size=96, output_channels=64, num_hidden_layers=2, num_attention_heads=4,
                             image_size=256, window_size=7, global_attn_indexes=[1], mlp_dim=192)  # fmt: skip
    return Output(SamVisionEncoder(config), ("pixel_values",), "last_hidden_state"), (images(256, 1),)


def clip() -> Built:
    from transformers import CLIPConfig, CLIPModel

    common = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = CLIPConfig(
        text_config={**common, "vocab_size": 1000, "eos_token_id": 999}, vision_config={**common, "image_size": 96},
        projection_dim=64,
    )  # fmt: skip
    model = Output(CLIPModel(config), ("input_ids", "pixel_values"), "logits_per_image")
    return model, (tokens(length=32), images(96))


# --- our own -------------------------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    """A denoiser as diffusion models have it: time embedding, down, attention in the middle, up with skips."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width, time = width, width * 4
        self.embed = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = ResidualBlock(width, width, time), ResidualBlock(width, 2 * width, time)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = ResidualBlock(2 * width, 2 * width, time)
        self.attention = nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.up2, self.up1 = ResidualBlock(4 * width, width, time), ResidualBlock(2 * width, width, time)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        half = self.width // 2
        frequencies = torch.exp(-9.2 * torch.arange(half, device=x.device) / half).to(x.dtype)
        angles = steps.to(x.dtype)[:, None] * frequencies
        time = self.embed(torch.cat([angles.sin(), angles.cos()], -1))
        a = self.down1(self.first(x), time)
        b = self.down2(self.shrink(a), time)
        y = self.middle(b, time)
        flat = y.flatten(2).transpose(1, 2)
        y = y + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(y.shape)
        y = self.up2(torch.cat([y, b], 1), time)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        return self.last(self.up1(torch.cat([y, a], 1), time))


def unet() -> Built:
    return UNet(), (images(32), torch.tensor([3, 500]))


class VAE(nn.Module):
    """A convolutional autoencoder whose noise comes from outside, so that results compare."""

    def __init__(self, latent: int = 32) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
            nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Linear(4096, 2 * latent),
        )  # fmt: skip
        self.decode = nn.Sequential(
            nn.Linear(latent, 4096), nn.Unflatten(1, (64, 8, 8)), nn.ConvTranspose2d(64, 32, 4, 2, 1),
            nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encode(x).chunk(2, 1)
        image = self.decode(mean + noise * (0.5 * log_variance).exp())
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return F.mse_loss(image, x), divergence


def vae() -> Built:
    return VAE(), (images(32, 4), torch.randn(4, 32))


class GraphConvolution(nn.Module):
    """Two rounds of messages along edges, normalised by degree, then a sum over each graph."""

    def __init__(self, features: int = 32, width: int = 64) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, width), nn.Linear(width, width)
        self.edge = nn.Linear(2 * width, 1)
        self.head = nn.Linear(width, 8)

    def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
        source, target = edges
        degree = torch.zeros_like(x[:, 0]).index_add(0, target, torch.ones_like(target, dtype=x.dtype)).clamp(min=1)
        x = F.relu(self.first(x))
        x = torch.zeros_like(x).index_add(0, target, x[source]) / degree[:, None]
        x = F.relu(self.second(x))
        gate = torch.sigmoid(self.edge(torch.cat([x[source], x[target]], -1)))
        x = torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, x.shape[1]), gate * x[source])
        return self.head(torch.zeros(4, x.shape[1], device=x.device, dtype=x.dtype).index_add(0, graph, x))


def gnn() -> Built:
    return GraphConvolution(), (torch.randn(200, 32), torch.randint(0, 200, (2, 800)), torch.randint(0, 4, (200,)))


class Tagger(nn.Module):
    """A bidirectional LSTM over embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 64)
        self.lstm = nn.LSTM(64, 64, num_layers=2, bidirectional=True, batch_first=True)
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 20)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(F.gelu(self.norm(self.lstm(self.embedding(ids))[0]))).log_softmax(-1)


def lstm() -> Built:
    return Tagger(), (torch.randint(0, 500, (4, 24)),)


class DLRM(nn.Module):
    """Embedding bags of several tables, a bottom and a top MLP, and all pairs of dot products between."""

    def __init__(self, tables: int = 6, width: int = 32) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(200 + 50 * i, width, mode="sum") for i in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: Tensor, indices: Tensor) -> Tensor:
        bottom = self.bottom(dense)
        rows = torch.stack([bottom, *(bag(indices[i]) for i, bag in enumerate(self.bags))], 1)
        products = rows @ rows.transpose(1, 2)
        return self.top(torch.cat([products[:, self.pairs[0], self.pairs[1]], bottom], 1)).sigmoid()


def dlrm() -> Built:
    return DLRM(), (torch.randn(16, 13), torch.randint(0, 200, (6, 16, 5)))


MODELS: dict[str, Callable[[], Built]] = {
    build.__name__: build
    for build in (
        gpt2, llama, qwen, mixtral, gemma, phi, bert, roberta, albert, t5, whisper_encoder, wav2vec2, vit, swin,
        convnext, efficientnet, mixer, densenet, regnet, resnet50, deeplab, segformer, sam_encoder, clip, unet, vae,
        gnn, lstm, dlrm,
    )
}  # fmt: skip
