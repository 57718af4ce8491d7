"""Features in a data set repository of the Hugging Face hub: hf://USER/REPO[@REVISION].

`@REVISION` is a branch, a tag or a commit; what is read is of one commit, the one that it named
when the index was read.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.sharing.stores import HUB, MissingAtStore, MissingPlace

_ADDRESS = re.compile(rf"{HUB}://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?/?")
_KIND = "dataset"  # of the repository
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_FIRST = "*.h5"  # files that are uploaded before those that name them


class HubStore:
    """A data set repository of the hub."""

    def __init__(self, repository: str, wanted: str | None = None) -> None:
        """`wanted`: a branch, a tag or a commit."""
        self.address, self._repository, self._wanted = f"{HUB}://{repository}", repository, wanted
        self._commit: str | None = None
        self._endpoint = os.environ.get("HF_ENDPOINT") or None

    @classmethod
    def at(cls, address: str) -> "HubStore":
        """The repository of an address: StoreError where it is none."""
        match = _ADDRESS.fullmatch(address)
        if not match:
            raise StoreError(f"'{address}' is no repository: must be {HUB}://USER/REPO[@REVISION].")
        return cls(match[1], match[2])

    @property
    def revision(self) -> str | None:
        """The commit that is read, or was written last."""
        return self._commit

    def read(self, path: str) -> bytes:
        """A small file whole, of the commit that is meant: MissingAtStore where there is none.

        Without a network it is the hub's copy on this machine, where there is one.
        """
        with self._asking(path):
            is_out_of_reach = not self._is_reached()
            file = self._download(path, self._wanted, local_files_only=is_out_of_reach)
        depth = len(Path(path).parts)  # it lies in the hub's cache: …/snapshots/COMMIT/PATH
        self._commit = Path(file).parents[depth - 1].name
        return Path(file).read_bytes()

    def _is_reached(self) -> bool:
        """Whether the hub answers: asked once, without the retries that a download makes."""
        from huggingface_hub import HfApi, errors

        if self._commit is not None:
            return True
        try:
            api = HfApi(endpoint=self._endpoint)
            api.dataset_info(self._repository, revision=self._wanted, timeout=_TIMEOUT)
        except (errors.HfHubHTTPError, errors.HFValidationError):
            raise
        except Exception:  # of the network: the library's, its HTTP client's and the system's
            return False
        return True

    def _download(self, path: str, revision: str | None, **how: Any) -> str:
        """Where a file lies now, as the hub's library has brought it."""
        from huggingface_hub import hf_hub_download

        file: str = hf_hub_download(
            self._repository, path, repo_type=_KIND, revision=revision, endpoint=self._endpoint,
            etag_timeout=_TIMEOUT, **how,
        )  # fmt: skip
        return file

    def fetch(self, path: str, target: Path, size: int) -> None:
        """Bring a file to `target`; what came of it before stays beside it until it is whole."""
        del size  # the hub tells it
        beside = target.with_name(f"{target.name}.hub")
        with self._asking(path):
            file = self._download(path, self._commit or self._wanted, local_dir=beside)
        os.replace(file, target)
        shutil.rmtree(beside, ignore_errors=True)

    def publish(self, folder: Path) -> str | None:
        """Upload a folder's files, those that name others last; the repository is made if need be.

        What an interrupted upload has brought is not uploaded again.
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
        """Turn what the hub's library raises into one line."""
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
        except errors.HFValidationError as error:
            raise StoreError(f"'{self.address}' is no repository ({first_line(error)}).") from error
        except StoreError:
            raise
        except Exception as error:  # of the network: the library's, httpx's and the system's
            raise StoreError(f"cannot reach {place}{at} ({first_line(error)}).") from error
