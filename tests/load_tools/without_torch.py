"""Runs a benchmark client whose package needs more than is installed.

    without_torch.py NAMES MODULE CALL [ARGUMENTS...]

The clients of vLLM, SGLang and guidellm send requests and measure: they need no engine and no
PyTorch, but importing them imports both. Modules named in NAMES (with commas, submodules included)
become stand-ins without an effect. guidellm also makes a data loader of PyTorch's: torch's
stand-in has one that gives each item in its order.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from typing import Generic, TypeVar
from unittest.mock import MagicMock

Item = TypeVar("Item")


class Tensor:
    pass


class Dataset(Generic[Item]):
    pass


class DataLoader(Generic[Item]):
    def __init__(self, dataset, collate_fn, **_):
        self.dataset, self.collate_fn = dataset, collate_fn

    def __iter__(self):
        return (self.collate_fn([item]) for item in self.dataset)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if any(name == absent or name.startswith(absent + ".") for absent in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        module.Tensor, module.DataLoader, module.IterableDataset = Tensor, DataLoader, Dataset
        module.get_worker_info = lambda: None
        return module

    def exec_module(self, module):
        pass


if __name__ == "__main__":
    _, names, module, call, *arguments = sys.argv
    sys.meta_path.insert(0, StandIns(names.split(",")))
    sys.argv = [module, *arguments]
    exec(call, vars(importlib.import_module(module)))
