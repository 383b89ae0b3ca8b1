"""A component cannot import modules while it runs, so nothing that is read may need one that was not imported."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.messages import ALL
from tests.mailboxes import write_mbox

_PROGRAM = """
import sys
from mail_provider.provider import Mail

class Refuse:
    def find_spec(self, name, path=None, target=None):
        raise AssertionError(f"{name} is imported while the provider runs")

def refuse(event, arguments):
    if event == "import" and arguments[0] not in sys.modules:
        raise AssertionError(f"{arguments[0]} is imported while the provider runs")

sys.meta_path.insert(0, Refuse())
sys.addaudithook(refuse)
import json
mail = Mail(sys.argv[1], {})
mail.list_resources(None)
mail.read("")
rows, reference = [], "folders/all"
while reference:
    answer = json.loads(mail.read(reference).body)
    rows += answer["messages"]
    reference = answer.get("next")
assert len(rows) == int(sys.argv[2]), len(rows)
for row in rows:
    for query in ("", "?view=headers", "?view=source"):
        text = mail.read(row["reference"] + query).body
    mail.read(row["reference"].replace("messages/", "threads/", 1))
    for part in range(1, 8):
        try:
            mail.read(f"{row['reference']}?part={part}")
        except Exception as error:
            assert type(error).__name__ == "NotFound", error
mail.read("search/all?text=nothing&since=2020-01-01")
"""


class Imports(unittest.TestCase):
    def test_reading_imports_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            write_mbox(Path(directory) / "all", *ALL.values())
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, directory, str(len(ALL))], capture_output=True, text=True
            )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
