"""Networks as bench/shard.py runs them: those of PyPI's transformers (hf:), and two that are cut by rows of the image (image:);
published sizes, random weights."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor, nn


class Only(nn.Module):
    """A model of transformers with one of its results; `fixed` are arguments that are no input of a request."""

    def __init__(self, model: nn.Module, argument: str, result: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.argument, self.result, self.fixed = model, argument, result, fixed

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.model(**{self.argument: x, **self.fixed}), self.result)  # type: ignore[no-any-return]


class Both(nn.Module):
    """An encoder and a decoder, the tokens of both given."""

    def __init__(self, model: nn.Module, argument: str, result: str) -> None:
        super().__init__()
        self.model, self.argument, self.result = model, argument, result

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        given = {self.argument: x, "decoder_input_ids": tokens, "use_cache": False}
        return getattr(self.model(**given), self.result)  # type: ignore[no-any-return]


def _tokens(words: int, n: int) -> Tensor:
    return torch.randint(0, words, (1, n))


def _gpt2(small: bool) -> Any:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(**(dict(n_layer=2, n_embd=64, n_head=4, vocab_size=100) if small else {}))
    return Only(GPT2Model(config), "input_ids", "last_hidden_state", use_cache=False), (
        _tokens(config.vocab_size, 16 if small else 1024),
    )


def _bert(small: bool) -> Any:
    from transformers import BertConfig, BertModel

    sizes = dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=256, vocab_size=100)
    config = BertConfig(**(sizes if small else {}))
    return Only(BertModel(config, add_pooling_layer=False), "input_ids", "last_hidden_state"), (
        _tokens(config.vocab_size, 16 if small else 512),
    )


def _vit(small: bool) -> Any:
    from transformers import ViTConfig, ViTModel

    sizes = dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=256, image_size=32)
    config = ViTConfig(**(sizes if small else {}))
    return Only(ViTModel(config, add_pooling_layer=False), "pixel_values", "last_hidden_state"), (
        torch.randn(1, 3, config.image_size, config.image_size),
    )


def _t5(small: bool) -> Any:
    from transformers import T5Config, T5Model

    base = dict(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)
    tiny = dict(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100)
    config = T5Config(**(tiny if small else base))
    n = 16 if small else 512
    return Both(T5Model(config), "input_ids", "last_hidden_state"), (
        _tokens(config.vocab_size, n), _tokens(config.vocab_size, n // 2)
    )  # fmt: skip


def _whisper(small: bool) -> Any:
    from transformers import WhisperConfig, WhisperModel

    base = dict(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12,
                decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)  # fmt: skip
    tiny = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=16, vocab_size=100, pad_token_id=0,
                bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)  # fmt: skip
    config = WhisperConfig(**(tiny if small else base))
    heard = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    return Both(WhisperModel(config), "input_features", "last_hidden_state"), (
        heard, _tokens(config.vocab_size, 8 if small else 128)
    )  # fmt: skip


def _swin(small: bool) -> Any:
    from transformers import SwinConfig, SwinModel

    base = dict(embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32])
    tiny = dict(image_size=56, embed_dim=32, depths=[2, 2], num_heads=[2, 4])
    config = SwinConfig(**(tiny if small else base))
    return Only(SwinModel(config, add_pooling_layer=False), "pixel_values", "last_hidden_state"), (
        torch.randn(1, 3, config.image_size, config.image_size),
    )


class Bottleneck(nn.Module):
    def __init__(self, c_in: int, c: int, stride: int) -> None:
        super().__init__()

        def conv(a: int, b: int, k: int, s: int = 1) -> list[nn.Module]:
            return [nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b)]

        self.body = nn.Sequential(*conv(c_in, c, 1), nn.ReLU(), *conv(c, c, 3, stride), nn.ReLU(), *conv(c, 4 * c, 1))
        self.short = nn.Sequential(*conv(c_in, 4 * c, 1, stride)) if stride > 1 or c_in != 4 * c else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.short(x) + self.body(x))


class Resnet(nn.Module):
    """ResNet-50 has c = 64 and blocks of 3, 4, 6, 3."""

    def __init__(self, c: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 1000) -> None:
        super().__init__()
        stem = [nn.Conv2d(3, c, 7, 2, 3, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        width, layers = c, []
        for stage, n in enumerate(blocks):
            for i in range(n):
                layers.append(Bottleneck(width, c << stage, 2 if stage and not i else 1))
                width = 4 * (c << stage)
        self.stem, self.layers, self.head = nn.Sequential(*stem), nn.Sequential(*layers), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.stem(x)).mean((2, 3)))  # type: ignore[no-any-return]


class Unet(nn.Module):
    """Levels of twice the width and half the size, and back with what was there on the way down."""

    def __init__(self, c: int = 64, levels: int = 4, classes: int = 2) -> None:
        super().__init__()

        def two(a: int, b: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

        widths = [c << i for i in range(levels + 1)]
        self.down = nn.ModuleList(two(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(two(a + 2 * a, a) for a in reversed(widths[:-1]))
        self.head = nn.Conv2d(c, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for step in self.down:
            x = step(nn.functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for step, before in zip(self.up, reversed(kept[:-1])):
            x = step(torch.cat([before, nn.functional.interpolate(x, scale_factor=2)], 1))
        return self.head(x)  # type: ignore[no-any-return]


def _resnet(small: bool) -> Any:
    return Resnet(8, (1, 1), 10) if small else Resnet(), (torch.randn(1, 3, *[64 if small else 224] * 2),)


def _unet(small: bool) -> Any:
    return Unet(4, 2) if small else Unet(), (torch.randn(1, 3, *[32 if small else 256] * 2),)


# layers, width, heads, batch, tokens: pre-norm transformers
LAYERS = {"gpt-12x768": (12, 768, 12, 1, 1024), "gpt-12x1024-batch": (12, 1024, 16, 4, 512),
        "gpt-12x1024-short": (12, 1024, 16, 1, 128), "gpt-8x2048": (8, 2048, 32, 1, 512)}  # fmt: skip
SMALL_LAYERS = {"gpt-tiny": (1, 64, 4, 1, 16), "gpt-2x512": (2, 512, 8, 1, 256), "gpt-2x768-short": (2, 768, 12, 1, 64)}


class Layer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        q, k, v = (p(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        x = x + self.o(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


MAKERS: dict[str, Callable[[bool], Any]] = {
    "hf:gpt2": _gpt2, "hf:bert": _bert, "hf:vit": _vit, "hf:t5": _t5, "hf:whisper": _whisper, "hf:swin": _swin,
    "image:resnet50": _resnet, "image:unet": _unet,
}  # fmt: skip
NAMES = {*MAKERS, *LAYERS, *SMALL_LAYERS}


def make(name: str, small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module in eval mode and its arguments; layers have the size of their name, `small` or not."""
    if name in LAYERS or name in SMALL_LAYERS:
        layers, d, heads, batch, tokens = (LAYERS | SMALL_LAYERS)[name]
        torch.manual_seed(0)
        return nn.Sequential(*(Layer(d, heads) for _ in range(layers))).eval(), (torch.randn(batch, tokens, d),)
    torch.manual_seed(1)
    module, args = MAKERS[name](small)
    return module.eval(), args
