"""How data sets are found: on this machine only or by download, and who shows that."""

from dataclasses import dataclass
from pathlib import Path

from ihgnn_cli.progress import NO_PROGRESS, Progress


@dataclass(frozen=True)
class Access:
    """Where data sets may come from."""

    data_root: Path | None = None
    """Folder with data sets by name, for downloads, too; `None`: the default one."""
    offline: bool = False
    """Never download."""
    progress: Progress = NO_PROGRESS
    """Shows reading and downloading."""


DEFAULT = Access()
