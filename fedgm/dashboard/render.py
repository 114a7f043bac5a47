"""One self-contained HTML file: style, script and data inlined, and a policy that lets no request out."""

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parent / "page"
# In the order in which they use each other.
SCRIPTS = (
    "format", "data", "groups", "means", "noise", "address", "filter", "colours", "view", "controls", "scale",
    "chart", "panels", "curves", "crosshair", "legend", "glance", "heatmap", "parallel", "table", "compare",
    "staleness", "partition", "write", "svg", "picture", "save", "live", "main",
)  # fmt: skip


def render(payload: dict[str, Any], live: bool = False) -> str:
    """The page; equal payloads give equal bytes."""
    script = "(() => {\n'use strict';\n" + "\n".join(_part(f"{name}.js") for name in SCRIPTS) + "\n})();\n"
    style = _part("page.css")
    values = {
        "POLICY": _policy(script, style, live),
        "STYLE": style,
        "SCRIPT": script,
        "LIVE": "live" if live else "file",
        "DATA": embed(payload),
    }
    before, *rest = _part("page.html").split("{{")
    pieces = [before]
    for piece in rest:  # split once: data that contains {{SCRIPT}} stays as it is
        name, _, after = piece.partition("}}")
        pieces += [values[name], after]
    return "".join(pieces)


def dumps(payload: dict[str, Any]) -> str:
    """JSON in few bytes."""
    return json.dumps(payload, separators=(",", ":"), allow_nan=False)


def embed(payload: dict[str, Any]) -> str:
    """JSON that cannot leave its script element; json.dumps has already escaped U+2028 and U+2029."""
    return dumps(payload).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str, style: str, live: bool) -> str:
    """Only our own script and style; only a served page may ask, and only its own server."""
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        f"connect-src {connect}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")
