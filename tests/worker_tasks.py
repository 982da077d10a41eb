"""What workers of tests do: in a module that their processes can import."""

import os
import signal
import time
from pathlib import Path

from ihgnn_cli.errors import SettingError
from ihgnn_cli.jobs.processes import Place, Send


def say(argument: object, place: Place, send: Send) -> None:
    affinity = sorted(os.sched_getaffinity(0)) if place.core is not None else None
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    send((argument, place.device, affinity, os.environ["OMP_NUM_THREADS"], ignored))


def die_until(file: Path, place: Place, send: Send) -> None:
    """The first place dies until the file has three lines; the second waits for that."""
    if place.device == "one":
        with file.open("a") as stream:
            stream.write("life\n")
        if len(file.read_text().splitlines()) < 3:
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        send(("second", os.getpid()))
        while len(file.read_text().splitlines()) < 3:
            time.sleep(0.01)
    send((place.device, os.getpid()))


def die(_: object, place: Place, send: Send) -> None:
    if place.device == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    send("alive")


def refuse(kind: str, _place: Place, _send: Send) -> None:
    match kind:
        case "setting":
            raise SettingError("epochs", "must be at least 1, not 0.")
        case "disk":
            raise OSError(28, "No space left on device")
        case "bug":
            raise KeyError("x")
