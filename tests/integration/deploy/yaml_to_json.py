"""Prints the documents of a YAML file as one JSON array: yaml_to_json.py FILE"""

import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    json.dump([document for document in yaml.safe_load_all(file) if document is not None], sys.stdout)
