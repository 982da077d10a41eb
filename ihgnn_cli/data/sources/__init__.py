"""Where data sets come from: bundled or synthetic, files, the data root, downloads, the cache."""

from ihgnn_cli.data.sources.source import (
    Origin,
    Source,
    bundled_folder,
    find_in_root,
    is_own_name,
    load_dataset,
    locate,
    locate_by_name,
    locate_file,
    read,
    refuse_overwriting,
)

__all__ = [
    "Origin",
    "Source",
    "bundled_folder",
    "find_in_root",
    "is_own_name",
    "load_dataset",
    "locate",
    "locate_by_name",
    "locate_file",
    "read",
    "refuse_overwriting",
]
