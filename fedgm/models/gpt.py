"""A small GPT over characters or bytes, in nanoGPT's CPU setting: 4 layers, 4 heads, width 128, block 64."""

import math

from torch import Tensor, nn
from torch.nn import functional as F

from fedgm.errors import require

DEEPEST = 1000  # layers; more would take minutes to be made


class GPT(nn.Module):
    """Pre-LayerNorm transformer with learned positions and a tied head; no biases, no dropout.

    Tied: the matrix that embeds a token also scores it, as in nanoGPT. It is one parameter, so the server
    averages it and steps it once.
    """

    def __init__(self, vocabulary: int, block: int, layers: int, heads: int, width: int) -> None:
        super().__init__()
        self.block = block
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(block, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self._draw_weights(layers)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next token at every place: (batch, time) -> (batch, time, vocabulary)."""
        time = tokens.shape[1]
        x = self.token(tokens) + self.position.weight[:time]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.token.weight)

    def _draw_weights(self, layers: int) -> None:
        """N(0, .02), and less for what is added to the residual stream, so that its size does not grow."""
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                residual = name.endswith("out.weight")
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)


class Layer(nn.Module):
    """Causal self-attention, then two linear maps with GELU, each added to its own input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width, bias=False)
        self.mlp = Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out as in."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Attention(nn.Module):
    """Every place looks at itself and at what comes before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out as in."""
        batch, time, width = x.shape
        split = self.query_key_value(x).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(batch, time, width))


class Mlp(nn.Module):
    """Four times as wide inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4 * width, bias=False)
        self.out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out as in."""
        return self.out(F.gelu(self.inner(x)))


def gpt(vocabulary: int, block: int = 64, layers: int = 4, heads: int = 4, width: int = 128) -> GPT:
    """803,968 parameters for a vocabulary of 64 characters.

    >>> sum(weights.numel() for weights in gpt(vocabulary=64).parameters())
    803968
    """
    for key, value in (("block", block), ("layers", layers), ("heads", heads), ("width", width)):
        require(value >= 1, f"model.{key}", value, "at least 1", f"model.{key}=4")
    require(layers <= DEEPEST, "model.layers", layers, f"1 to {DEEPEST}", "model.layers=4")
    allowed = f"a multiple of model.heads={heads}"
    require(width % heads == 0, "model.width", width, allowed, f"model.width={heads * 32}")
    return GPT(vocabulary, block, layers, heads, width)
