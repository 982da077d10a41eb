"""The encoder layer of the two transformers among the baselines."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

SMALL = 0.02
"""Standard deviation of the authors' initial embeddings, in Graphormer and in TokenGT."""


class EncoderLayer(nn.Module):
    """Attention of all tokens to all tokens, then an MLP on each; a LayerNorm precedes both.

        h' = h + W_o concat_k softmax(Q_k K_k^T / sqrt(d) + bias_k) V_k,  (Q K V) = LN(h) W + b
        h'' = h' + W_2 dropout(gelu(W_1 LN(h')))

    Args:
        width: width of the tokens and of the MLP's hidden layer, as in Graphormer and TokenGT.
        heads: number of heads k, which share the width; d is the width of each.
        dropout: dropout rate in the MLP.
        attention_dropout: dropout rate of the attention probabilities. At 0, and with a bias that
            needs no gradient, torch's kernel stores no probabilities, and memory is linear in the
            number of tokens.
    """

    def __init__(
        self, width: int, heads: int, *, dropout: float, attention_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.before_attention = nn.LayerNorm(width)
        self.queries = nn.Linear(width, width)
        self.keys_values = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, h: Tensor, bias: Tensor, *, answers: int | None = None) -> Tensor:
        """[B, T, width] from tokens of the same shape.

        Args:
            h: the tokens.
            bias: [B, heads or 1, T or 1, T] added to the scores, -inf for padding; or a boolean
                mask of the tokens that exist.
            answers: compute only this many leading tokens: [B, answers, width].
        """
        normed = self.before_attention(h)
        if answers is not None:
            h, asking = h[:, :answers], normed[:, :answers]
            bias = bias[:, :, :answers]
        else:
            asking = normed
        key, value = self.keys_values(normed).chunk(2, dim=-1)
        attended = F.scaled_dot_product_attention(
            self._split(self.queries(asking)),
            self._split(key),
            self._split(value),
            bias,
            dropout_p=self.attention_dropout if self.training else 0.0,
        )
        h = h + self.out(attended.transpose(1, 2).flatten(2))
        hidden = F.gelu(self.first(self.before_mlp(h)))
        mixed: Tensor = self.second(F.dropout(hidden, self.dropout, self.training))
        return h + mixed

    def _split(self, h: Tensor) -> Tensor:
        """[B, heads, T, d] from [B, T, width]."""
        return h.view(*h.shape[:2], self.heads, -1).transpose(1, 2)


def start_normal(module: nn.Module, std: float) -> None:
    """Draw the weights of all linear maps from N(0, std²) and set their biases to 0.

    The authors of Graphormer and TokenGT initialize their transformers this way.
    """
    for each in module.modules():
        if isinstance(each, nn.Linear):
            nn.init.normal_(each.weight, std=std)
            if each.bias is not None:
                nn.init.zeros_(each.bias)
