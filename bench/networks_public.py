"""Networks of PyPI's transformers as bench/shard.py runs them: published sizes, random weights, one tensor in, one out."""

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


MAKERS: dict[str, Callable[[bool], Any]] = {
    "hf:gpt2": _gpt2, "hf:bert": _bert, "hf:vit": _vit, "hf:t5": _t5, "hf:whisper": _whisper, "hf:swin": _swin
}  # fmt: skip


def make(name: str, small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module in eval mode and its arguments."""
    torch.manual_seed(1)
    module, args = MAKERS[name](small)
    return module.eval(), args
