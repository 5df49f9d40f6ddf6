"""The networks of networks.py as ONNX files: python3 bench/export_onnx.py FOLDER [NAME...]; SMALL=1 for tests."""

import os
import sys
import warnings
from pathlib import Path

import networks
import torch


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(networks.NETWORKS)
    warnings.filterwarnings("ignore")  # of the exporter: shapes are fixed on purpose
    for name in names:
        module, args = networks.make(name, small=bool(os.environ.get("SMALL")))
        inputs = [f"x{i}" for i in range(len(args))]
        path = folder / f"{name}.onnx"
        torch.onnx.export(module, args, str(path), opset_version=17, dynamo=False, input_names=inputs)


if __name__ == "__main__":
    main()
