"""What systems and tools put beside images: hidden files, and folders for trash and thumbnails.

One rule for folders and archives, of data sets and of photos alike.
"""

from collections.abc import Iterable

# Names of folders that do not begin with a dot, in lower case; those with a dot are hidden anyway.
TOOL_FOLDERS = frozenset({
    "__macosx", "network trash folder", "temporary items", "thevolumesettingsfolder",  # macOS
    "$recycle.bin", "recycler", "recycled", "system volume information", "$extend",  # Windows
    "found.000",  # Windows: pieces that chkdsk saved
    "lost+found",  # Linux
    "@eadir", "#recycle", "#snapshot", "@tmp", "@sharebin", "@synoresource",  # Synology
    "@recycle", "@recently-snapshot", "@__thumb",  # QNAP
    "~snapshot",  # NetApp
    "files_trashbin", "files_versions",  # Nextcloud
    "ipod photo cache",  # iTunes
    "node_modules", "__pycache__",
})  # fmt: skip

_PREVIEWS = ".lrdata"  # how Lightroom's folders of previews end


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or has the name of a folder of a system or tool."""
    plain = name.lower()
    return name.startswith(".") or plain in TOOL_FOLDERS or plain.endswith(_PREVIEWS)


def hidden_part(parts: Iterable[str]) -> str | None:
    """The first part of a path that is hidden; None if all of it can be seen."""
    return next((part for part in parts if is_hidden(part)), None)
