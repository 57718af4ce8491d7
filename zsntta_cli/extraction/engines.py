"""Where parts are encoded, if not in this process: one process a device, or a Ray cluster."""

from zsntta_cli.errors import SettingsError
from zsntta_cli.extraction.cluster import Cluster
from zsntta_cli.extraction.jobs import Encoded, Engine, encode_parts, job_for
from zsntta_cli.extraction.processes import Processes
from zsntta_cli.settings import RAY, ExtractSettings

__all__ = ["Encoded", "Engine", "devices", "encode_parts", "engine_for", "job_for"]


def engine_for(settings: ExtractSettings, device: str) -> Engine | None:
    """The engine for a `--device`; None where this process does the work."""
    names = devices(device)
    if settings.engine == RAY:
        return Cluster()
    return Processes(names) if len(names) > 1 else None


def devices(name: str) -> list[str]:
    """The devices meant: `cuda:0,cuda:2` is two, and `cuda` is all GPUs of the machine."""
    import torch

    names = name.split(",")
    if len({one.partition(":")[0] for one in names}) > 1:
        raise SettingsError(f"device is '{name}': all must be of one type, or features differ.")
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        return [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return names
