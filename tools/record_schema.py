"""Write docs/record.schema.json anew from the schema that files are held to."""

import json
from pathlib import Path

from zsntta_cli.results.exchange import json_schema

PATH = Path(__file__).parents[1] / "docs" / "record.schema.json"

if __name__ == "__main__":
    PATH.write_text(json.dumps(json_schema(), indent=2) + "\n")
    print(PATH)
