"""Errors a user can cause. The CLI prints one line of them and exits with 1.

ZsnttaError
├── SettingsError     a setting out of its range, or two that do not go together
├── DatasetError      a data set that is unknown, missing or broken
├── EncoderError      a model or its weights cannot be had
└── StoreError        a feature file is missing, broken, foreign or cannot be written
"""


class ZsnttaError(Exception):
    """Base of all errors above: its message says what is wrong, what is right, what to type."""


class SettingsError(ZsnttaError):
    """A setting out of its range, or two settings that do not go together."""


class DatasetError(ZsnttaError):
    """A data set that is unknown, missing or broken."""


class EncoderError(ZsnttaError):
    """A model or its weights cannot be had."""


class StoreError(ZsnttaError):
    """A feature file is missing, broken, foreign, or cannot be written."""
