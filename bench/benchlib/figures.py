# SPDX-License-Identifier: Apache-2.0
"""Makes a row of the rounds of one contender and case, and formats numbers."""

import json
import statistics

LIMIT = "limit"


def busbw_gbs(ranks, size, median_us):
    """Bus bandwidth: the bytes that each rank must send and receive in any sum, divided by the time."""
    return 2 * (ranks - 1) / ranks * size / median_us / 1e3


def aggregate(who, ranks, rounds):
    """Makes a row of the rounds of one case. Each round is a program's row plus others_share."""
    medians = [r["median_us"] for r in rounds]
    median = statistics.median(medians)
    row = {
        "who": who,
        "case": rounds[0]["case"],
        "ranks": ranks,
        "bytes": rounds[0]["bytes"],
        "median_us": round(median, 2),
        "min_us": min(r["min_us"] for r in rounds),
        "p95_us": round(statistics.median(r["p95_us"] for r in rounds), 2),
        "busbw_gbs": round(busbw_gbs(ranks, rounds[0]["bytes"], median), 3),
        "rounds_us": medians,
        "others_share": round(max(r["others_share"] for r in rounds), 3),
    }
    for key in ("entries_per_step", "switches_per_step"):
        values = [r[key] for r in rounds if r.get(key) is not None]
        if values:
            row[key] = round(statistics.median(values), 2)
    return row


def add_limit_ratios(rows):
    """Each row's time divided by the limit's in the same round, case and size: median, least and most."""
    add_ratios(rows, LIMIT, "limit_ratio")


def add_ratios(rows, reference, key):
    """The same, divided by the time of `reference`."""
    times = {(row["case"], row["bytes"]): row["rounds_us"] for row in rows if row["who"] == reference}
    for row in rows:
        theirs = times.get((row["case"], row["bytes"]))
        if not theirs:
            continue
        ratios = [own / other for own, other in zip(row["rounds_us"], theirs) if other > 0]
        if ratios:
            row[key] = round(statistics.median(ratios), 2)
            row[key + "_low"] = round(min(ratios), 2)
            row[key + "_high"] = round(max(ratios), 2)


def write_rows(path, rows):
    """A JSON array, one row per line."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def time_text(us):
    if abs(us) < 1000:
        return "%.1f us" % us
    if abs(us) < 1e6:
        return "%.2f ms" % (us / 1e3)
    return "%.2f s" % (us / 1e6)


def size_text(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return "%d %s" % (size // factor, unit)
    return "%s B" % format(size, ",")


def ratio_text(row):
    if "limit_ratio" not in row:
        return "-"
    digits = "%.1f" if row["limit_ratio"] < 100 else "%.0f"
    return "%s (%s..%s)" % tuple(digits % row[key] for key in ("limit_ratio", "limit_ratio_low", "limit_ratio_high"))


def shell_ratio_text(row):
    if row["shell_ratio"] is None:
        return "-"
    digits = "%.2f" if row["shell_ratio"] < 10 else "%.0f"
    return "%s (%s..%s)" % tuple(digits % row[key] for key in ("shell_ratio", "shell_ratio_low", "shell_ratio_high"))


def optional_text(value):
    return "-" if value is None else "%.1f" % value


def columns(table):
    """Lines of text; the first column is aligned left, the others right."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(line, widths))) for line in table]


def case_table(rows):
    """The rows of one case as a table."""
    table = [["who", "median", "min", "p95", "x limit (spread)", "bus GB/s", "entries", "switches"]]
    for row in rows:
        table.append([row["who"], time_text(row["median_us"]), time_text(row["min_us"]), time_text(row["p95_us"]),
                      ratio_text(row), "%.2f" % row["busbw_gbs"], optional_text(row.get("entries_per_step")),
                      optional_text(row.get("switches_per_step"))])
    return columns(table)


def comparison_table(rows, key, title):
    """As case_table, with the times divided by those of one contender."""
    table = [["who", "median", "min", "p95", title]]
    for row in rows:
        table.append([row["who"], time_text(row["median_us"]), time_text(row["min_us"]), time_text(row["p95_us"]),
                      "-" if key not in row else "%.2f (%.2f..%.2f)" % (row[key], row[key + "_low"], row[key + "_high"])])
    return columns(table)
