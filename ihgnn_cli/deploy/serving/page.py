"""The page at `/`: what the model is, a form to try it, and the endpoints. Loads nothing else."""

import json
from html import escape
from typing import Any

from ihgnn_cli.data.recode import some_values
from ihgnn_cli.deploy.serving.openapi import example
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.words import counted

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { text-align: left; padding: .2rem 1rem .2rem 0;
vertical-align: top } textarea { width: 100%; box-sizing: border-box; font-family: monospace }
pre { background: #8882; padding: .5rem; white-space: pre-wrap; overflow-wrap: anywhere }
:root { color-scheme: light dark }
"""
_SCRIPT = """
const form = document.querySelector("form"), out = document.querySelector("output");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  out.textContent = "…";
  try {
    const answer = await fetch("predict", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: form.elements.graph.value,
    });
    out.textContent = JSON.stringify(await answer.json(), null, 2);
  } catch (error) {
    out.textContent = String(error);
  }
});
"""


def page(name: str, card: ModelCard, document: dict[str, Any]) -> str:
    """The page as HTML; `document` is the OpenAPI description."""
    facts = {
        "Data": card.dataset_name,
        "Classes": some_values(card.class_values),
        "Node labels": some_values(card.label_values) if card.inputs.labels else "not read",
        "Node attributes": str(card.given_attributes) if card.given_attributes else "not read",
        "Largest graph of the data": counted(card.max_nodes, "node"),
        "Trained": "" if card.snapshot is None else str(card.snapshot),
    }
    rows = "".join(
        f"<tr><th>{escape(head)}</th><td>{escape(text)}</td></tr>"
        for head, text in facts.items()
        if text
    )
    calls = "".join(
        f"<tr><td><code>{method.upper()} {escape(path.replace('{name}', name))}</code></td>"
        f"<td>{escape(call['summary'])}</td></tr>"
        for path, methods in document["paths"].items()
        if "{version}" not in path
        for method, call in methods.items()
        if method in ("get", "post")
    )
    graph = escape(json.dumps(example(card)))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(name)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(name)}</h1>
<p>A model that classifies graphs, served by ihgnn.</p>
<table>{rows}</table>
<h2>Try it</h2>
<form><label>A graph, or a list of graphs, as JSON:
<textarea name="graph" rows="5" spellcheck="false">{graph}</textarea></label>
<p><button>Classify</button></p></form>
<pre><output></output></pre>
<h2>Endpoints</h2>
<table>{calls}</table>
<p><a href="openapi.json">OpenAPI description</a></p>
<script>{_SCRIPT}</script></body></html>
"""
