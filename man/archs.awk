# SPDX-License-Identifier: MIT
# archs.awk - gguf-architectures(7) from doc/architectures.md
#
# Each row of the table there becomes an entry, with a line for each column.

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
    print "The key general.architecture of a file names the architecture of its model,"
    print "which determines its tensors, its keys and its computation."
    print ".BR \"gguf\\-info \\-\\-check\""
    print "knows all architectures of this page."
    print ".BR gguf\\-ppl (1)"
    print "and programs that use the library evaluate those whose entry has the line"
    print ".IR checked ."
    print ".PP"
    print "An entry lists the differences from llama."
    print "Llama has RMS norms before attention and before the feed\\-forward part, a"
    print "gated feed\\-forward part with SiLU, queries, keys and values in separate"
    print "matrices or in one, scores divided by sqrt(d), causal attention, one key and one"
    print "value in the cache for each token, and an output matrix that may be the token"
    print "embedding."
    print "\"Maybe\" marks a part that files may lack."
    print ".PP"
    print "The line"
    print ".I checked"
    print "has one or more of these words."
    print "\"logits\": the library's logits of a small model are compared with those of"
    print "llama.cpp (August 2026)."
    print "\"doubles\": they are compared with a calculation in double precision that follows"
    print "the papers alone."
    print "\"names\": names and shapes of the tensors of a file are checked."
    print "If llama.cpp departs from the definition of a model, libgguf follows the"
    print "definition and the keys of the file, and the entry says so."
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
