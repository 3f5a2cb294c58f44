# SPDX-License-Identifier: MIT
# page.awk - a manual page of section 3, from its text and the public headers
#
# awk -v dir=lib/gguf -f page.awk NAME.3in >NAME.3
#
# Lines of macros are printed as they are, others are plain text, in which names
# of the library and of pages become bold. Lines that begin with @ ask for
#
#   @synopsis A.h B.h  the inclusion of headers, and the prototypes in them
#   @reference A.h     types and functions of a header in its order, told by
#                      its comments; "Since: 0.1" is left out
#   @about A.h         what the first comment of a header says
#   @code              lines as they are, up to @end
#
# Headers are read as they are written here: a comment stands before what it is
# about, or after it on the line; functions that follow each other without a
# blank line or a comment share one; "--- title ---" begins a section, or a part
# of the section that the text has begun; lines that begin with blanks keep their
# form, and a line with a gap in it is a term and what it means.

# ------------------------------------------------------------------- roff ---

function inner(s)
{
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    gsub(/`/, "\\(ga", s)
    gsub(/'/, "\\(aq", s)
    return s
}

function esc(s)
{
    return (s ~ /^[.]/ ? "\\&" : "") inner(s)
}

# Names of the library and of pages in bold.
function prose(s,   out, name, tail, p)
{
    out = s ~ /^[.]/ ? "\\&" : ""
    while (match(s, NAMES)) {
        name = substr(s, RSTART, RLENGTH)
        p = index(name, "(")
        tail = p ? substr(name, p) : ""
        if (p)
            name = substr(name, 1, p - 1)
        out = out inner(substr(s, 1, RSTART - 1)) "\\fB" inner(name) \
            "\\fR" tail
        s = substr(s, RSTART + RLENGTH)
    }
    return out inner(s)
}

# Lines of a comment, "\n" between them; para is the macro of a paragraph.
function paragraphs(text, para,   k, i, line, s, rows, gap)
{
    k = split(text, line, "\n")
    rows = 0
    for (i = 1; i <= k; i++) {
        s = line[i]
        if (s == "") {
            end_kept("")
            if (rows)
                print ".RE"
            rows = 0
            open_para = para
        } else if (s ~ /^ / && rows) {
            sub(/^ +/, "", s)
            print prose(s)
        } else if (s ~ /^ /) {
            start_para()
            kept(s)
        } else if (match(s, /[^ ]  +[^ ]/) || (rows && s ~ /^GGUF_E_[A-Z]+$/)) {
            end_kept(para)
            if (!rows)
                print ".RS"
            rows = 1
            open_para = ""
            gap = RSTART > 0 ? RSTART : length(s)
            print ".TP\n" prose(substr(s, 1, gap))
            s = substr(s, gap + 1)
            sub(/^ +/, "", s)
            print (s == "" ? "\\&" : prose(s))
        } else {
            if (rows) {
                print ".RE\n" para
                rows = 0
            }
            end_kept(para)
            start_para()
            print prose(s)
        }
    }
    if (rows)
        print ".RE"
    end_kept("")
    open_para = ""
}

# The macro of a paragraph, if one is due.
function start_para()
{
    if (open_para != "")
        print open_para
    open_para = ""
}

# The macro of a paragraph, but not after a heading.
function begin_para()
{
    if (!at_heading)
        print ".PP"
    at_heading = 0
}

# Lines that keep their form.
function kept(s)
{
    if (!in_kept)
        print ".in 4n\n.EX"
    in_kept = 1
    print esc(s)
}

function end_kept(para)
{
    if (in_kept) {
        print ".EE\n.in"
        if (para != "")
            print para
    }
    in_kept = 0
}

# ---------------------------------------------------------------- headers ---

# A declaration without what compilers are told beside it.
function plain(s)
{
    gsub(/GGUF_API|GGUF_MUST_CHECK/, "", s)
    gsub(/[ \t\n]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ *;.*/, "", s)
    if (s ~ /^GGUF_BUILDER_1/)
        s = builder(s, "")
    else if (s ~ /^GGUF_BUILDER_2/)
        s = builder(s, ", struct gguf_tensor *b")
    sub(/ \(/, "(", s)
    gsub(/\* /, "*", s)
    return s
}

function builder(s, more)
{
    sub(/^[^(]*\(/, "", s)
    sub(/\).*/, "", s)
    return "struct gguf_tensor *" s "(struct gguf_ctx *ctx, " \
        "struct gguf_tensor *a" more ")"
}

function name_of(decl)
{
    sub(/\(.*/, "", decl)
    sub(/.*[ *]/, "", decl)
    return decl
}

# The text of a comment: without its marks and those of its lines.
function comment_text(s)
{
    sub(/^[ \t]*\/\* ?/, "", s)
    sub(/ *\*\/[ \t]*$/, "", s)
    gsub(/\n[ \t]*\* ?/, "\n", s)
    gsub(/[ \n]*Since: 0\.1/, "", s)
    sub(/^\n+/, "", s)
    sub(/\n+$/, "", s)
    return s
}

function add(k, t, n)
{
    kind[++n_items] = k
    body[n_items] = t
    note[n_items] = n
}

# Lines from where we are up to one that matches end, as one text.
function rest(file, end,   s)
{
    s = $0
    while (s !~ end && (getline < file) > 0)
        s = s "\n" $0
    return s
}

# Items of a header: "comment", "section", "type", "func", "opaque", "gap".
function read_header(file,   s, t, first, line)
{
    n_items = 0
    first = 1
    while ((getline < file) > 0) {
        if (/^\/\* SPDX-/)
            continue
        line = $0
        if (line ~ /^[ \t]*\/\*/) {
            s = rest(file, "\\*/[ \t]*$")
            if (first) {
                first = 0
                about = s
            } else if (s ~ /^\/\* ---/) {
                t = s
                sub(/^\/\* -+ */, "", t)
                sub(/ *--+[^\n]*/, "", t)
                sub(/\n.*/, "", t)
                add("section", t)
                if (s ~ /\n/) {
                    sub(/^[^\n]*\n/, "", s)
                    add("comment", comment_text("\n" s))
                    add("gap")
                }
            } else
                add("comment", comment_text(s))
        } else if (line == "")
            add("gap")
        else if (line ~ /^#define [A-Z0-9_]+_H$/)
            continue
        else if (line ~ /^#define [A-Z0-9_]+ /) {
            s = rest(file, "[^\\\\]$")
            gsub(/[ \t]*\\\n[ \t]*/, " ", s)
            add("type", s)
        } else if (line ~ /^#define/) { # for headers, not for programs
            rest(file, "[^\\\\]$")
            if (kind[n_items] == "comment")
                n_items--
        } else if (line ~ /^#|^extern|^}$|^__attribute__|^GGUF_PRINTF/)
            continue
        else if (line ~ /^(struct|enum) [a-z_]+;/) {
            t = ""
            if (match(line, /\/\*/)) {
                t = substr(line, RSTART)
                line = substr(line, 1, RSTART - 1)
                $0 = t
                t = comment_text(rest(file, "\\*/[ \t]*$"))
            }
            sub(/;.*/, "", line)
            add("opaque", line, t)
        } else if (line ~ /^(struct|enum)( [a-z0-9_]+)? \{/)
            add("type", rest(file, "(^|\n|; |[^ ] )};[^\n]*$"))
        else if (line ~ /^typedef/)
            add("type", rest(file, ";[^\n]*$"))
        else if (line ~ /^GGUF_/) {
            s = rest(file, ";[^\n]*$")
            t = ""
            if (match(s, /\/\*/)) {
                t = comment_text(substr(s, RSTART))
                s = substr(s, 1, RSTART - 1)
            }
            add("func", plain(s), t)
        } else {
            print "page.awk: " file ": not understood: " line > "/dev/stderr"
            failed = 1
        }
    }
    close(file)
    if (first) {
        print "page.awk: " file ": nothing in it" > "/dev/stderr"
        failed = 1
    }
}

# --------------------------------------------------------------- sections ---

# One prototype, in lines that fit a page of 80 columns.
function prototype(decl,   p, k, i, param, out, width, piece, len, s)
{
    p = index(decl, "(")
    out = "\\fB" esc(substr(decl, 1, p))
    width = p
    s = substr(decl, p + 1)
    sub(/\)$/, "", s)
    sub(/^ +/, "", s)
    k = split(s, param, /, */)
    for (i = 1; i <= k; i++) {
        s = param[i]
        len = length(s) + 2
        if (s != "void" && match(s, /[A-Za-z_][A-Za-z0-9_]*(\[[0-9]*\])?$/)) {
            piece = substr(s, RSTART)
            s = substr(s, 1, RSTART - 1)
            p = index(piece, "[")
            if (!p)
                p = length(piece) + 1
            piece = esc(s) "\\fI" substr(piece, 1, p - 1) "\\fB" \
                substr(piece, p)
        } else
            piece = s
        piece = piece (i < k ? "," : ");")
        if (width + len > 72) {
            out = out "\\fR\n\\fB    " piece
            width = 4 + len
        } else {
            out = out (i > 1 ? " " : "") piece
            width += len
        }
    }
    return out "\\fR"
}

function synopsis(   i, j, any)
{
    print ".nf"
    for (i = 2; i <= n_words; i++)
        print ".B #include <gguf/" word[i] ">"
    for (i = 2; i <= n_words; i++) {
        read_header(dir "/" word[i])
        any = 0
        for (j = 1; j <= n_items; j++)
            if (kind[j] == "func") {
                if (!any++)
                    print ".PP"
                print prototype(body[j])
            }
    }
    print ".fi"
}

# Functions that share a text, then the text.
function flush_tags(   i)
{
    if (n_tags)
        at_heading = 0
    for (i = 1; i <= n_tags; i++)
        print (i == 1 ? ".TP\n" : ".TQ\n") tag[i]
    if (n_tags) {
        if (tag_text == "" && !after_type) {
            print "page.awk: " at ": " tag[1] ": no text" > "/dev/stderr"
            failed = 1
        }
        if (tag_text == "")
            print "\\&"
        else
            paragraphs(tag_text, ".IP")
    }
    n_tags = 0
    tag_text = ""
}

function flush_text()
{
    if (pending != "") {
        begin_para()
        paragraphs(pending, ".PP")
    }
    pending = ""
}

function wrapped(s,   out, p)
{
    out = ""
    while (length(s) > 76) {
        p = 76
        while (p > 5 && substr(s, p, 1) != " ")
            p--
        if (p == 5)
            break
        out = out substr(s, 1, p - 1) "\n"
        s = "    " substr(s, p + 1)
    }
    return out s
}

function end_block()
{
    if (in_block)
        print ".EE\n.in"
    in_block = 0
}

function type(s,   k, i, line)
{
    if (!in_block) {
        begin_para()
        print ".in 0\n.EX"
    }
    in_block = 1
    if (s ~ /^#define/ && s !~ /\n/)
        s = wrapped(s)
    k = split(s, line, "\n")
    for (i = 1; i <= k; i++)
        print esc(line[i])
}

# What the first comment of a header says, but for its title.
function about_header()
{
    read_header(dir "/" word[2])
    about = comment_text(about)
    sub(/^[^\n]*\n\n?/, "", about)
    begin_para()
    paragraphs(about, ".PP")
}

function title(s)
{
    return toupper(substr(s, 1, 1)) substr(s, 2)
}

function reference(   j)
{
    at = word[2]
    read_header(dir "/" at)
    pending = ""
    n_tags = 0
    for (j = 1; j <= n_items; j++) {
        if (kind[j] != "func")
            flush_tags()
        if (kind[j] != "type")
            end_block()
        if (kind[j] == "comment") {
            flush_text()
            pending = body[j]
        } else if (kind[j] == "section") {
            flush_text()
            if (below) {
                begin_para()
                print ".B " title(body[j])
            } else
                print ".SS " title(body[j])
            at_heading = !below
        } else if (kind[j] == "gap") {
            flush_text()
        } else if (kind[j] == "opaque") {
            if (note[j] == "")
                note[j] = pending
            else
                flush_text()
            pending = ""
            if (note[j] != "") {
                at_heading = 0
                print ".TP\n.B " body[j]
                paragraphs(note[j], ".IP")
            }
        } else if (kind[j] == "type") {
            flush_text()
            type(body[j])
        } else {
            if (note[j] != "") {
                flush_tags()
                flush_text()
                tag_text = note[j]
            } else if (pending != "") {
                flush_tags()
                tag_text = pending
                pending = ""
            }
            if (!n_tags)
                after_type = j > 1 && kind[j - 1] == "type"
            tag[++n_tags] = ".BR " name_of(body[j]) " ()"
        }
    }
    flush_tags()
    flush_text()
    end_block()
}

BEGIN {
    NAMES = "(gguf_[a-z0-9_]+(\\(\\))?|GGUF_[A-Z0-9_]+|" \
        "(lib)?gguf[a-z_-]*\\([1-9]\\))"
}
in_code && /^@end$/ { in_code = 0; print ".EE"; next }
in_code { print esc($0); next }
/^@code$/ { in_code = 1; begin_para(); print ".EX"; next }
/^@about / { n_words = split($0, word, " "); about_header(); next }
/^@synopsis / { n_words = split($0, word, " "); synopsis(); next }
/^@reference / { n_words = split($0, word, " "); reference(); next }
/^@/ { print "page.awk: " $0 "?" > "/dev/stderr"; failed = 1; next }
/^\.SH/ { in_name = $2 == "NAME"; below = 0 }
/^\.SS/ { below = 1 }
/^[.'\\]/ {
    print
    at_heading = /^\.S[HS]/
    if (/^\.TH/)
        print ".nh\n.ad l"
    next
}
{ print (in_name ? inner($0) : prose($0)); at_heading = 0 }
END { exit failed }
