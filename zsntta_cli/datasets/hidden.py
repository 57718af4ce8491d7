"""What systems and tools put beside images: hidden files, and folders for trash and thumbnails.

One rule for folders and archives, of data sets and of photos alike.
"""

from collections.abc import Iterable

# Names of folders that do not begin with a dot, in lower case; those with a dot are hidden anyway.
TOOL_FOLDERS = frozenset({
    "__macosx", "network trash folder", "temporary items", "thevolumesettingsfolder",  # macOS
    "$recycle.bin", "recycler", "recycled", "system volume information", "$extend",  # Windows
    "lost+found",  # Linux
    "@eadir", "#recycle", "#snapshot", "@tmp", "@sharebin", "@synoresource",  # Synology
    "@recycle", "@recently-snapshot",  # QNAP
    "~snapshot",  # NetApp
    "files_trashbin", "files_versions",  # Nextcloud
    "node_modules", "__pycache__",
})  # fmt: skip


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or has the name of a folder of a system or tool."""
    return name.startswith(".") or name.lower() in TOOL_FOLDERS


def hidden_part(parts: Iterable[str]) -> str | None:
    """The first part of a path that is hidden; None if all of it can be seen."""
    return next((part for part in parts if is_hidden(part)), None)
