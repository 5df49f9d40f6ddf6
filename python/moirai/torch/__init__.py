"""From a torch.nn.Module to several devices: capture, profile, plan, distribute (docs/pytorch.md)."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("moirai.torch needs PyTorch 2.6 or later: pip install torch") from error

from .capture import Captured, CaptureError, capture
from .distribute import Distributed, distribute
from .measure import Options
from .profile import Profile, probe, profile
from .timeline import Measured
from .tune import Times, Trial, Tuned, tune
from .verify import whole
from .workers import RankError, Workers

__all__ = [
    "CaptureError",
    "Captured",
    "Distributed",
    "Measured",
    "Options",
    "Profile",
    "RankError",
    "Times",
    "Trial",
    "Tuned",
    "Workers",
    "capture",
    "distribute",
    "probe",
    "profile",
    "tune",
    "whole",
]
