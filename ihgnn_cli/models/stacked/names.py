"""Maps one member's parameters in a stack to the names of the readable model."""

from collections.abc import Mapping

from torch import Tensor

# Names in a stack and its checkpoints, mapped to those in `models.ihgnn.IHGNN`.
_IN_MLP = {
    "weight": "first.weight",
    "tail.scale": "norm.weight",
    "tail.shift": "norm.bias",
    "tail.mean": "norm.running_mean",
    "tail.variance": "norm.running_var",
    "tail.weight": "second.weight",
    "tail.bias": "second.bias",
}
_OUTSIDE = {
    "aggregation.theta": "theta",
    "readout.weight": "classifier.first.weight",
    "hidden_bias": "classifier.first.bias",
    "weight": "classifier.second.weight",
    "bias": "classifier.second.bias",
}


def readable_weights(stack: Mapping[str, Tensor], member: int) -> dict[str, Tensor]:
    """The weights (or the gradients) of one member, by the readable model's names.

    A stack stores a linear map as [S, inputs, outputs], torch.nn.Linear as [outputs, inputs]. A
    stack stores a vector as [S, 1, columns].
    """
    found = {}
    for name, value in stack.items():
        own = value[member]
        if name.endswith("weight"):
            own = own.T
        elif name != "aggregation.theta":
            own = own[0]
        found[_readable(name)] = own
    return found


def _readable(name: str) -> str:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    if name.startswith("input."):
        return f"input.{_IN_MLP[name.removeprefix('input.')]}"
    _, layer, rest = name.split(".", 2)
    return f"convs.{layer}.mlp.{_IN_MLP[rest]}"
