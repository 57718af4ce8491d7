"""Write docs/record.schema.json from the annotations against which files are checked."""

import json
from pathlib import Path
from typing import Any

from zsntta_cli.results.exchange import reader

PATH = Path(__file__).parents[1] / "docs" / "record.schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return {"$schema": DRAFT, **without_titles(reader().json_schema())}


def without_titles(schema: Any) -> Any:
    """A schema without pydantic's titles, which repeat the names, and without defaults."""
    if isinstance(schema, list):
        return [without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: without_titles(v) for k, v in schema.items() if k not in ("title", "default")}


if __name__ == "__main__":
    PATH.write_text(json.dumps(json_schema(), indent=2) + "\n")
    print(PATH)
