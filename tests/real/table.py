"""The table of the fault matrix in docs/agents.md: between two marker lines, one part for each agent."""

BEGIN, END = "<!-- matrix: begin, written by tests/real/run.sh --matrix --write -->", "<!-- matrix: end -->"
HEADS = ["Fault", "The program", "Classification", "The loop", "Commits kept", "Requests", "Took"]
SHOWN_ONLY = 2              # the last columns are measured, shown and not compared


def duration(seconds):
    """Coarse, since it depends on the machine."""
    for step, most in ((1, 10), (5, 60), (10, 300)):
        if seconds < most:
            return "%d s" % max(step, round(seconds / step) * step)
    return "%d min" % round(seconds / 60)


def wait(seconds):
    """A wait in words. Chance has a part in it, so that peers do not come back all at once."""
    if seconds < 100:
        return "some seconds"
    if seconds < 450:
        return "some minutes"
    return "about %d min" % (round(seconds / 900) * 15) if seconds < 5400 else "%d h" % round(seconds / 3600)


def read(document):
    """The rows as they stand there, by agent and fault."""
    rows, agent = {}, None
    text = document.read_text(encoding="utf-8")
    for line in text[text.index(BEGIN):text.index(END)].splitlines():
        if line.startswith("### "):
            agent = line[4:].split()[0]
        elif line.startswith("| ") and not line.startswith("| Fault "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows[agent, cells[0]] = cells
    return rows


def write(document, order, measured):
    """Puts what was measured in its place; rows that were not measured stay. `order`: (agent, fault)."""
    text, rows = document.read_text(encoding="utf-8"), {**read(document), **measured}
    out, before = [BEGIN], None
    for agent, fault in order:
        if agent != before:
            out += ["", "### %s" % agent, "", "| %s |" % " | ".join(HEADS), "|%s" % ("---|" * len(HEADS))]
            before = agent
        if (agent, fault) in rows:
            out.append("| %s |" % " | ".join(rows[agent, fault]))
    out += ["", END]
    head, tail = text[:text.index(BEGIN)], text[text.index(END) + len(END):]
    document.write_text(head + "\n".join(out) + tail, encoding="utf-8")


def differences(document, measured):
    """What the document says otherwise than what was measured."""
    rows = read(document)
    for key, row in sorted(measured.items()):
        there = rows.get(key)
        if there is None:
            yield "%s, %s: %s has no row for it" % (*key, document.name)
        elif there[:-SHOWN_ONLY] != row[:-SHOWN_ONLY]:
            yield "%s, %s: %s says %s, measured was %s" % (*key, document.name, there, row)
