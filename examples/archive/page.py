"""Puts the accepted captions of a folder together, by name, as one page: `page.py FOLDER`, text on stdout."""

import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).glob("*.txt")):
    sys.stdout.write(f"{path.stem}: {path.read_text()}")
