"""From a torch.nn.Module to several devices: capture, profile, plan, distribute (docs/pytorch.md)."""

try:
    import torch as _torch  # noqa: F401
except (ImportError, OSError) as error:
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        raise ImportError("moirai.torch needs PyTorch 2.6 or later: pip install torch") from error
    # On one line: it is a rank's last line that its caller shows.
    raise ImportError("PyTorch is here, but can't be imported: " + " ".join(str(error).split())) from error

from .all_cuts import all_cuts_bound
from .capture import Captured, CaptureError, capture
from .choose import CutChoice, choose, piece_times, plan
from .distribute import Distributed, distribute
from .flight import Busy, RequestError
from .held import meetings
from .measure import Options
from .profile import Profile, probe, profile
from .serve import Server, serve
from .timeline import Measured
from .times import Times
from .tune import Trial, Tuned, tune
from .tune_rate import RateTrial, TunedRate, tune_rate
from .verify import whole
from .workers import RankError, Workers

__all__ = [
    "Busy",
    "CaptureError",
    "Captured",
    "CutChoice",
    "Distributed",
    "Measured",
    "Options",
    "Profile",
    "RankError",
    "RateTrial",
    "RequestError",
    "Server",
    "Times",
    "Trial",
    "Tuned",
    "TunedRate",
    "Workers",
    "all_cuts_bound",
    "capture",
    "choose",
    "distribute",
    "meetings",
    "piece_times",
    "plan",
    "probe",
    "profile",
    "serve",
    "tune",
    "tune_rate",
    "whole",
]
