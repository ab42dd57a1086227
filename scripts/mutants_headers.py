"""Mutants of C headers: one operator, constant or statement changed at a time. Tokens are enough for these headers.

Left alone: comments, strings, preprocessor lines and parameter tables (their values are in the register, which tests
read), declarations outside of functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RELATIONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("*",), "<<": (">>",), ">>": ("<<",)}
ASSIGNMENTS = {
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "*=": ("=",),
    "|=": ("=",),
    "&=": ("=",),
    "++": ("--",),
    "--": ("++",),
}
LOGIC = {"&&": ("||",), "||": ("&&",), "&": ("|",), "|": ("&",), "!": ("",), "~": ("",)}
OPERATORS = RELATIONS | ARITHMETIC | ASSIGNMENTS | LOGIC

TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_]\w*)|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*)"
    r"|(?P<operator><<=|>>=|->|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|.)",
    re.DOTALL,
)
# before these a sign, `*` or `&` belongs to one operand
UNARY_AFTER = set("(,=?:{};[+-*/%&|<>!~") | {"return", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "<<", ">>"}
TYPES = {"u8", "u16", "u32", "u64", "int", "void", "struct", "const", "char", "long"}


@dataclass(frozen=True)
class Mutant:
    """`length` characters at `at` of a file become `replacement`."""

    file: str
    at: int
    length: int
    line: int
    column: int
    function: str
    text: str
    replacement: str

    @property
    def name(self) -> str:
        text = " ".join(self.text.split())
        what = f"replace `{text}` with `{self.replacement}`" if self.replacement else f"delete `{text}`"
        return f"{self.file}:{self.line}:{self.column}: {what} in {self.function}"


def blanked(text: str) -> str:
    """The text with comments, strings and preprocessor lines as spaces, so that places stay the same."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', spaces, text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", spaces, text, flags=re.MULTILINE)


def bodies(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, begin and end of the body of every function of a blanked text."""
    for match in re.finditer(r"^FLOW_FN\b[^;{]*?(\w+)\s*\([^;{]*\)\s*\{", text, flags=re.MULTILINE):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match[1], match.end(), at - 1


def _constants(token: str) -> tuple[str, ...]:
    digits, suffix = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", token).groups()
    value = int(digits, 0)
    return tuple(f"{other}{suffix}" for other in dict.fromkeys((value + 1, max(value - 1, 0), 0)) if other != value)


def _operators(text: str, begin: int, end: int) -> Iterator[tuple[int, str, str]]:
    before, at = ";", begin
    while at < end:
        match = TOKEN.match(text, at)
        token, kind = match[0], match.lastgroup
        if kind == "operator" and token in OPERATORS:
            unary = before in UNARY_AFTER and token in "+-*&"
            pointer = token == "*" and before in TYPES | {"f", "params", "state"} and before not in {"f"}
            label = token == "--" or token == "++"
            if not unary and not pointer and (label or text[at : at + 2] != "->"):
                yield from ((at, token, other) for other in OPERATORS[token])
        elif kind == "number" and before not in {"["}:
            yield from ((at, token, other) for other in _constants(token))
        if kind != "space":
            before = token
        at = match.end()


# a statement of its own: an assignment, a count or a call; a return or a declaration cannot go
STATEMENT = re.compile(r"(?<=[;{})])(\s*)((?:\(\*?\w+\)\s*)?[\w.>\[\]-]+(?:\s*[-+*/|&]?=[^=;]|\+\+|--|\()[^;{}]*;)")
CONDITION = re.compile(r"\bif \(")


def _statements(text: str, begin: int, end: int) -> Iterator[tuple[int, str, str]]:
    for match in STATEMENT.finditer(text, begin, end):
        first = re.match(r"\w+", match[2])
        if first and first[0] not in TYPES | {"return", "if", "for", "while", "else"}:
            yield match.start(2), match[2], ";"
    for match in CONDITION.finditer(text, begin, end):
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        for other in ("1", "0"):
            yield match.end(), text[match.end() : at - 1], other


def mutants(headers: Path, root: Path) -> list[Mutant]:
    """All mutants of a directory of headers, in the order of their places; files are named from `root`."""
    found = []
    for path in sorted(headers.glob("*.h")):
        text = blanked(path.read_text())
        for function, begin, end in bodies(text):
            places = sorted({*_operators(text, begin, end), *_statements(text, begin, end)})
            for at, token, other in places:
                line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
                file = str(path.relative_to(root))
                found.append(Mutant(file, at, len(token), line, column, function, token, other))
    return found
