# SPDX-License-Identifier: MIT
# archs.awk - gguf-architectures(7) from doc/architectures.md
#
# Of its table a row is an entry: what it says under each heading.

function plain(s)
{
    gsub(/`/, "", s)
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    sub(/^ +/, "", s)
    sub(/ +$/, "", s)
    return s
}

BEGIN {
    print "'\\\" t"
    print ".\\\" Made of doc/architectures.md by man/archs.awk: do not edit."
    print ".TH GGUF\\-ARCHITECTURES 7 \"2026-11-28\" \"libgguf 0.1.0\" \"Miscellaneous\""
    print ".SH NAME"
    print "gguf\\-architectures \\- models that libgguf checks and evaluates"
    print ".SH DESCRIPTION"
    print "An architecture is what a file names as general.architecture: the"
    print "tensors and keys that such models have, and what is computed of them."
    print "All of these are known to"
    print ".BR \"gguf\\-info \\-\\-check\" ;"
    print "those that are evaluated, by"
    print ".BR gguf\\-ppl (1)"
    print "and by programs that use the library, say how that was checked."
    print ".PP"
    print "An entry says where an architecture differs from llama: RMS norms"
    print "before attention and before a gated feed\\-forward part with SiLU,"
    print "queries, keys and values apart or in one matrix, scores over sqrt(d),"
    print "causal, a key and a value kept for each token, an output matrix that"
    print "may be the embeddings."
    print "\"Maybe\" is what files may lack."
    print ".PP"
    print "How it was checked: \"logits\" are those that llama.cpp (August 2026)"
    print "gives for a small model of the architecture, compared with those of"
    print "this library; \"doubles\" is a calculation in double precision that"
    print "follows the papers alone; \"names\" are the names and shapes of the"
    print "tensors of a file."
    print "Where that program departs from a model's own definition, the file's"
    print "keys and the definition are followed, and the entry says so."
    print ".SH ARCHITECTURES"
}

/^\| architecture / {
    n = split($0, head, "|")
    for (i = 2; i < n; i++)
        head[i] = plain(head[i])
    next
}

/^\|-/ { next }

/^\| / {
    split($0, cell, "|")
    name = cell[2]
    gsub(/[ *]/, "", name)
    print ".TP"
    print ".B " plain(name)
    first = 1
    for (i = 3; i < n; i++) {
        text = plain(cell[i])
        if (text == "")
            continue
        if (!first)
            print ".br"
        print "\\fI" head[i] ":\\fR " text
        first = 0
    }
}

END {
    print ".SH SEE ALSO"
    print ".BR gguf\\-info (1),"
    print ".BR gguf\\-ppl (1),"
    print ".BR libgguf (3)"
}
