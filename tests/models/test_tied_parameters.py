"""A parameter in two places is refused, since a stack would make it two; a module is not."""

import pytest
import torch
from torch import nn

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.autograd import AutogradStack


def stack(make):
    return AutogradStack(make, [torch.Generator().manual_seed(each) for each in (0, 1)])


def test_one_parameter_in_two_modules_is_refused():
    def make():
        tied = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
        tied[1].weight = tied[0].weight
        return tied

    with pytest.raises(InputError, match="Sequential has one parameter in two modules"):
        stack(make)


def test_one_module_in_two_places_is_one_in_a_stack():
    def make():
        shared = nn.Linear(3, 3, bias=False)
        return nn.Sequential(shared, nn.ReLU(), shared)

    made = stack(make)
    assert [tuple(each.shape) for each in made.parameters()] == [(2, 3, 3)]
    assert made.inner[0] is made.inner[2]
