# SPDX-License-Identifier: Apache-2.0
"""Comments are sentences: none begins with a fragment, and a rank, thread or process is named.

usage: words.py ROOT [--list]

A fragment is a comment whose first word is "Of", "Who", "Whom", "What" or "To whom". The words "who" and "whom" are faults
wherever they stand in a comment, because few comments are about people: write "the rank that". Questions (a sentence that ends
with a question mark), quoted words, code in backticks and options such as --who are no faults. With --list, every place is
printed.
"""

import collections
import io
import re
import sys
import tokenize

import tree

# The tree has none; the limits are here for the tests of this check.
MOST_FRAGMENTS = 0
MOST_WHO = 0

_CPP = (".hpp", ".h", ".cpp", ".c", ".cu")
_SHELL = (".sh", ".cmake", "CMakeLists.txt")
# Strings are matched first, so that what looks like a comment inside them is none.
_CPP_TOKENS = re.compile(
    r'(?P<string>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)
_HASH = re.compile(r"(?:^|(?<=\s))#(?!!)[^\n]*", re.MULTILINE)
_FRAGMENT = re.compile(r"(?:Of|Who|Whom|What|To whom) ")
_WHO = re.compile(r"\b[Ww]hom?\b")
_DATA = re.compile(r'"[^"\n]*"|`[^`\n]*`|(?<!\S)--[\w-]+')
_QUESTION = re.compile(r"(?:(?<=[.?!:])\s|^)[^.?!:]*\?")
_MARK = re.compile(r"^\s*(?://[/!]?<?|/\*+<?|\*(?!/)|#+|r?\"\"\"|r?''')[ \t]*")


def _cpp_comments(text):
    for match in _CPP_TOKENS.finditer(text):
        if match.group("comment"):
            yield text.count("\n", 0, match.start()) + 1, match.group("comment")


def _python_comments(text):
    """Comments, and strings that stand alone as a statement: documentation."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        statement = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and statement):
            yield token.start[0], token.string
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING):
            before = token.type


def _hash_comments(text):
    for match in _HASH.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group()


def comments(path, lines):
    """(line, text) of each comment in code; none for a file that is no code."""
    text = "\n".join(lines) + "\n"
    first = lines[0] if lines else ""
    if path.endswith(_CPP):
        return _cpp_comments(text)
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return _python_comments(text)
    if path.endswith(_SHELL) or first.startswith("#!"):
        return _hash_comments(text)
    return iter(())


def _blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


def _assertions(comment):
    """The comment without quoted data and questions, with its lines kept. Only comments of one token: `//` lines are
    read one by one, so a question there has to fit its line."""
    mark = _MARK.match(comment)
    text = _DATA.sub(_blanked, comment[mark.end():] if mark else comment)
    return _QUESTION.sub(_blanked, text)


def places(root):
    """(path, line, "fragment" or "who", text) of each place."""
    for path in tree.files(root):
        lines = tree.lines(root, path)
        last = None  # Line of the last comment that had its line to itself.
        for number, comment in comments(path, lines):
            alone = lines[number - 1].lstrip().startswith(comment[:2])
            continued = alone and last == number - 1
            last = number + comment.count("\n") if alone else None
            text = _assertions(comment)
            if not continued and _FRAGMENT.match(text):
                yield path, number, "fragment", comment.split("\n")[0]
            for match in _WHO.finditer(text):
                line = number + text.count("\n", 0, match.start())
                yield path, line, "who", lines[line - 1].strip()


def check(root, most_fragments=MOST_FRAGMENTS, most_who=MOST_WHO):
    found = list(places(root))
    if "--list" in sys.argv:
        for path, number, kind, text in found:
            print(f"{path}:{number}: {kind}: {text}")
    counts = collections.Counter(kind for _, _, kind, _ in found)
    print(f"{counts['fragment']} comments begin with a fragment; {counts['who']} times who or whom")
    faults = []
    for kind, most, remedy in (("fragment", most_fragments, "write a sentence with subject and verb"),
                               ("who", most_who, "name the rank, thread or process")):
        if counts[kind] > most:
            faults += [f"{path}:{number}: {kind}: {text} ({remedy})" for path, number, which, text in found if which == kind]
    return faults


if __name__ == "__main__":
    tree.main(check)
