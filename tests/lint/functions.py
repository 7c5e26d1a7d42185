# SPDX-License-Identifier: Apache-2.0
"""Functions are short enough to read in one piece: at most 60 lines in C++ and Python.

usage: functions.py ROOT [--list]

A function is counted from the first line of its declaration to its closing brace. Lambdas and local classes count as a part
of the function around them. With --list, every function over 40 lines is printed.
"""

import ast
import re
import sys

import tree

MOST_LINES = 60
LONG = 40
# Functions over these lengths. The second number may only fall.
MOST_OVER_60 = 0
MOST_OVER_40 = 24
# Longer with reason: generated code, and tables of machine instructions.
EXEMPT = ("docs/reference/", "completions/")

_CPP = (".hpp", ".h", ".cpp", ".c", ".cu")
_BLANKED = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r'|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
_TYPE = re.compile(r"^(?:(?:typedef|static|inline|constexpr|const|export)\s+)*(?:namespace|class|struct|union|enum)\b")
_BODY = re.compile(r"\)\s*(?:(?:const|volatile|noexcept|override|final|mutable|constexpr|try|&|&&)\s*|\(\s*\)\s*)*"
                   r"(?:->[^{};]*)?(?:requires\b[^{};]*)?$")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:mutable|noexcept|constexpr|\s)*$")
_INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
_ATTRIBUTE = re.compile(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]|\b__attribute__\s*\(\(.*?\)\)|\b(?:public|private|protected)\s*:(?!:)", re.DOTALL)
_TEMPLATE = re.compile(r"^\s*template\s*<")


def _blank(match):
    """As many lines as before, and no character that means anything."""
    text = match.group()
    return ('""' if text[0] in "\"R" else "0" if text[0] == "'" else "") + "\n" * text.count("\n")


def _without_template(head):
    """`head` behind its `template <...>`, whose default arguments may look like anything."""
    while _TEMPLATE.match(head):
        depth = 0
        for place, letter in enumerate(head):
            depth += (letter == "<") - (letter == ">")
            if letter == ">" and depth == 0:
                break
        head = head[place + 1:]
    return head.strip()


def _kind(head):
    """Kind of the brace behind `head`: the "body" of a function, a "scope" of declarations, or a "value"."""
    head = _without_template(_ATTRIBUTE.sub(" ", head))
    if (_TYPE.match(head) and "(" not in head) or head.endswith("extern \"\""):
        return "scope"
    if _INITIALISERS.search(head):
        return "body" if head.endswith((")", "}")) else "value"
    return "body" if _BODY.search(head) or _LAMBDA.search(head) else "value"


def _first_line(number, head):
    """Where the declaration in `head`, which ends on line `number`, begins."""
    text = _ATTRIBUTE.sub(lambda match: "\n" * match.group().count("\n"), head)
    return number - text.lstrip().count("\n")


def cpp_functions(text):
    """(first line, last line) of each outermost function. Raises ValueError where the braces do not match."""
    text = _BLANKED.sub(_blank, text)
    found, opened, head, number = [], [], "", 1
    depth = 0  # Number of open braces in the present function; 0 between functions.
    for token in re.split(r"([{};\n])", text):
        number += token == "\n"
        if depth:
            depth += (token == "{") - (token == "}")
            if depth == 0:
                found.append((first, number))
                head = opened.pop() + "{}" if value_inside else ""
        elif token == "{":
            kind = _kind(head)
            if kind == "body":
                first, depth = _first_line(number, head), 1
                value_inside = bool(_LAMBDA.search(head)) or head.count("(") != head.count(")")
                if value_inside:
                    opened.append(head)
            else:
                opened.append(head if kind == "value" else None)
                head = ""
        elif token == "}":
            if not opened:
                raise ValueError(f"line {number}: a brace is closed that was not opened")
            before = opened.pop()
            head = "" if before is None else before + "{}"
        elif token == ";":
            head = "" if head.count("(") == head.count(")") else head + token
        else:
            head += token
    if opened or depth:
        raise ValueError("a brace is not closed")
    return found


def python_functions(text):
    """(first line, last line) of each function, also of those inside others."""
    return [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def functions(root):
    """(path, first line, number of lines) of every function in the tree."""
    for path in tree.files(root):
        lines = tree.lines(root, path)
        is_python = path.endswith(".py") or (lines and lines[0].startswith("#!") and "python" in lines[0])
        if path.startswith(EXEMPT) or not (is_python or path.endswith(_CPP)):
            continue
        text = "\n".join(lines) + "\n"
        try:
            for first, last in python_functions(text) if is_python else cpp_functions(text):
                yield path, first, last - first + 1
        except (SyntaxError, ValueError) as error:
            raise SystemExit(f"{path}: cannot be cut into functions: {error}") from error


def check(root, most_over_60=MOST_OVER_60, most_over_40=MOST_OVER_40):
    every = sorted(functions(root), key=lambda function: -function[2])
    over_40 = [function for function in every if function[2] > LONG]
    over_60 = [function for function in over_40 if function[2] > MOST_LINES]
    print(f"{len(every)} functions, {len(over_40)} of them over {LONG} lines, {len(over_60)} over {MOST_LINES}")
    if "--list" in sys.argv:
        for path, first, count in over_40:
            print(f"{path}:{first}: {count} lines")
    faults = []
    if len(over_60) > most_over_60:
        faults += [f"{path}:{first}: a function of {count} lines, at most {MOST_LINES}" for path, first, count in over_60]
    if len(over_40) > most_over_40:
        faults.append(f"{len(over_40)} functions are over {LONG} lines, at most {most_over_40} (see --list)")
    return faults


if __name__ == "__main__":
    tree.main(check)
