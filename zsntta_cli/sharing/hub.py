"""Features in a data set repository of the Hugging Face hub: hf://USER/REPO[@REVISION].

`@REVISION` is a branch, a tag or a commit. All files are read from one commit, the one that the
revision named when the index was read.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from zsntta_cli.addresses import HUB, MissingAtStore
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.sharing.stores import LARGEST_TEXT, MissingPlace

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_ADDRESS = re.compile(rf"{HUB}://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?/?")
_KIND = "dataset"  # the hub's type of the repository
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_FIRST = "*.h5"  # feature files are uploaded before the index, which names them


class HubStore:
    """A data set repository of the hub."""

    def __init__(self, repository: str, wanted: str | None = None) -> None:
        """`wanted` is a branch, a tag or a commit."""
        self.address, self._repository, self._wanted = f"{HUB}://{repository}", repository, wanted
        self._commit: str | None = None
        self._endpoint = os.environ.get("HF_ENDPOINT") or None

    @classmethod
    def at(cls, address: str) -> "HubStore":
        """Open the repository of an address: StoreError if it is no such address."""
        match = _ADDRESS.fullmatch(address)
        if not match:
            raise StoreError(f"'{address}' is no repository: must be {HUB}://USER/REPO[@REVISION].")
        return cls(match[1], match[2])

    @property
    def revision(self) -> str | None:
        """The commit that is read, or that was written last."""
        return self._commit

    def read(self, path: str) -> bytes:
        """Read a small file whole, of the wanted revision: MissingAtStore if there is none.

        Without a network, the copy in the hub's cache on this machine is read, if there is one.
        """
        from huggingface_hub import hf_hub_download

        with self._asking(path):
            is_out_of_reach = not self._is_reached(path)
            file = hf_hub_download(
                self._repository, path, repo_type=_KIND, revision=self._wanted,
                endpoint=self._endpoint, etag_timeout=_TIMEOUT, local_files_only=is_out_of_reach,
            )  # fmt: skip
        depth = len(Path(path).parts)  # the file is …/snapshots/COMMIT/PATH of the hub's cache
        self._commit = Path(file).parents[depth - 1].name
        return Path(file).read_bytes()

    def _is_reached(self, path: str) -> bool:
        """Ask once whether the hub answers, without the retries that a download makes.

        Raises:
            StoreError: the file is too large to be read whole.
        """
        from huggingface_hub import errors

        try:
            size = self._metadata(path, self._wanted).size
        except (errors.HfHubHTTPError, errors.HFValidationError):
            raise
        except Exception:  # network errors of the library, its HTTP client and the system
            return False
        if size is not None and size > LARGEST_TEXT:
            raise StoreError(f"{self.address}/{path} has more than {LARGEST_TEXT:,} bytes.")
        return True

    def _metadata(self, path: str, revision: str | None) -> "HfFileMetadata":
        from huggingface_hub import get_hf_file_metadata

        url = self._url(path, revision)
        return get_hf_file_metadata(url, timeout=_TIMEOUT, endpoint=self._endpoint)

    def _url(self, path: str, revision: str | None) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(
            self._repository, path, repo_type=_KIND, revision=revision, endpoint=self._endpoint
        )

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Fetch a file of `size` bytes into `target`, from the byte where an earlier attempt ended.

        `hf_hub_download` would begin anew in each process.
        """
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        revision = self._commit or self._wanted
        with self._asking(path):
            metadata, headers = self._metadata(path, revision), build_hf_headers()
            if metadata.size != size:
                raise StoreError(
                    f"{self.address}/{path} is not what its index says: it has {metadata.size:,} "
                    f"bytes, must have {size:,}."
                )
            if urlsplit(metadata.location).netloc != urlsplit(self._url(path, revision)).netloc:
                headers.pop("authorization", None)  # another host must not get the user's token
            with target.open("ab") as part:
                if part.tell() > size:
                    part.truncate(0)
                begun = target.stat().st_size
                http_get(
                    metadata.location, part, resume_size=begun, headers=headers,
                    expected_size=size, displayed_filename=path,
                )  # fmt: skip

    def publish(self, folder: Path) -> str | None:
        """Upload the files of a folder, feature files first; the repository is made if need be.

        What an interrupted upload has transferred is not uploaded again.
        """
        from huggingface_hub import HfApi

        api = HfApi(endpoint=self._endpoint)
        with self._asking(""):
            api.create_repo(self._repository, repo_type=_KIND, exist_ok=True)
            upload = partial(
                api.upload_folder, repo_id=self._repository, folder_path=folder, repo_type=_KIND,
                revision=self._wanted, commit_message="features for zsntta",
            )  # fmt: skip
            upload(allow_patterns=_FIRST)
            self._commit = upload(ignore_patterns=_FIRST).oid
        return self._commit

    @contextmanager
    def _asking(self, path: str) -> Iterator[None]:
        """Turn errors of the hub's library into one line."""
        from huggingface_hub import errors

        place = f"{self.address}/{path}".rstrip("/")
        at = f"@{self._wanted}" if self._wanted else ""
        try:
            yield
        except errors.GatedRepoError as error:
            raise StoreError(
                f"{self.address} asks for consent: give it at its page on the hub, then hf auth "
                f"login."
            ) from error
        except (errors.RepositoryNotFoundError, errors.LocalTokenNotFoundError) as error:
            raise MissingPlace(
                f"the hub has no data set {self.address}, or you may not see or write it: hf auth "
                f"login says who you are."
            ) from error
        except errors.RevisionNotFoundError as error:
            raise StoreError(f"{self.address} has no revision {self._wanted}.") from error
        except errors.LocalEntryNotFoundError as error:
            raise StoreError(
                f"cannot reach {place}{at}: no network, or HF_HUB_OFFLINE is set, and this machine "
                f"has no copy."
            ) from error
        except errors.EntryNotFoundError as error:
            raise MissingAtStore(f"there is no {place}{at}.") from error
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            why = ": hf auth login says who you are" * (status in (401, 403))
            raise StoreError(
                f"cannot reach {place}{at} (the hub answers {status}){why}."
            ) from error
        except errors.HFValidationError as error:
            raise StoreError(f"'{self.address}' is no repository ({first_line(error)}).") from error
        except StoreError:
            raise
        except Exception as error:  # network errors of the library, httpx and the system
            raise StoreError(f"cannot reach {place}{at} ({first_line(error)}).") from error
