"""Products by other kernels than the libraries': the same numbers as in single precision, whatever the shape."""

from __future__ import annotations

import os

import pytest
from conftest import need

torch = need("torch")

from moirai.torch import half  # noqa: E402
from moirai.torch.ir import function_of  # noqa: E402

ARGS = {
    "linear": [((2, 5, 24), (7, 24), (7,)), ((3, 24), (40, 24))],
    "addmm": [((9,), (5, 16), (16, 9)), ((5, 9), (5, 16), (16, 9))],
    "mm": [((33, 70), (70, 35))],
    "bmm": [((3, 6, 8), (3, 8, 10))],
    "matmul": [((2, 3, 6, 8), (3, 8, 10)), ((4, 6, 8), (8, 10)), ((6, 8), (8,)), ((8,), (8, 3))],
}


def check(space, device, dtypes=(torch.float16, torch.bfloat16)):
    for name, cases in ARGS.items():
        for shapes in cases:
            for dtype in dtypes:
                args = [torch.randn(s, device=device).to(dtype) for s in shapes]
                if len(shapes[0]) > 1:
                    args[0] = args[0].transpose(0, 1).contiguous().transpose(0, 1)  # other strides
                got = function_of(f"{space}.{name}.default")(*args)
                expected = getattr(torch.ops.aten, name).default(*(a.float() for a in args))
                assert got.dtype == dtype and got.shape == expected.shape and got.is_contiguous()
                assert float((got.float() - expected).norm() / expected.norm()) < 0.01, (space, name, shapes)


def test_products_in_single_precision_are_right():
    check("moirai_single", "cpu")


@pytest.mark.skipif(not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"), reason="no GPU")
def test_products_by_triton_are_right():
    """Without a GPU: TRITON_INTERPRET=1, where Triton is installed; its interpreter has no bfloat16."""
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        check("moirai_triton", "cuda")
    else:
        check("moirai_triton", "cpu", (torch.float16,))


def test_compilers_leave_them_as_they_are():
    x, w = torch.randn(4, 8).bfloat16(), torch.randn(6, 8).bfloat16()
    product = function_of("moirai_single.linear.default")

    def forward(x, w):
        return torch.relu(product(x, w, None))

    made = torch.compile(forward, backend="aot_eager", fullgraph=True)
    assert torch.allclose(made(x, w).float(), forward(x, w).float())


def test_what_has_no_other_kernel_says_so():
    assert half.instead("aten.conv2d.default") == half.instead("moirai.linear_act") == []
    assert half.instead("aten.mm.default") == ["moirai_triton.mm.default", "moirai_single.mm.default"]
