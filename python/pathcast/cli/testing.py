"""For tests: whether a document is what a schema of `pathcast schema` says, as far as these use JSON Schema."""

from __future__ import annotations

from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def wrong(document: Any, schema: dict[str, Any], whole: dict[str, Any] | None = None, at: str = "$") -> list[str]:
    """Where it is not, each with its place; none: it is."""
    whole = schema if whole is None else whole
    if "$ref" in schema:
        return wrong(document, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, at)
    if "const" in schema:
        return [] if document == schema["const"] else [f"{at}: {document!r}"]
    if "anyOf" in schema:
        tried = [wrong(document, one, whole, at) for one in schema["anyOf"]]
        return [] if [] in tried else min(tried, key=len)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(
        isinstance(document, _KINDS[kind]) and (kind == "boolean" or not isinstance(document, bool)) for kind in kinds
    ):
        return [f"{at}: {document!r} is no {' or '.join(kinds)}"]
    found: list[str] = []
    if isinstance(document, dict):
        members = schema.get("properties", {})
        found += [f"{at}.{name}: missing" for name in schema.get("required", []) if name not in document]
        others = schema.get("additionalProperties", True)
        for name, of in document.items():
            if name in members:
                found += wrong(of, members[name], whole, f"{at}.{name}")
            elif others is False:
                found.append(f"{at}.{name}: not known")
            elif isinstance(others, dict):
                found += wrong(of, others, whole, f"{at}.{name}")
    elif isinstance(document, list):
        found += [
            one for n, of in enumerate(document) for one in wrong(of, schema.get("items", {}), whole, f"{at}[{n}]")
        ]
    elif not isinstance(document, str | bool | None) and not (
        schema.get("minimum", document) <= document <= schema.get("maximum", document)
    ):
        found.append(f"{at}: {document} is out of bounds")
    return found
