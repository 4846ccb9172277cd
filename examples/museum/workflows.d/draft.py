"""Drafts the label of one object from the museum's record of it: `draft.py RECORD [NOTE]`, text on stdout.

A real house would ask a model or a person here. What matters to the workflow is only that the text may
differ the next time: what a curator approved is the text that was shown, not "the draft of harbour". NOTE is
what a curator wrote when the draft was sent back; it becomes the label's last line.
"""

import json
import sys
from pathlib import Path


def label(record: dict[str, str], note: str = "") -> str:
    """The label: title, maker and year, material, the curator's note and where it came from."""
    lines = [
        record["title"],
        f"{record['maker']}, {record['made']}",
        record["material"],
        "",
        record["note"],
        f"{record['acquired'].capitalize()}.",
    ]
    return "\n".join([*lines, *([note] if note else []), ""])


def label_of(record: str, note: str = "") -> str:
    """The label of the object whose record lies at that path."""
    return label(json.loads(Path(record).read_bytes()), note)


def main() -> int:
    """0 with a draft; 78, which holds the item for a person, where the record lacks something."""
    try:
        text = label_of(*sys.argv[1:3])
    except (OSError, ValueError, KeyError) as error:
        print(f"cannot draft a label from {sys.argv[1]}: {error!r}", file=sys.stderr)
        return 78
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
