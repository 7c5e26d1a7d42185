# SPDX-License-Identifier: Apache-2.0
"""A class is small enough to hold in mind, and its name says which class it is.

usage: classes.py ROOT [--list]

Of each class or struct of the product:

- At most 25 public declarations: member functions, types and constants. Overloads of one name count once. Constructors,
  destructor and assignments together count once. Friends and public data members do not count.
- At most 500 lines in its header and its .cpp files. A file in which the class has more lines than any other class counts
  whole; of another file, only the class's own lines count. The class's lines are its body and its members' definitions,
  those of its nested classes included. Of a class that only its .cpp file sees, such as one in an anonymous namespace, the
  class's own lines count, or the whole file if the class has more than half of its lines.

No two classes, structs or enumerations of the product that are outside other classes have the same name, whatever their
namespaces. This rule does not count classes in an anonymous namespace, specialisations of templates and the public headers.

With --list, the largest classes are printed.
"""

import collections
import dataclasses
import os
import re
import sys

import functions
import tree

MOST_PUBLIC = 25
MOST_LINES = 500

# Names that several classes may have, and why. At most 5.
SHARED = {
    "Heartbeat": "each protocol names its messages by the field's words; the namespace says which protocol",
    "Hello": "a message, as Heartbeat",
    "Leave": "a message, as Heartbeat",
}
MOST_SHARED = 5

NOT_PRODUCT = ("bench", "docs", "examples", "tests")
# These headers are for programs that never see ours, so they may use a name that we use, such as Result.
PUBLIC_HEADERS = "runtime/include/"
_TYPE = re.compile(r"^(?:typedef\s+)?(class|struct|union|enum(?:\s+class|\s+struct)?)\b\s*((?:\w+\s*::\s*)*\w*)")
_ACCESS = re.compile(r"\b(public|protected|private)\s*:(?!:)")
_ATTRIBUTE = re.compile(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]|\b__attribute__\s*\(\(.*?\)\)|\bHORO_[A-Z_]+\b(?:\([^()]*\))?", re.DOTALL)
_OPERATOR = re.compile(r"\boperator\s*(\(\s*\)|\[\s*\]|[^\s\w(]+|\w[\w:\s]*?(?=\s*[(&*]))")
_FUNCTION = re.compile(r"(~?\w+)\s*\(")
_MEMBER = re.compile(r"((?:\w+::)+)(?:~?\w+|operator\b[^(]*)\s*\(")
_SPECIAL = "constructors, destructor and assignments"


@dataclasses.dataclass
class Class:
    """A class, struct, union or enumeration, and how many lines its body has."""

    name: str  # With the classes around it: "Outer::Inner".
    kind: str
    first: int
    last: int = 0
    public: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class _Scope:
    kind: str  # "namespace", "class" or "other"
    head: str = ""  # The text before the brace, when the declaration goes on behind the brace.
    cls: Class = None
    access: str = ""
    hidden: bool = False  # Inside an anonymous namespace.


def _without_angles(text):
    """`text` without <...>; comparisons and operators are left alone where brackets do not match."""
    text = text.replace("operator<=>", "operator_3").replace("operator<<", "operator_l").replace("operator>>", "operator_r")
    text = text.replace("->", "  ")
    before = None
    while before != text:
        before = text
        text = re.sub(r"<[^<>;{}]*>", "", text)
    return text


def declared(head, name):
    """The counted name that the declaration `head` gives to a class `name`, or None."""
    head = functions._without_template(_ATTRIBUTE.sub(" ", head))
    if not head or re.match(r"(friend|static_assert|public|private|protected)\b", head):
        return None
    kind = _TYPE.match(head)
    if kind and "(" not in head:
        return kind.group(2) or None
    if head.startswith("using"):
        return re.match(r"using\s+(?:enum\s+|typename\s+)?(?:\w+\s*::\s*)*(\w+)", _without_angles(head)).group(1)
    head = _without_angles(head)
    first = head.split("=")[0] if "operator" not in head else head
    if "operator" in head:
        operator = "operator" + re.sub(r"\s+", "", (_OPERATOR.search(head) or re.match("()", "")).group(1))
        return _SPECIAL if operator == "operator=" else operator
    function = _FUNCTION.search(first)
    if function:
        return _SPECIAL if function.group(1).lstrip("~") == name.split("::")[-1] else function.group(1)
    if re.match(r"(?:inline\s+)?(?:static\s+(?:constexpr|const|inline)|constexpr)\b", head):
        return re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\{|$)", head).group(1)
    return None


class Parser:
    """Finds the classes of a file, and the lines that out-of-class definitions give to each class."""

    def __init__(self, text):
        self.classes = []  # Every class with a body.
        self.hidden = set()  # Names that no other file sees.
        self.lines = collections.Counter()  # Outermost class -> its lines in this file.
        self._scopes = [_Scope("namespace")]
        self._parse(functions._BLANKED.sub(functions._blank, text))

    def _parse(self, text):
        head, number, start = "", 1, None
        depth = 0
        for token in re.split(r"([{};\n])", text):
            number += token == "\n"
            if depth:
                depth += (token == "{") - (token == "}")
                if depth == 0:
                    self._end_of_function(opening, number)
                    head = opening[1] + "{}" if opening[2] else ""
            elif token == "{":
                head = self._labels(head)
                if functions._kind(head) == "body" and self._scopes[-1].kind != "other":
                    inside = bool(functions._LAMBDA.search(head)) or head.count("(") != head.count(")")
                    opening, depth = (functions._first_line(number, head), head, inside), 1
                else:
                    self._open(head, number)
                    head = ""
            elif token == "}":
                head = self._close(number)
            elif token == ";":
                head = self._labels(head)
                if head.count("(") == head.count(")"):
                    self._declare(head)
                    head = ""
                else:
                    head += token
            else:
                head += token

    def _labels(self, head):
        """`head` without access labels, which set the class's access."""
        scope = self._scopes[-1]
        if scope.kind != "class":
            return head
        for label in _ACCESS.finditer(head):
            scope.access = label.group(1)
        return _ACCESS.sub(" ", head)

    def _declare(self, head):
        scope = self._scopes[-1]
        if scope.kind == "class" and scope.access == "public" and scope.cls.kind != "enum":
            name = declared(head, scope.cls.name)
            if name:
                scope.cls.public.add(name)

    def _open(self, head, number):
        scope = self._scopes[-1]
        plain = functions._without_template(_ATTRIBUTE.sub(" ", head))
        kind = _TYPE.match(plain)
        if scope.kind == "other" or not (kind and "(" not in plain) and not re.match(r"(inline\s+)?namespace\b|extern\b", plain):
            self._scopes.append(_Scope("other", head))
        elif not kind:
            hidden = scope.hidden or re.fullmatch(r"(inline\s+)?namespace\s*", plain) is not None
            self._scopes.append(_Scope("namespace", hidden=hidden))
        else:
            word, name = kind.group(1).split()[0], re.sub(r"\s", "", kind.group(2))
            special = plain[kind.end():].lstrip().startswith("<")
            if scope.kind == "class":
                self._declare(head)
                name = f"{scope.cls.name}::{name}"
            found = Class(name, word, functions._first_line(number, head))
            self.classes.append(found)
            if scope.hidden or special:
                self.hidden.add(name)
            self._scopes.append(_Scope("class", cls=found, access="private" if word == "class" else "public", hidden=scope.hidden))

    def _close(self, number):
        if len(self._scopes) == 1:
            raise ValueError(f"line {number}: a brace is closed that was not opened")
        scope = self._scopes.pop()
        if scope.kind == "other":
            return scope.head + "{}"
        if scope.kind == "class":
            scope.cls.last = number
            if self._scopes[-1].kind == "namespace":
                self.lines[scope.cls.name.split("::")[0]] += number - scope.cls.first + 1
        return ""

    def _end_of_function(self, opening, number):
        first, head, inside = opening
        if inside:
            return
        if self._scopes[-1].kind == "class":
            self._declare(head)
        elif self._scopes[-1].kind == "namespace":
            member = _MEMBER.search(_without_angles(head))
            if member:
                self.lines[member.group(1).split("::")[0]] += number - first + 1


def product(root):
    """(path, Parser, number of lines) of every C++ file of the product."""
    for path in tree.files(root):
        if path.endswith((".hpp", ".cpp")) and path.split("/")[0] not in NOT_PRODUCT:
            lines = tree.lines(root, path)
            try:
                yield path, Parser("\n".join(lines) + "\n"), len(lines)
            except ValueError as error:
                raise SystemExit(f"{path}: cannot be cut into classes: {error}") from error


def sizes(files):
    """Class of a header -> its path, and -> its lines, for classes outside others; `files` as from product()."""
    homes = {name: path for path, parser, _ in files if path.endswith(".hpp") for name in parser.lines
             if any(found.name == name and found.kind != "enum" for found in parser.classes)}
    total = collections.Counter()
    for path, parser, count in files:
        ranked = parser.lines.most_common()
        local = {found.name for found in parser.classes} if path.endswith(".cpp") else set()
        for name, own in ranked:
            if name in homes and name not in local:
                total[name] += count if name == ranked[0][0] else own
    return homes, total


def local_sizes(files, homes):
    """(path, class, its lines) of every class that no header has; `files` as from product(), `homes` as from sizes()."""
    for path, parser, count in files:
        for found in parser.classes if path.endswith(".cpp") else ():
            local = found.name in parser.hidden or found.name not in homes
            if local and "::" not in found.name and found.kind != "enum":
                own = parser.lines[found.name]
                yield path, found, count if own > count / 2 else own


def shared_names(files, shared):
    if len(shared) > MOST_SHARED:
        yield f"{len(shared)} class names may be shared, at most {MOST_SHARED}"
    places = collections.defaultdict(list)
    for path, parser, _ in files:
        for found in parser.classes if not path.startswith(PUBLIC_HEADERS) else ():
            if "::" not in found.name and found.name and found.name not in parser.hidden:
                places[found.name].append(f"{path}:{found.first}")
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in shared:
            yield f"{name}: the name of {len(found)} classes: {', '.join(found)}"


def check(root, shared=None):
    files = list(product(root))
    faults = []
    classes = [(path, found) for path, parser, _ in files for found in parser.classes]
    homes, total = sizes(files)
    local = list(local_sizes(files, homes))
    print(f"{len(classes)} classes, {len(local)} of them in .cpp files only")
    if "--list" in sys.argv:
        for path, found in sorted(classes, key=lambda item: -len(item[1].public))[:20]:
            print(f"{path}:{found.first}: {found.name}: {len(found.public)} public declarations: {', '.join(sorted(found.public))}")
        for name, lines in total.most_common(30):
            print(f"{homes[name]}: {name}: {lines} lines")
        for path, found, lines in sorted(local, key=lambda item: -item[2])[:20]:
            print(f"{path}:{found.first}: {found.name}: {lines} lines")
    for path, found in classes:
        if len(found.public) > MOST_PUBLIC:
            faults.append(f"{path}:{found.first}: {found.name} has {len(found.public)} public declarations, at most {MOST_PUBLIC}")
    for name, lines in sorted(total.items()):
        if lines > MOST_LINES:
            faults.append(f"{homes[name]}: {name} has {lines} lines in its header and .cpp files, at most {MOST_LINES}")
    for path, found, lines in local:
        if lines > MOST_LINES:
            faults.append(f"{path}:{found.first}: {found.name} has {lines} lines, at most {MOST_LINES}")
    return faults + list(shared_names(files, SHARED if shared is None else shared))


if __name__ == "__main__":
    tree.main(check)
